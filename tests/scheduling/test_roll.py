"""Names are looked up once, and never in a cluster that was before."""

from collections.abc import Sequence

from extender.model.names import NodeName
from extender.scheduling.roll import UNKNOWN, Lookup, Roll, by_dictionary
from tests.scheduling.cast import names


class Counting:
    """Counts how often a table of all names is made, and how often names are looked up."""

    def __init__(self) -> None:
        self.made, self.asked = 0, 0

    def __call__(self, everything: Sequence[NodeName]) -> Lookup:
        self.made += 1
        found = by_dictionary(everything)

        def lookup(asked: Sequence[str]) -> object:
            self.asked += 1
            return found(asked)

        return lookup  # type: ignore[return-value]  # as there


def test_what_is_known_is_not_looked_up_again() -> None:
    counting = Counting()
    roll, everything = Roll(counting), tuple(names("a", "b", "c"))
    for _ in range(2):
        assert roll.numbers(("c", "x", "a"), everything).tolist() == [2, UNKNOWN, 0]
    assert (counting.made, counting.asked) == (1, 1)
    roll.remember(("c", "a"), roll.numbers(("c", "x", "a"), everything)[[0, 2]])
    assert roll.numbers(("c", "a"), everything).tolist() == [2, 0]
    assert counting.asked == 1


def test_numbers_of_another_cluster_are_not_remembered() -> None:
    roll, before, after = Roll(), tuple(names("a", "b")), tuple(names("0", "a", "b"))
    asked = ("b", "a")
    assert roll.numbers(asked, before).tolist() == [1, 0]
    # Nobody remembers a list, which may be another by then.
    assert roll.numbers(["b"], after).tolist() == [2]
    assert roll.numbers(asked, after).tolist() == [2, 1]
    assert roll.knows(after)
    assert not roll.knows(before)


def test_a_list_that_has_changed_is_looked_up() -> None:
    roll, everything, asked = Roll(), tuple(names("a", "b")), ["a"]
    assert roll.numbers(asked, everything).tolist() == [0]
    asked[0] = "b"
    assert roll.numbers(asked, everything).tolist() == [1]
