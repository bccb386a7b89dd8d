"""Answers to bytes: the bodies that kube-scheduler decodes with Go's encoding/json.

A node that passes and is not of the request fails the whole call there; a score that is no integer, or a null among
the victims, is worse: nobody notices, or the scheduler crashes.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Final

import orjson

from extender.web.names import Names
from extender.web.request import Candidates
from extender.web.verbs import Filtered, Scores, Victims, Written

NO_SCORES: Final = b"[]"
# kube-scheduler puts errors into conditions and events, of which it cuts off what is longer.
MOST_LETTERS: Final = 1024
BOUND: Final = b'{"Error":""}'
NONE_FAILED: Final = b"{}"
NEXT: Final = b',{"Host":'


def error_reply(text: str) -> bytes:
    """Answer filter or bind with an error: the two whose answers have a field for it."""
    return orjson.dumps({"Error": said(text)})


def bind_reply(error: str) -> bytes:
    """Answer bind."""
    return error_reply(error) if error else BOUND


def filter_reply(asked: Candidates, answer: Filtered) -> bytes:
    """Answer filter in the mode in which it was asked."""
    if answer.error:
        return error_reply(answer.error)
    return b"".join((
        b'{"NodeNames":', b"null" if asked.nodes is not None else _array(answer.names),
        b',"Nodes":', b"null" if asked.nodes is None else _node_list(asked.nodes, answer.names),
        # FailedNodes asks for others to be evicted: up to 1.37 that is tried with in-tree filters alone, and in vain.
        b',"FailedNodes":{},"FailedAndUnresolvableNodes":', _each(asked.names, answer.text), b',"Error":""}',
    ))  # fmt: skip


def _array(names: Sequence[str]) -> bytes:
    return names.json if isinstance(names, Names) else orjson.dumps(list(names))


def _node_list(nodes: Mapping[str, object], names: Sequence[str]) -> bytes:
    return orjson.dumps({"metadata": {}, "items": [nodes[name] for name in names]})


def _each(names: Names, text: str) -> bytes:
    """Write a map from each name to *text*; an empty one where nothing is to be said."""
    if not (names and text):
        return NONE_FAILED
    if not names.is_plain:
        return orjson.dumps(dict.fromkeys(names, said(text)))
    # Plain names hold no commas: each stands between two of them.
    value = orjson.dumps(said(text))
    return b"{" + names.json[1:-1].replace(b",", b":" + value + b",") + b":" + value + b"}"


def prioritize_reply(asked: Candidates, scores: Scores) -> bytes:
    """Answer prioritize. A node that is left out counts as 0."""
    return scores.json if isinstance(scores, Written) else written(asked.names, scores or ())


def written(names: Names, scores: Sequence[int]) -> bytes:
    """Write the answer to prioritize: each of *names* with its score, where there are any."""
    if not scores:
        return NO_SCORES
    if len(scores) != len(names):
        raise ValueError(f"{len(scores)} scores for {len(names)} names")
    if names.is_plain:
        return _scores(names.quoted(), scores)
    pairs = zip(names, scores, strict=True)
    return orjson.dumps([{"Host": name, "Score": score} for name, score in pairs if score])


def _scores(quoted: Sequence[bytes], scores: Sequence[int]) -> bytes:
    """Write the scores of names as they were read: what follows each is most often what follows others, too."""
    hosts, told = list(compress(quoted, scores)), list(filter(None, scores))
    if not told:
        return NO_SCORES
    ends = {score: b',"Score":%d}' % score + NEXT for score in set(told)}
    pieces = [b""] * (2 * len(told))
    pieces[::2], pieces[1::2] = hosts, [ends[score] for score in told]
    return NEXT.replace(b",", b"[") + b"".join(pieces).removesuffix(NEXT) + b"]"


def preempt_reply(accepted: Mapping[str, Victims]) -> bytes:
    """Answer preempt: always with UIDs, whatever the scheduler sent; an empty list of victims is a list."""
    return orjson.dumps({"NodeNameToMetaVictims": {node: _meta(victims) for node, victims in accepted.items()}})


def _meta(victims: Victims) -> dict[str, object]:
    return {"Pods": [{"UID": uid} for uid in victims.pods], "NumPDBViolations": victims.violations}


def said(text: str) -> str:
    """Leave what can be said of *text*: half a character or a million must not cost the answer."""
    return text[:MOST_LETTERS].encode(errors="replace").decode()
