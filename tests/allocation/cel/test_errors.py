import pytest

from extender.allocation.cel import (
    Budget,
    CompileError,
    DeviceValue,
    EvaluationError,
    Verdict,
    compile_attribute,
    compile_selector,
)


@pytest.mark.parametrize(
    ("text", "position", "words"),
    [
        ("true &&", 7, "ends too early"),
        ("true && x", 8, "undeclared reference to 'x'"),
        ("device.nope == 1", 6, "undefined field"),
        ("1 == 'a'", 2, "no matching overload for '_==_' applied to '(int, string)'"),
        ("[1, 'a'] == [1]", 4, "expected type 'int' but found 'string'"),
        ("'a'.matches('(')", 12, "invalid matches argument"),
        ("true\n  && 'abc'.nope()", 20, "undeclared reference to 'nope'"),
        ("has(device)", 4, "invalid argument to has() macro"),
        ("for == 1", 0, "reserved identifier"),
        ("'é' == #", 7, "no token begins with '#'"),
        ("1 == google.protobuf.Int64Value{value: 1}", 20, "messages cannot be made in a selector"),
    ],
)
def test_error_points_to_its_place(text: str, position: int, words: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_selector(text)
    assert caught.value.position == position
    assert words in caught.value.message


def test_caret_stands_under_the_place() -> None:
    text = "true &&\n\tx == 1"
    with pytest.raises(CompileError) as caught:
        compile_selector(text)
    message, line, caret = caught.value.pointed(text).split("\n")
    assert message == "undeclared reference to 'x'"
    assert line == "2:2: \tx == 1"
    assert caret == "     \t^"


def test_message_stands_alone_without_a_place() -> None:
    assert CompileError("too long").pointed("true") == "too long"


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Local"])
def test_a_time_zone_that_only_files_of_the_machine_could_tell_is_an_error(zone: str) -> None:
    program = compile_selector(f"timestamp('2024-02-29T10:20:30Z').getHours('{zone}') == 11")
    outcome = program.evaluate(DeviceValue(driver="gpu.example.com"), Budget())
    assert (outcome.verdict, outcome.error) == (Verdict.ERROR, f"unknown time zone {zone}")


@pytest.mark.parametrize(
    "text", ["{'a': true}[url('http://a/?a=%ff').getQuery()['a'][0]]", "{'a': true}[url('http://%ff/').getHost()]"]
)
def test_an_error_that_quotes_bytes_that_are_no_text_can_be_written(text: str) -> None:
    outcome = compile_selector(text).evaluate(DeviceValue(driver="gpu.example.com"), Budget())
    assert (outcome.verdict, outcome.error) == (Verdict.ERROR, "no such key: \N{REPLACEMENT CHARACTER}")
    with pytest.raises(EvaluationError) as met:
        compile_attribute(text).compute(DeviceValue(driver="gpu.example.com"), Budget())
    assert str(met.value) == outcome.error


def test_a_text_that_our_compiler_cannot_bear_does_not_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_tree: object) -> None:
        raise KeyError("something that nobody thought of")

    monkeypatch.setattr("extender.allocation.cel.compile.validate", broken)
    with pytest.raises(CompileError, match=r"internal error: KeyError: 'something that nobody thought of'"):
        compile_selector("true")
