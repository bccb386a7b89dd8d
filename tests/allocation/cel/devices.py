"""A device for the tests of expressions."""

from extender.allocation.cel import DeviceValue
from extender.model.quantity import parse_quantity
from extender.model.semver import parse_semver

DRIVER = "dra.example.com"
DEVICE = DeviceValue(
    driver=DRIVER,
    attributes={
        DRIVER: {"model": "A100", "index": 3, "mig": True, "version": parse_semver("1.2.3")},
        "other.com": {"ints": (1, 2, 3), "strings": ("a", "b")},
    },
    capacity={DRIVER: {"memory": parse_quantity("40Gi"), "cores": parse_quantity("1500m")}},
)
