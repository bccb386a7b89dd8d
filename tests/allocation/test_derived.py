"""Values that requests compute are the attributes that Kubernetes makes of them, or none."""

import os
from collections import Counter
from typing import Any

import pytest

from extender.allocation.cel import Budget, CompileError, DeviceValue, EvaluationError, Program, compile_attribute
from extender.allocation.choose import choose
from extender.allocation.derived import attribute_of
from extender.allocation.fit import Fitter
from extender.allocation.solve import Failure
from extender.model.claim import Constraint, DerivedAttribute
from extender.model.device import Attribute
from tests.allocation.cel.expressions import seeded
from tests.allocation.cel.typed import drawn
from tests.allocation.cel.written.fixtures import asked, sight
from tests.allocation.small import cluster, device, node, published, question, request
from tests.oracle_program import Oracle

ATTRIBUTES = {
    "1": Attribute("int", 1),
    "'a'": Attribute("string", "a"),
    "true": Attribute("bool", value=True),
    "semver('1.2.3-a+b')": Attribute("version", "1.2.3-a+b"),
    "[]": Attribute("strings", ()),
    "[1, 2]": Attribute("ints", (1, 2)),
    "[semver('1.2.3')]": Attribute("versions", ("1.2.3",)),
    "dyn(['a'])": Attribute("strings", ("a",)),
    "dyn(optional.of(1))": Attribute("int", 1),
    "dyn(optional.of(optional.of('a')))": Attribute("string", "a"),
    "[dyn(optional.of(1)), dyn(2)]": Attribute("ints", (1, 2)),
    "dyn(type(1))": Attribute("string", "int"),
    "[dyn(type(duration('1s'))), dyn('a')]": Attribute("strings", ("google.protobuf.Duration", "a")),
}
NONE = (
    *("dyn(duration('1s'))", "dyn(timestamp(0))", "dyn(1u)", "dyn(1.5)", "dyn(null)", "dyn(b'a')", "dyn({})"),
    *("dyn(ip('::1'))", "dyn(cidr('::/0'))", "dyn(url('http://h'))", "dyn(quantity('1'))", "dyn(optional.none())"),
    *("dyn(format.date())", "dyn(optional.of([1]))", "dyn(optional.of(1u))"),
    *("[dyn([1, 2])]", "dyn([1u])", "[dyn(duration('1s'))]", "[dyn(1), dyn('a')]", "[dyn(1), dyn(true)]"),
)
DRAWN = int(os.environ.get("DRA_CASES", "500"))


def told(text: str) -> Attribute | None:
    """Return what is computed of the device that has everything, None where that is no attribute."""
    try:
        return attribute_of(compile_attribute(text).compute(sight("full"), Budget()))
    except (CompileError, EvaluationError, ValueError):
        return None


@pytest.mark.parametrize(("text", "attribute"), ATTRIBUTES.items())
def test_a_value_is_the_attribute_that_it_stands_for(text: str, attribute: Attribute) -> None:
    assert told(text) == attribute


@pytest.mark.parametrize("text", NONE)
def test_other_values_are_no_attributes(text: str) -> None:
    value = compile_attribute(text).compute(DeviceValue(driver="gpu.example.com"), Budget())
    with pytest.raises(ValueError, match=r"no attribute|different types"):
        attribute_of(value)


def theirs(oracle: Oracle, texts: list[str]) -> list[Attribute | None]:
    answers = oracle.ask("cel", [{**asked("full", text), "mode": "attribute"} for text in texts])
    return [attribute(answer["value"]) if answer["outcome"] == "value" else None for answer in answers]


def attribute(value: dict[str, Any]) -> Attribute:
    """Read an attribute as the API has it, where an empty list is none."""
    ((kind, inner),) = value.items() or {"strings": []}.items()
    return Attribute(kind, tuple(inner) if isinstance(inner, list) else inner)  # type: ignore[arg-type]  # one of them


def test_kubernetes_says_the_same(oracle: Oracle) -> None:
    assert theirs(oracle, [*ATTRIBUTES, *NONE]) == [*ATTRIBUTES.values(), *[None] * len(NONE)]


def test_of_drawn_values_the_same_are_attributes_in_kubernetes(oracle: Oracle) -> None:
    random = seeded("derived")
    written = [drawn(random, 2) for _ in range(DRAWN)]
    texts = [form.format(text) for text in written for form in ("dyn({})", "[dyn({})]")]
    pairs = list(zip(texts, theirs(oracle, texts), map(told, texts), strict=True))
    assert [pair for pair in pairs if pair[1] != pair[2]] == []
    assert sum(pair[1] is not None for pair in pairs) > DRAWN // 10


@pytest.mark.parametrize("end", ["", " / 0"])
def test_what_takes_long_to_derive_is_paused_for_and_what_fails_fails_once(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    devices = (device(f"d{number}", {"index": number}) for number in range(8))
    snapshot = cluster(node("n"), published("n", *devices)).snapshot
    slow = f"lists.range(100).map(x, lists.range(100).filter(y, y > x).size()).size(){end}"
    wanted = request(2, derived_attributes=(DerivedAttribute("a.example.com/z", slow),))
    fitter = Fitter(question(wanted, Constraint(match_attribute="a.example.com/z")))
    turn, computed, real = 0, Counter[int](), Program.compute

    def counted(*given: Any) -> object:
        computed[turn] += 1
        return real(*given)

    monkeypatch.setattr(Program, "compute", counted)
    for turn, _ in enumerate(fitter.pieces(snapshot), 1):  # noqa: B007 - it is counted by
        pass
    assert computed.most_common(1)[0][1] == 1
    assert computed.total() == 8


def test_what_nobody_thought_of_is_wrong_on_a_device_and_ends_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: object) -> object:
        raise OverflowError

    monkeypatch.setattr(Program, "compute", broken)
    snapshot = cluster(node("n"), published("n", device("d"))).snapshot
    wanted = request(derived_attributes=(DerivedAttribute("a.example.com/z", "1"),))
    asked = question(wanted, Constraint(match_attribute="a.example.com/z"))
    answer = choose(snapshot, 0, asked)
    assert isinstance(answer, Failure)
    assert "internal error: OverflowError" in answer.message


@pytest.mark.parametrize(
    "text",
    ["lists.range(257)", f"'{'a' * 4097}'", f"['{'a' * 2048}', '{'b' * 2049}']", f"semver('1.0.0-{'a' * 4096}')"],
)
def test_more_than_any_device_has_is_no_attribute(text: str) -> None:
    value = compile_attribute(text).compute(DeviceValue(driver="gpu.example.com"), Budget())
    with pytest.raises(ValueError, match="longer than"):
        attribute_of(value)


def test_lists_of_very_many_values_together_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.allocation.values.MOST", 20)
    devices = (device(f"d{number}", {"index": number}) for number in range(3))
    snapshot = cluster(node("n"), published("n", *devices)).snapshot
    own = "lists.range(8).map(x, x + 8 * device.attributes['gpu.example.com'].index)"
    for text, is_met in ((own, True), ("lists.range(8)", False)):
        wanted = request(2, derived_attributes=(DerivedAttribute("a.example.com/z", text),))
        answer = choose(snapshot, 0, question(wanted, Constraint(match_attribute="a.example.com/z")))
        assert isinstance(answer, Failure) is is_met
        assert not isinstance(answer, Failure) or "more than 20 values together" in answer.message
