from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import (
    DeviceKey,
    DeviceName,
    DriverName,
    ObjectKey,
    PoolKey,
    PoolName,
    is_dns_label,
    is_dns_subdomain,
    is_driver_name,
    is_label_key,
    is_label_value,
    is_qualified_name,
    split_qualified,
)

DRIVER = DriverName("gpu.example.com")
LABEL_63, LABEL_64 = "a" * 63, "a" * 64
SUBDOMAIN_253 = ".".join([LABEL_63] * 3 + ["a" * 61])
IDENTIFIER_32, IDENTIFIER_33 = "a" * 32, "a" * 33
DOMAIN_63, DOMAIN_64 = "a" * 59 + ".com", "a" * 60 + ".com"

Predicate = Callable[[str], bool]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        pytest.param("model", (DRIVER, "model"), id="the-driver-is-the-domain"),
        pytest.param("example.com/model", ("example.com", "model"), id="its-own-domain"),
        pytest.param("a/b/c", ("a", "b/c"), id="first-slash"),
        pytest.param("/model", ("", "model"), id="empty-domain"),
        pytest.param("model/", ("model", ""), id="empty-identifier"),
        pytest.param("", (DRIVER, ""), id="empty"),
    ],
)
def test_a_qualified_name_splits_at_its_first_slash(name: str, parts: tuple[str, str]) -> None:
    assert split_qualified(name, DRIVER) == parts


VALID: list[tuple[Predicate, list[str]]] = [
    (is_dns_label, ["a", "0", "gpu-0", "a--b", LABEL_63]),
    (is_dns_subdomain, ["a", "node-1.example.com", "1.2.3", SUBDOMAIN_253, LABEL_64]),
    (is_driver_name, ["gpu.example.com", "GPU.Example.com", DOMAIN_63]),
    (is_qualified_name, ["model", "_x", "Model_2", "example.com/model", IDENTIFIER_32, f"{DOMAIN_63}/{IDENTIFIER_32}"]),
    (is_label_key, ["zone", "Example_1.a-b", "example.com/Zone", LABEL_63, f"{SUBDOMAIN_253}/{LABEL_63}"]),
    (is_label_value, ["", "a", "A_b.c-1", LABEL_63]),
]
INVALID: list[tuple[Predicate, list[str]]] = [
    (is_dns_label, ["", "-a", "a-", "a.b", "a_b", "A", "ä", "a\n", LABEL_64]),
    (is_dns_subdomain, ["", ".", "a.", ".a", "a..b", "a.-b", "A.b", "a/b", "a.b\n", SUBDOMAIN_253 + "a"]),
    (is_driver_name, ["", "a_b", "a/b", "-a", "\N{KELVIN SIGN}", DOMAIN_64]),
    (
        is_qualified_name,
        ["", "1a", "a-b", "a.b", "/a", "a/", "a/b/c", "A.com/b", "ä", "a\n", IDENTIFIER_33, f"{DOMAIN_64}/a"],
    ),
    (is_label_key, ["", "/a", "a/", "a/b/c", "-a", "a-", "A.com/a", "a b", "a\n", LABEL_64, f"{SUBDOMAIN_253}a/b"]),
    (is_label_value, [" ", "-", "a-", "-1", "a/b", "ä", "a\n", LABEL_64]),
]


def rows(table: list[tuple[Predicate, list[str]]]) -> list[tuple[Predicate, str]]:
    return [(predicate, text) for predicate, texts in table for text in texts]


@pytest.mark.parametrize(("predicate", "text"), rows(VALID))
def test_a_valid_name_is_accepted(predicate: Predicate, text: str) -> None:
    assert predicate(text)


@pytest.mark.parametrize(("predicate", "text"), rows(INVALID))
def test_an_invalid_name_is_refused(predicate: Predicate, text: str) -> None:
    assert not predicate(text)


@given(st.from_regex(r"[a-z/._-]{0,12}", fullmatch=True))
def test_a_valid_qualified_name_splits_into_a_valid_domain_and_identifier(name: str) -> None:
    domain, identifier = split_qualified(name, DRIVER)
    is_valid = is_dns_subdomain(domain) and "/" not in identifier and is_qualified_name(identifier)
    assert is_qualified_name(name) is is_valid


@given(st.text("aA0-._/", max_size=10))
def test_narrower_names_are_also_wider_ones(text: str) -> None:
    assert not is_dns_label(text) or is_dns_subdomain(text)
    assert not is_dns_subdomain(text) or (is_driver_name(text) and is_label_key(text))
    assert not is_label_key(text) or "/" in text or is_label_value(text)


def test_a_device_knows_its_pool() -> None:
    assert DeviceKey(DRIVER, PoolName("p"), DeviceName("d")).pool_key == PoolKey(DRIVER, PoolName("p"))


def test_an_object_is_named_with_its_namespace_if_it_has_one() -> None:
    assert str(ObjectKey("default", "claim")) == "default/claim"
    assert str(ObjectKey("", "slice")) == "slice"
