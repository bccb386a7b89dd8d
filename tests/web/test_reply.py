import sys
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.model.names import Uid
from extender.web.reply import bind_reply, error_reply, filter_reply, preempt_reply, prioritize_reply
from extender.web.request import Candidates, candidates_of
from extender.web.verbs import Filtered, Victims
from tests.oracle_program import Oracle
from tests.web.record import NAMES, POD, recorded

ASKED = candidates_of(recorded("filter-names"), 0)
WHOLE = candidates_of(recorded("filter-nodes"))
TEXT = 'no "GPU" is free'


def understood(oracle: Oracle, verb: str, reply: bytes) -> Any:
    """Tell what kube-scheduler's types make of a reply."""
    (answer,) = oracle.ask("wire", [{"verb": verb, "reply": reply.decode()}])
    return answer["understood"]


FILTERED = {
    "all-pass": (Filtered(names=ASKED.names), NAMES, {}),
    "some-pass": (Filtered(names=["worker-2"]), ["worker-2"], {}),
    "all-rejected": (Filtered(text=TEXT), [], dict.fromkeys(NAMES, TEXT)),
    "nobody": (Filtered(), [], {}),
}


@pytest.mark.parametrize("case", FILTERED)
def test_go_understands_what_filter_answers(oracle: Oracle, case: str) -> None:
    answer, names, failed = FILTERED[case]
    assert understood(oracle, "filter", filter_reply(ASKED, answer)) == {
        "Nodes": None,
        "NodeNames": names,
        "FailedNodes": {},
        "FailedAndUnresolvableNodes": failed,
        "Error": "",
    }


def test_q1_all_rejected_nodes_carry_one_text(oracle: Oracle) -> None:
    reply = understood(oracle, "filter", filter_reply(ASKED, Filtered(text=TEXT)))
    assert set(reply["FailedAndUnresolvableNodes"].values()) == {TEXT}


def test_whole_nodes_are_answered_with_the_nodes_that_passed(oracle: Oracle) -> None:
    reply = filter_reply(WHOLE, Filtered(names=["worker-2"]))
    result = understood(oracle, "filter", reply)
    assert result["NodeNames"] is None
    assert result["FailedAndUnresolvableNodes"] == {}
    assert WHOLE.nodes is not None
    assert orjson.loads(reply)["Nodes"]["items"] == [WHOLE.nodes["worker-2"]]
    assert [node["metadata"] for node in result["Nodes"]["items"]] == [{"name": "worker-2", "labels": {"zone": "a"}}]


def test_w1_an_error_of_filter_or_bind_is_a_field_of_the_answer(oracle: Oracle) -> None:
    for verb, reply in (("filter", filter_reply(ASKED, Filtered(error=TEXT))), ("bind", bind_reply(TEXT))):
        assert understood(oracle, verb, reply)["Error"] == TEXT


def test_a_bound_pod_is_answered_without_error(oracle: Oracle) -> None:
    assert understood(oracle, "bind", bind_reply("")) == {"Error": ""}


def test_half_a_character_in_a_text_does_not_cost_the_answer(oracle: Oracle) -> None:
    assert understood(oracle, "bind", error_reply("pod \ud800")) == {"Error": "pod ?"}


@pytest.mark.parametrize(
    ("scores", "understood_as"),
    [
        pytest.param([3, 0, 10], {"worker-1": 3, "worker-3": 10}, id="some"),
        pytest.param([-5, 2**62, 1], {"worker-1": -5, "worker-2": 2**62, "worker-3": 1}, id="int64"),
        pytest.param([0, 0, 0], {}, id="none-better"),
        pytest.param(None, {}, id="no-opinion"),
        pytest.param([], {}, id="no-scores"),
    ],
)
def test_go_understands_scores(oracle: Oracle, scores: Sequence[int] | None, understood_as: Mapping[str, int]) -> None:
    pairs = understood(oracle, "prioritize", prioritize_reply(ASKED, scores))
    assert {pair["Host"]: pair["Score"] for pair in pairs} == understood_as
    assert isinstance(pairs, list)


def test_a_number_of_scores_that_is_not_that_of_names_is_a_bug() -> None:
    with pytest.raises(ValueError, match="2 scores for 3 names"):
        prioritize_reply(ASKED, [1, 2])


def test_w1_no_null_stands_among_victims(oracle: Oracle) -> None:
    reply = preempt_reply({"worker-1": Victims((Uid("a"), Uid("b")), 2), "worker-2": Victims(())})
    assert b"null" not in reply
    assert understood(oracle, "preempt", reply)["NodeNameToMetaVictims"] == {
        "worker-1": {"Pods": [{"UID": "a"}, {"UID": "b"}], "NumPDBViolations": 2},
        "worker-2": {"Pods": [], "NumPDBViolations": 0},
    }


def test_vetoing_every_node_is_an_empty_map(oracle: Oracle) -> None:
    assert understood(oracle, "preempt", preempt_reply({})) == {"NodeNameToMetaVictims": {}}


NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.text('",[]\\{}:a', max_size=4)


@settings(max_examples=200)
@given(st.lists(NAME, min_size=1, max_size=6, unique=True), st.data(), st.text(min_size=1, max_size=8))
def test_every_answer_says_what_was_meant(names: list[str], data: st.DataObject, text: str) -> None:
    quick_from = data.draw(st.sampled_from([0, sys.maxsize]))
    asked = candidates_of(orjson.dumps({"Pod": POD, "Nodes": None, "NodeNames": names}), quick_from)
    passed = [name for name in names if data.draw(st.booleans())]
    written = orjson.loads(filter_reply(asked, Filtered(names=passed)))
    assert (written["NodeNames"], written["FailedAndUnresolvableNodes"]) == (passed, {})
    written = orjson.loads(filter_reply(asked, Filtered(text=text)))
    assert written["FailedAndUnresolvableNodes"] == dict.fromkeys(names, text.encode(errors="replace").decode())
    assert_everything_echoes(asked)


def assert_everything_echoes(asked: Candidates) -> None:
    assert orjson.loads(filter_reply(asked, Filtered(names=asked.names)))["NodeNames"] == list(asked.names)
