package main

import (
	"fmt"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/utils/ptr"
)

type usedDevice struct {
	Driver, Pool, Device string
}

// usedShare is driver/pool/device/share.
type usedShare struct {
	ID string
}

type usedCapacity struct {
	usedDevice
	Consumed map[resourceapi.QualifiedName]resource.Quantity
}

// gates are the feature gates of the allocator, and the one that the tracker of slices has besides.
type gates struct {
	allocator  structured.Features
	taintRules bool
}

const bindingGate, statusGate = "DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"

// gatesOf returns all gates where none are named: absence is not the empty list.
func gatesOf(names *[]string) (gates, error) {
	everything := []string{
		"DRAAdminAccess", "DRAConsumableCapacity", "DRADerivedAttributes", "DRADeviceCompatibilityGroups", "DRADeviceTaints",
		"DRADeviceTaintRules", "DRAFractionalCapacityRange", "DRAListTypeAttributes", "DRAOptionalNodeOperations",
		"DRAPartitionableDevices", "DRAPrioritizedList", bindingGate, statusGate,
	}
	known := sets.New(everything...)
	if names == nil {
		names = &everything
	}
	on := sets.New[string]()
	for _, name := range *names {
		// The table writes both gates of binding conditions as one.
		on.Insert(strings.Split(name, "+")...)
	}
	if unknown := on.Difference(known); len(unknown) > 0 {
		return gates{}, fmt.Errorf("features: unknown gates %v", sets.List(unknown))
	}
	return gates{taintRules: on.HasAll("DRADeviceTaintRules", "DRADeviceTaints"), allocator: structured.Features{
		AdminAccess:             on.Has("DRAAdminAccess"),
		CompatibilityGroups:     on.Has("DRADeviceCompatibilityGroups"),
		ConsumableCapacity:      on.Has("DRAConsumableCapacity"),
		DerivedAttributes:       on.Has("DRADerivedAttributes"),
		DeviceBindingAndStatus:  on.HasAll(bindingGate, statusGate),
		DeviceTaints:            on.Has("DRADeviceTaints"),
		FractionalCapacityRange: on.Has("DRAFractionalCapacityRange"),
		ListTypeAttributes:      on.Has("DRAListTypeAttributes"),
		OptionalNodeOperations:  on.Has("DRAOptionalNodeOperations"),
		PartitionableDevices:    on.Has("DRAPartitionableDevices"),
		PrioritizedList:         on.Has("DRAPrioritizedList"),
	}}, nil
}

// lister finds classes in the order of the question, as upstream's own tests do.
type lister []*resourceapi.DeviceClass

func (l lister) List() ([]*resourceapi.DeviceClass, error) {
	return l, nil
}

func (l lister) Get(name string) (*resourceapi.DeviceClass, error) {
	for _, class := range l {
		if class.Name == name {
			return class, nil
		}
	}
	return nil, fmt.Errorf("DeviceClass %q not found", name)
}

// usage is what others hold, as the scheduler gathers it: from the question's lists and from all allocated claims.
func (q *allocationQuestion) usage(gates gates) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, used := range q.UsedDevices {
		state.AllocatedDevices.Insert(used.id())
	}
	for _, used := range q.UsedShares {
		state.AllocatedSharedDeviceIDs.Insert(used.id())
	}
	for _, used := range q.UsedCapacity {
		state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(used.id(), used.Consumed))
	}
	seen := sets.New[types.NamespacedName]()
	for _, claims := range [][]*resourceapi.ResourceClaim{q.Allocated, q.Claims} {
		for _, claim := range claims {
			key := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
			if claim.Status.Allocation == nil || seen.Has(key) {
				continue
			}
			seen.Insert(key)
			hold(&state, claim.Status.Allocation.Devices.Results, gates)
		}
	}
	return state
}

func hold(state *structured.AllocatedState, results []resourceapi.DeviceRequestAllocationResult, gates gates) {
	for _, result := range results {
		id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
		switch {
		case ptr.Deref(result.AdminAccess, false):
		case gates.allocator.ConsumableCapacity && result.ShareID != nil:
			state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		default:
			state.AllocatedDevices.Insert(id)
		}
	}
}

func (u usedDevice) id() structured.DeviceID {
	return structured.MakeDeviceID(u.Driver, u.Pool, u.Device)
}

// id splits at the outer slashes: only names of pools have any themselves.
func (u usedShare) id() structured.SharedDeviceID {
	driver, rest, _ := strings.Cut(u.ID, "/")
	end := strings.LastIndex(rest, "/")
	share := types.UID(rest[end+1:])
	middle := strings.LastIndex(rest[:end], "/")
	return structured.MakeSharedDeviceID(structured.MakeDeviceID(driver, rest[:middle], rest[middle+1:end]), &share)
}

// tainted adds the taints of rules to the devices, as the tracker of slices does: no selector selects nothing.
func tainted(slices []*resourceapi.ResourceSlice, rules []*resourceapi.DeviceTaintRule, gates gates) []*resourceapi.ResourceSlice {
	if !gates.taintRules {
		return slices
	}
	for _, slice := range slices {
		for _, rule := range rules {
			for i := range slice.Spec.Devices {
				if device := &slice.Spec.Devices[i]; selects(rule.Spec.DeviceSelector, slice, device.Name) {
					device.Taints = append(device.Taints, rule.Spec.Taint)
				}
			}
		}
	}
	return slices
}

func selects(selector *resourceapi.DeviceTaintSelector, slice *resourceapi.ResourceSlice, device string) bool {
	if selector == nil {
		return false
	}
	return ptr.Deref(selector.Driver, slice.Spec.Driver) == slice.Spec.Driver &&
		ptr.Deref(selector.Pool, slice.Spec.Pool.Name) == slice.Spec.Pool.Name &&
		ptr.Deref(selector.Device, device) == device
}
