"""ResourceSlices. Versions differ in where a device's fields stand and in how a capacity is written."""

from extender.model.device import PLAIN, Device, NodeSelection, ResourceSlice, Traits, common
from extender.model.names import DeviceName, DriverName, NodeName, PoolName
from extender.model.parse.amounts import capacities_of, consumption_of, counter_set_of
from extender.model.parse.attribute import attributes_of
from extender.model.parse.fields import Fields, Malformed, shared_name, shared_place
from extender.model.parse.selection import TAINT, selector_of, taint_of, unknown_in_selector

SLICE = frozenset(
    (
        "driver",
        "pool",
        "nodeName",
        "nodeSelector",
        "allNodes",
        "devices",
        "perDeviceNodeSelection",
        "sharedCounters",
        "partitionTypeAttribute",
        "skipNodeOperations",
    )
)
# Not among them: ``nodeAllocatableResources``, of devices that are CPU or memory of their node. Whoever gives these has
# to have them counted with what its pods ask for, or they are given twice.
BODY = frozenset(
    (
        "attributes",
        "capacity",
        "consumesCounters",
        "nodeName",
        "nodeSelector",
        "allNodes",
        "taints",
        "bindsToNode",
        "bindingConditions",
        "bindingFailureConditions",
        "allowMultipleAllocations",
    )
)
POOL = frozenset(("name", "generation", "resourceSliceCount"))
DEVICE = BODY | {"name"}
WRAPPED = frozenset(("name", "basic"))
USUAL = frozenset(("name", "attributes", "capacity"))


def slice_of(fields: Fields, version: str) -> ResourceSlice:
    """Read a slice; raise Malformed where it makes no sense."""
    spec = fields.child("spec")
    pool = spec.child("pool")
    per_device = spec.flag("perDeviceNodeSelection")
    counters = tuple(counter_set_of(entry) for entry in spec.objects("sharedCounters"))
    strange = tuple(f"sharedCounters.{field}" for _, fields in counters for field in fields)
    return ResourceSlice(
        name=fields.child("metadata").required("name"),
        driver=DriverName(shared_name(spec.required("driver"))),
        pool=PoolName(shared_place(pool.required("name"))),
        generation=pool.integer("generation"),
        slice_count=pool.integer("resourceSliceCount"),
        selection=None if per_device else selection_of(spec),
        devices=tuple(device_of(device, version) for device in spec.objects("devices")),
        shared_counters=tuple(declared for declared, _ in counters),
        skip_node_operations=spec.texts("skipNodeOperations"),
        unknown_fields=spec.unknown(SLICE) + pool.unknown(POOL, "pool.") + unknown_in_selector(spec) + strange,
    )


def selection_of(fields: Fields) -> NodeSelection:
    """Read nodeName, nodeSelector and allNodes; the empty and the false ones of older versions count as unset."""
    name, all_nodes = fields.text("nodeName"), fields.flag("allNodes")
    selector = selector_of(fields.child("nodeSelector")) if fields.has("nodeSelector") else None
    if bool(name) + all_nodes + (selector is not None) > 1:
        raise Malformed(fields.path, "has more than one of nodeName, nodeSelector and allNodes")
    place = NodeName(shared_place(name)) if name else None
    return NodeSelection(node_name=place, selector=selector, all_nodes=all_nodes)


def device_of(fields: Fields, version: str) -> Device:
    """Read a device, whose body older versions keep under ``basic``."""
    name = DeviceName(shared_name(fields.required("name")))
    if version in ("v1beta1", "v1alpha3"):
        body = fields.child("basic")
        unknown = fields.unknown(WRAPPED) + body.unknown(BODY, "basic.")
    else:
        body, unknown = fields, fields.unknown(DEVICE)
    capacity, strange = capacities_of(body, bare=version == "v1alpha3")
    return Device(name, attributes_of(body), capacity, traits_of(body, unknown + strange))


def traits_of(body: Fields, unknown: tuple[str, ...]) -> Traits:
    """Read all of a device but its name, attributes and capacity."""
    if not unknown and body.raw.keys() <= USUAL:
        return PLAIN
    selection = selection_of(body)
    consumed = tuple(consumption_of(fields) for fields in body.objects("consumesCounters"))
    strange = tuple(f"consumesCounters.{field}" for _, fields in consumed for field in fields)
    traits = Traits(
        consumes_counters=tuple(consumption for consumption, _ in consumed),
        selection=None if selection == NodeSelection() else selection,
        taints=tuple(taint_of(taint) for taint in body.objects("taints")),
        binds_to_node=body.flag("bindsToNode"),
        binding_conditions=body.texts("bindingConditions"),
        binding_failure_conditions=body.texts("bindingFailureConditions"),
        allow_multiple_allocations=body.flag("allowMultipleAllocations"),
        unknown_fields=unknown + strange + body.unknown_in("taints", TAINT) + unknown_in_selector(body),
    )
    return common(traits)
