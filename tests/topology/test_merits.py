"""What devices are called where people read of them."""

import pytest

from extender.topology.merits import noun_of


@pytest.mark.parametrize(
    ("driver", "noun"),
    [
        ("gpu.nvidia.com", "GPU"),
        ("hami-core-gpu.project-hami.io", "GPU"),
        ("GPU.example.com", "GPU"),
        ("dra.net", "NIC"),
        ("nic.example.com", "NIC"),
        ("sriovnetwork.k8snetworkplumbingwg.io", "NIC"),
        ("dra.cpu", "CPUs"),
        ("memory", "memory"),
        ("fpga.dra.kubernetes.io", "device of fpga.dra.kubernetes.io"),
        ("nvme.example.net", "device of nvme.example.net"),
        ("clinic.example.com", "device of clinic.example.com"),
    ],
)
def test_devices_are_called_by_a_whole_word_of_their_drivers_name(driver: str, noun: str) -> None:
    assert noun_of(driver) == noun
