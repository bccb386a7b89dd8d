import pytest

from extender.allocation.cel import Budget, CompileError, Verdict, compile_expression, compile_selector
from tests.allocation.cel.cases import FAILING, REFUSED, TRUE
from tests.allocation.cel.description import describe
from tests.allocation.cel.devices import DEVICE


def listed(cases: dict[str, tuple[str, ...]]) -> list[object]:
    """Name every case after its group."""
    return [
        pytest.param(expression, id=f"{group}-{number}")
        for group, expressions in cases.items()
        for number, expression in enumerate(expressions)
    ]


@pytest.mark.parametrize("expression", listed(TRUE))
def test_expression_is_true(expression: str) -> None:
    assert compile_selector(expression).evaluate(DEVICE, Budget()) == (Verdict.MATCH, "")


@pytest.mark.parametrize("expression", listed(FAILING))
def test_expression_compiles_and_fails(expression: str) -> None:
    outcome = compile_selector(expression).evaluate(DEVICE, Budget())
    assert outcome.verdict is Verdict.ERROR
    assert outcome.error
    assert not outcome.error.startswith("internal error")


@pytest.mark.parametrize("expression", listed(REFUSED))
def test_expression_does_not_compile(expression: str) -> None:
    with pytest.raises(CompileError):
        compile_selector(expression)


@pytest.mark.parametrize(
    ("expression", "kind"),
    [*zip(REFUSED["result"], ("int", "string", "list", "string", "map", "optional", "null", "type"), strict=True)],
)
def test_result_type_is_free_outside_of_selectors(expression: str, kind: str) -> None:
    described = describe(compile_expression(expression).compute(DEVICE, Budget()))
    assert described["type"] == kind
