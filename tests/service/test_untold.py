"""What is yet to be told."""

from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import Uid
from extender.service.untold import Key, Untold

KEYS = st.tuples(st.sampled_from([Uid("a"), Uid("b"), Uid("c")]), st.sampled_from(["w", "x", "y"]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("first"), KEYS, st.just(0)),
        st.tuples(st.just("drop"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("clear"), KEYS, st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_it_is_a_list_in_order_whose_items_are_found_by_subject(steps: list[tuple[str, Key, int]]) -> None:
    untold, model = Untold[int](), dict[Key, int]()
    for step, key, number in steps:
        match step:
            case "put":
                untold.put(key, number)
                model[key] = number
            case "first" if model:
                first = next(iter(model))
                assert untold.first() == (first, model.pop(first))
            case "drop":
                over = [one for one in model if one[0] == key[0] and model[one] < number]
                assert untold.drop(key[0], number.__gt__) == len(over)
                model = {one: what for one, what in model.items() if one not in over}
            case "clear":
                untold.clear()
                model.clear()
        assert len(untold) == len(model)
        assert (key in untold) == (key in model)
        assert sorted(untold.words(key[0])) == sorted(words for subject, words in model if subject == key[0])


def test_nothing_is_kept_of_who_has_nothing_untold() -> None:
    untold = Untold[int]()
    for words in "wx":
        untold.put((Uid("a"), words), 1)
        untold.put((Uid("b"), words), 2)
    untold.first()
    untold.drop(Uid("a"), bool)
    untold.drop(Uid("b"), bool)
    assert untold._words == {}
