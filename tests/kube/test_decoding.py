"""What Go's encoding/json lets through and orjson refuses is read all the same; all else comes back as it was."""

import json
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.features import Features
from extender.kube.answer import Answer
from extender.kube.decoding import decoded, mended
from extender.kube.page import Page, page_of
from extender.kube.resource import CLAIMS
from extender.kube.setback import Setback
from extender.kube.stream import Event, event_of
from extender.model.change import Changed, Listed
from extender.model.claim import ResourceClaim
from extender.model.parse.opaque import MARK
from extender.scheduling.planner import Offer, Rejection
from extender.state.belief import Belief
from tests.scheduling.cast import DRIVER, GPU_CLASS, OURS, gpus, names, node, planner_of, pod

Json = dict[str, Any]
# Go's own limit.
DEEPEST = 10_000
PIECES = (
    "a,1",
    '\\"',
    "\\\\",
    "\\n",
    "[",
    "}",
    "é",
    "�",
    "\\u0041",
    "\\ud83d\\ude00",
    "\\uD800",
    "\\udfff",
    "\udcff",
    "\udced\udca0\udc80",
)
TEXTS = st.lists(st.sampled_from(PIECES)).map(lambda pieces: f'"{"".join(pieces)}"')
LEAVES = TEXTS | st.sampled_from(["null", "true", "-1.5e3", "0"])
STRANGE = st.recursive(
    LEAVES,
    lambda inside: st.one_of(
        st.lists(inside).map(lambda items: f"[{' ,'.join(items)}]"),
        st.lists(st.tuples(TEXTS, inside)).map(
            lambda pairs: "{" + ",\n".join(f"{key}: {value}" for key, value in pairs) + "}"
        ),
    ),
)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inside: st.lists(inside) | st.dictionaries(st.text(), inside),
)


def deep(levels: int, core: str = "1") -> bytes:
    """Nest *core* in as many objects."""
    return ('{"a":' * levels + core + "}" * levels).encode(errors="surrogateescape")


def marked(value: object) -> object:
    """Put marks where there are surrogates; the standard library reads them, and bytes that are no UTF-8 as such."""
    if isinstance(value, str):
        return re.sub("[\ud800-\udfff]", MARK, value)
    if isinstance(value, dict):
        return {key: marked(item) for key, item in value.items()}
    return [marked(item) for item in value] if isinstance(value, list) else value


def with_marked_keys(pairs: list[tuple[str, object]]) -> dict[object, object]:
    return {marked(key): value for key, value in pairs}


@pytest.mark.parametrize(
    "text",
    [
        deep(1100),
        deep(DEEPEST),
        b"[" * DEEPEST + b"]" * DEEPEST,
        rb'"\ud800"',
        rb'{"\uDFFF": "\\\ud800"}',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xc3"',
    ],
)
def test_what_orjson_refuses_and_go_does_not_is_read(text: bytes) -> None:
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(text)
    decoded(text)


def test_what_is_no_character_is_marked_and_everything_beside_it_stays() -> None:
    read = decoded(rb'["a\ud800\ud83d\ude00\udc00", "\\ud800", "' + b'\xffb\xc3\xa9", 1]')
    assert read == [f"a{MARK}\U0001f600{MARK}", "\\ud800", f"{MARK}bé", 1]


def test_what_nests_too_deep_is_null_and_everything_beside_it_stays() -> None:
    read = decoded(b'{"before": "[{\\"[", "deep": %s, "after": ["]}", {"b": []}]}' % deep(DEEPEST))
    assert read["before"], read["after"] == ('[{"[', ["]}", {"b": []}])
    inside, levels = read["deep"], 0
    while inside is not None:
        inside, levels = inside["a"], levels + 1
    assert 300 < levels < 1000


def test_of_several_that_nest_too_deep_each_is_cut_for_itself() -> None:
    one, *several, last = decoded(b"[1, %s, %s, 2]" % (deep(2000), deep(DEEPEST)))
    assert (one, [list(item) for item in several], last) == (1, [["a"], ["a"]], 2)


@given(STRANGE)
def test_another_reader_that_lets_everything_through_reads_the_same(text: str) -> None:
    raw = text.encode(errors="surrogateescape")
    assert decoded(raw) == marked(json.loads(text, object_pairs_hook=with_marked_keys))


@given(PLAIN)
def test_what_can_be_read_is_not_touched(value: object) -> None:
    for text in (orjson.dumps(value), json.dumps(value).encode(), json.dumps(value, indent=1).encode()):
        assert mended(text) == text


def test_what_is_not_too_deep_is_not_touched() -> None:
    assert mended(deep(500)) == deep(500)
    assert mended(deep(501)) == deep(500, "null")


@given(STRANGE, st.integers(0, DEEPEST - 50))
def test_however_deep_it_is_read(text: str, levels: int) -> None:
    decoded(deep(levels, text))


@given(st.binary() | st.text('[]{}",:\\ud8c01 \n').map(str.encode))
def test_bytes_of_any_kind_are_read_or_refused(text: bytes) -> None:
    try:
        decoded(text)
    except orjson.JSONDecodeError:
        return


def claim(name: str, parameters: bytes = b"{}", data: bytes = b"{}", device: str = "") -> bytes:
    """Spell a claim with raw configuration and raw data of a driver; with a *device*, one that is allocated."""
    result = f'{{"request": "gpu", "driver": "{DRIVER}", "pool": "n1", "device": "{device}"}}'
    place = f'"driver": "{DRIVER}", "pool": "n1", "device": "d0"'
    status = f'"allocation": {{"devices": {{"results": [{result}]}}}},' if device else ""
    return b"".join(
        (
            b'{"metadata": {"namespace": "ns", "name": "%s", "uid": "uid-%s", ' % (name.encode(), name.encode()),
            b'"resourceVersion": "7"}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": ',
            b'{"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}], ',
            b'"config": [{"opaque": {"driver": "%s", "parameters": %s}}]}}, ' % (DRIVER.encode(), parameters),
            b'"status": {%s "devices": [{%s, "data": %s}]}}' % (status.encode(), place.encode(), data),
        )
    )


ODD = {
    "deep": (deep(1100), "nests deeper than 200 levels"),
    "deeper-than-is-written": (deep(300), "nests deeper than 200 levels"),
    "surrogate": (rb'{"a": ["\ud800"]}', "has text that is no Unicode"),
    "key": (rb'{"\ud800": 1}', "has text that is no Unicode"),
    "bytes": (b'{"a": "\xff"}', "has text that is no Unicode"),
    "number": (b'{"a": %b}' % (b"9" * 30), "has a number of more than 64 bits"),
}


def listed(*claims: bytes) -> Page:
    body = b'{"metadata": {"resourceVersion": "9"}, "items": [%s]}' % b", ".join(claims)
    page = page_of(Answer(200, {}, body))
    assert isinstance(page, Page)
    return page


def belief_of(page: Page) -> Belief:
    belief = Belief((OURS,), Features())
    for noun in (GPU_CLASS, node("n1"), gpus("n1", 2)):
        belief.apply(Changed(noun))
    belief.apply(Listed(ResourceClaim, tuple(CLAIMS.parse(item, "v1") for item in page.items)))
    return belief


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_claim_takes_nothing_else_down_and_is_refused_itself(odd: str) -> None:
    parameters, flaw = ODD[odd]
    belief = belief_of(listed(claim("a"), claim("odd", parameters), claim("z")))
    subjects = {name: pod(name, name) for name in ("a", "odd", "z")}
    for subject in subjects.values():
        belief.apply(Changed(subject))
    plans = {name: planner_of(belief).plan(subject, names("n1"), 0.0) for name, subject in subjects.items()}
    assert isinstance(plans["a"], Offer)
    assert isinstance(plans["z"], Offer)
    refused = plans["odd"]
    assert isinstance(refused, Rejection)
    assert f"claim odd: devices.config[0].opaque: {flaw}" in str(refused)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_claim_keeps_its_device(odd: str) -> None:
    parameters, _ = ODD[odd]
    belief = belief_of(
        listed(claim("odd", parameters, device="d0"), claim("odder", data=parameters, device="d1"), claim("a"))
    )
    assert not belief.cluster.problems
    subject = pod("a", "a")
    belief.apply(Changed(subject))
    assert isinstance(planner_of(belief).plan(subject, names("n1"), 0.0), Rejection)


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_claim_in_a_watch_is_an_event(odd: str) -> None:
    event = event_of(b'{"type": "ADDED", "object": %s}' % claim("odd", ODD[odd][0]))
    assert isinstance(event, Event)
    assert event.version == "7"


@pytest.mark.parametrize("text", [b"<html>", b"", b'{"type": "ADDED", "object": {', b'{"items": [\xff]}'])
def test_what_is_no_json_is_refused_as_ever(text: bytes) -> None:
    assert isinstance(event_of(text), Setback)
    assert isinstance(page_of(Answer(200, {}, text)), Setback)
