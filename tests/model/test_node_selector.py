import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.model.names import NodeName
from extender.model.node_selector import NodeSelector, NodeSelectorTerm, Requirement, matches, problem_of

NODE = NodeName("node-1")
LABELS = {"zone": "a", "generation": "5", "empty": "", "word": "five"}


def need(key: str, operator: str, *values: str) -> Requirement:
    return Requirement(key=key, operator=operator, values=values)


def labels(*requirements: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions=requirements)


def fields(*requirements: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(fields=requirements)


def selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(terms)


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param(need("zone", "In", "b", "a"), True, id="in"),
        pytest.param(need("zone", "In", "b"), False, id="in-other"),
        pytest.param(need("absent", "In", "a"), False, id="in-absent"),
        pytest.param(need("empty", "In", ""), True, id="in-empty-value"),
        pytest.param(need("absent", "In", ""), False, id="absent-is-not-empty"),
        pytest.param(need("zone", "NotIn", "b"), True, id="not-in"),
        pytest.param(need("zone", "NotIn", "b", "a"), False, id="not-in-listed"),
        pytest.param(need("absent", "NotIn", "a"), True, id="not-in-absent"),
        pytest.param(need("empty", "Exists"), True, id="exists-though-empty"),
        pytest.param(need("absent", "Exists"), False, id="exists-absent"),
        pytest.param(need("absent", "DoesNotExist"), True, id="does-not-exist"),
        pytest.param(need("zone", "DoesNotExist"), False, id="does-not-exist-present"),
        pytest.param(need("generation", "Gt", "4"), True, id="greater"),
        pytest.param(need("generation", "Gt", "5"), False, id="greater-is-strict"),
        pytest.param(need("generation", "Gt", "10"), False, id="greater-compares-numbers"),
        pytest.param(need("generation", "Lt", "10"), True, id="less-compares-numbers"),
        pytest.param(need("generation", "Lt", "5"), False, id="less-is-strict"),
        pytest.param(need("generation", "Lt", "006"), True, id="leading-zeros"),
        pytest.param(need("absent", "Gt", "4"), False, id="greater-absent"),
        pytest.param(need("absent", "Lt", "4"), False, id="less-absent"),
        pytest.param(need("word", "Gt", "4"), False, id="label-is-no-number"),
        pytest.param(need("empty", "Lt", "4"), False, id="label-is-empty"),
    ],
)
def test_a_label_fulfils_its_requirement_or_not(requirement: Requirement, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    one = selector(labels(requirement))
    assert problem_of(one) is None
    assert matches(one, NODE, LABELS) is expected


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "-9223372036854775809", "1_0", " 1", "1e3", "\N{ARABIC-INDIC DIGIT ONE}"]
)
def test_a_label_that_go_cannot_read_as_a_number_is_never_less_or_greater(text: str) -> None:
    assert not matches(selector(labels(need("n", "Gt", "0"))), NODE, {"n": text})
    assert not matches(selector(labels(need("n", "Lt", "9"))), NODE, {"n": text})


@pytest.mark.parametrize("text", ["-5", "+4", "0"])
def test_a_label_may_be_a_signed_number(text: str) -> None:
    assert matches(selector(labels(need("n", "Lt", "5"))), NODE, {"n": text})


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        pytest.param(need("metadata.name", "In", "node-1"), True, id="in"),
        pytest.param(need("metadata.name", "In", "node-2"), False, id="in-other"),
        pytest.param(need("metadata.name", "NotIn", "node-2"), True, id="not-in"),
        pytest.param(need("metadata.name", "NotIn", "node-1"), False, id="not-in-listed"),
        pytest.param(need("metadata.namespace", "In", ""), True, id="other-field-reads-as-empty"),
        pytest.param(need("metadata.namespace", "In", "node-1"), False, id="other-field-has-no-value"),
    ],
)
def test_a_field_fulfils_its_requirement_or_not(requirement: Requirement, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    one = selector(fields(requirement))
    assert problem_of(one) is None
    assert matches(one, NODE, {"metadata.name": "a-label-is-no-field"}) is expected


def test_a_node_without_a_name_is_not_asked_for_fields() -> None:
    assert matches(selector(fields(need("metadata.name", "In", "node-1"))), NodeName(""), {})


TRUE, FALSE = need("zone", "In", "a"), need("zone", "In", "b")
HERE, ELSEWHERE = need("metadata.name", "In", "node-1"), need("metadata.name", "In", "node-2")


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        pytest.param(selector(), False, id="no-terms"),
        pytest.param(selector(NodeSelectorTerm()), False, id="empty-term"),
        pytest.param(selector(NodeSelectorTerm(), labels(TRUE)), True, id="empty-term-is-skipped"),
        pytest.param(selector(labels(TRUE, TRUE)), True, id="all-of-a-term"),
        pytest.param(selector(labels(TRUE, FALSE)), False, id="one-of-a-term-fails"),
        pytest.param(selector(labels(FALSE), labels(TRUE)), True, id="terms-are-alternatives"),
        pytest.param(selector(labels(FALSE), labels(FALSE)), False, id="no-alternative-left"),
        pytest.param(selector(NodeSelectorTerm(expressions=(TRUE,), fields=(HERE,))), True, id="labels-and-fields"),
        pytest.param(selector(NodeSelectorTerm(expressions=(TRUE,), fields=(ELSEWHERE,))), False, id="fields-fail"),
        pytest.param(selector(NodeSelectorTerm(expressions=(FALSE,), fields=(HERE,))), False, id="labels-fail"),
    ],
)
def test_terms_are_alternatives_of_conditions_that_all_hold(one: NodeSelector, expected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert problem_of(one) is None
    assert matches(one, NODE, LABELS) is expected


@pytest.mark.parametrize(
    ("term", "problem"),
    [
        pytest.param(
            labels(need("a", "in", "b")), "matchExpressions[0].operator: 'in' is none of In, NotIn,", id="operator"
        ),
        pytest.param(labels(need("a", "")), "matchExpressions[0].operator: '' is none", id="no-operator"),
        pytest.param(
            labels(TRUE, need("a/b/c", "Exists")), "matchExpressions[1].key: 'a/b/c' is not a label's key", id="key"
        ),
        pytest.param(labels(need("", "Exists")), "key: '' is not a label's key", id="empty-key"),
        pytest.param(labels(need("a", "In")), "values: In needs at least one", id="in-nothing"),
        pytest.param(labels(need("a", "NotIn")), "values: NotIn needs at least one", id="not-in-nothing"),
        pytest.param(labels(need("a", "Exists", "b")), "values: Exists takes none, not 1", id="exists-with-value"),
        pytest.param(labels(need("a", "DoesNotExist", "b")), "DoesNotExist takes none", id="does-not-exist-with-value"),
        pytest.param(labels(need("a", "Gt")), "values: Gt needs exactly one, not 0", id="greater-than-nothing"),
        pytest.param(labels(need("a", "Lt", "1", "2")), "values: Lt needs exactly one, not 2", id="less-than-two"),
        pytest.param(labels(need("a", "Gt", "x")), "values[0]: 'x' is not a 64-bit integer", id="greater-than-a-word"),
        pytest.param(labels(need("a", "Gt", str(2**63))), "is not a 64-bit integer", id="beyond-64-bits"),
        pytest.param(labels(need("a", "Gt", "9" * 5000)), "is not a 64-bit integer", id="5000-digits"),
        pytest.param(
            labels(need("a", "Gt", "-5")), "values[0]: '-5' is not a label's value", id="no-label-is-negative"
        ),
        pytest.param(labels(need("a", "In", "b", "c d")), "values[1]: 'c d' is not a label's value", id="value"),
        pytest.param(labels(need("a", "In", "x" * 64)), "is not a label's value", id="long-value"),
        pytest.param(
            fields(need("metadata.name", "Exists")),
            "matchFields[0].operator: 'Exists' is none of In, NotIn",
            id="field-operator",
        ),
        pytest.param(
            fields(need("metadata.name", "In")),
            "matchFields[0].values: In needs exactly one, not 0",
            id="field-in-nothing",
        ),
        pytest.param(
            fields(need("metadata.name", "NotIn", "a", "b")), "NotIn needs exactly one, not 2", id="field-not-in-two"
        ),
    ],
)
def test_one_bad_requirement_spoils_the_selector(term: NodeSelectorTerm, problem: str) -> None:
    found = problem_of(selector(labels(TRUE), term))
    assert found is not None
    assert found.startswith("nodeSelectorTerms[1].")
    assert problem in found


def test_every_problem_is_told() -> None:
    found = problem_of(selector(labels(need("/", "In")), fields(need("x", "Gt"))))
    assert found is not None
    assert found.count("; ") == 2


requirements = st.builds(
    Requirement,
    key=st.sampled_from(["zone", "generation", "metadata.name", "absent", "-"]),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"]),
    values=st.lists(st.sampled_from(["a", "5", "6", "node-1", "-"]), max_size=2).map(tuple),
)
terms = st.builds(
    NodeSelectorTerm,
    expressions=st.lists(requirements, max_size=2).map(tuple),
    fields=st.lists(requirements, max_size=2).map(tuple),
)


@given(st.lists(terms, max_size=3).map(tuple))
def test_a_selector_accepts_what_one_of_its_terms_accepts(all_terms: tuple[NodeSelectorTerm, ...]) -> None:
    alone = [matches(selector(term), NODE, LABELS) for term in all_terms]
    assert matches(NodeSelector(all_terms), NODE, LABELS) is any(alone)
    assert (problem_of(NodeSelector(all_terms)) is None) is all(
        problem_of(selector(term)) is None for term in all_terms
    )


@given(requirements)
def test_opposite_operators_give_opposite_answers(requirement: Requirement) -> None:
    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}.get(
        requirement.operator
    )
    if opposite is not None:
        other = need(requirement.key, opposite, *requirement.values)
        assert matches(selector(labels(requirement)), NODE, LABELS) is not matches(
            selector(labels(other)), NODE, LABELS
        )
