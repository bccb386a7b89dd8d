from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.parse import Noun, parse_list, parse_object
from extender.model.problem import Problem
from tests.allocation.cel.expressions import seeded
from tests.model.parse.damage import damaged
from tests.model.parse.exemplars import EVERY


@settings(max_examples=500)
@given(st.integers(0, 1 << 40))
def test_no_damage_makes_a_parser_raise(seed: int) -> None:
    raw = damaged(seeded(seed))
    read = parse_object(raw)
    assert isinstance(read, Noun | Problem)
    assert str(read)


@given(st.lists(st.integers(0, 1 << 40), max_size=4))
def test_one_damaged_object_of_a_list_leaves_the_others_readable(seeds: list[int]) -> None:
    items = [item for seed in seeds for item in (damaged(seeded(seed)), EVERY["Node"])]
    read = list(parse_list({"apiVersion": "v1", "kind": "List", "items": items}))
    assert len(read) == len(items)
    assert [type(item).__name__ for item in read[1::2]] == ["Node"] * len(seeds)
