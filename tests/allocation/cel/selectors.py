"""Five selectors of growing weight and devices to try them on, for tests and benchmarks.

S1 looks at the driver, S2 at a string and a capacity, S3 at a version and an integer, S4 at text,
S5 at a list through a macro and at two quantities.
"""

from extender.allocation.cel import CelValue, DeviceValue
from extender.model.quantity import parse_quantity
from extender.model.semver import parse_semver

DRIVER = "gpu.example.com"
SELECTORS = {
    "S1": 'device.driver == "gpu.example.com"',
    "S2": (
        'device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model == "H100"'
        ' && device.capacity["gpu.example.com"].memory.compareTo(quantity("40Gi")) >= 0'
    ),
    "S3": (
        'device.attributes["gpu.example.com"].driverVersion.isGreaterThan(semver("535.0.0"))'
        ' && device.attributes["gpu.example.com"].index < 4 && has(device.attributes["gpu.example.com"].uuid)'
    ),
    "S4": (
        'device.attributes["gpu.example.com"].productName.lowerAscii().contains("h100")'
        ' && device.attributes["gpu.example.com"].architecture in ["Hopper", "Ampere"]'
        ' && device.attributes["gpu.example.com"].uuid.matches("^GPU-[0-9a-f]+")'
    ),
    "S5": (
        '["H100", "H200", "B200"].exists(m, m == device.attributes["gpu.example.com"].model)'
        ' && device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("16Gi"))'
        ' && device.capacity["gpu.example.com"].cores.isLessThan(quantity("200"))'
    ),
}
ATTRIBUTES: dict[str, CelValue] = {
    "model": "H100",
    "driverVersion": parse_semver("550.54.15"),
    "index": 2,
    "uuid": "GPU-18db0e85",
    "productName": "NVIDIA H100 80GB HBM3",
    "architecture": "Hopper",
    "mig": False,
}
DEVICE = DeviceValue(
    driver=DRIVER,
    attributes={DRIVER: ATTRIBUTES, "resource.kubernetes.io": {"pcieRoot": "pci0000:00"}},
    capacity={DRIVER: {"memory": parse_quantity("80Gi"), "cores": parse_quantity("132")}},
)
