"""Nothing that JSON can say makes a parser raise, or spoils what stands beside it."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.parse import Readable, parse_list, parse_object
from extender.model.problem import Problem
from tests.allocation.cel.expressions import seeded
from tests.model.parse.damage import VERSIONS, damaged
from tests.model.parse.exemplars import EVERY


def names(value: Any) -> set[str]:
    """Collect every field name within *value*."""
    if isinstance(value, dict):
        return set(value).union(*map(names, value.values()))
    return set().union(*map(names, value)) if isinstance(value, list) else set()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(names([*EVERY.values()]))), inner)
    ),
    max_leaves=12,
)


def assert_read(raw: object) -> None:
    """Whatever is there is a noun, or a problem that can be printed."""
    for read in parse_list(raw):
        assert isinstance(read, Readable | Problem)
        assert not isinstance(read, Problem) or str(read)


@given(st.sampled_from(sorted(EVERY)), st.sampled_from(VERSIONS), JSON, JSON, JSON)
def test_no_json_value_makes_a_parser_raise(kind: str, version: str, spec: Any, status: Any, whole: Any) -> None:
    group = EVERY[kind]["apiVersion"].rpartition("/")[0]
    stated = {"apiVersion": f"{group}/{version}" if group else version, "kind": kind}
    assert_read(whole)
    assert_read(stated | (whole if isinstance(whole, dict) else {}))
    assert_read(stated | {"metadata": whole, "spec": spec, "status": status})
    assert_read(stated | {"metadata": {"name": "x"}, "spec": spec, "status": status})
    assert_read({"kind": f"{kind}List", "apiVersion": stated["apiVersion"], "items": whole})


@settings(max_examples=500)
@given(st.integers(0, 1 << 40))
def test_no_damage_makes_a_parser_raise(seed: int) -> None:
    assert_read(damaged(seeded(seed)))


@given(st.lists(st.integers(0, 1 << 40), max_size=4))
def test_one_damaged_object_of_a_list_leaves_the_others_readable(seeds: list[int]) -> None:
    items = [item for seed in seeds for item in (damaged(seeded(seed)), EVERY["Node"])]
    read = list(parse_list({"apiVersion": "v1", "kind": "List", "items": items}))
    assert len(read) == len(items)
    assert [type(item).__name__ for item in read[1::2]] == ["Node"] * len(seeds)


def test_damage_reaches_nouns_and_problems_of_every_kind() -> None:
    read = [parse_object(damaged(seeded(seed))) for seed in range(2000)]
    assert {type(item).__name__ for item in read} >= {*(set(EVERY) - {"ResourceClaimTemplate"}), "ClaimTemplate"}
    assert {item.kind for item in read if isinstance(item, Problem)} >= set(EVERY)
