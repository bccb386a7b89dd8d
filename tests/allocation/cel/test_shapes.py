"""Numbers and texts, drawn in the shapes in which languages differ, are to us what they are to Kubernetes."""

import os

import pytest

from tests.allocation.cel.computed import computed, plain
from tests.allocation.cel.expressions import seeded
from tests.allocation.cel.shapes import SHAPES
from tests.allocation.cel.written.fixtures import asked, sight
from tests.oracle_program import Oracle

DRAWN = int(os.environ.get("DRA_CASES", "400"))


@pytest.mark.parametrize("shape", SHAPES)
def test_drawn_shapes_have_the_value_that_kubernetes_computes(oracle: Oracle, shape: str) -> None:
    random, full = seeded(f"shapes: {shape}"), sight("full")
    texts = list(dict.fromkeys(SHAPES[shape](random) for _ in range(DRAWN)))
    answers = oracle.ask("cel", [asked("full", text) for text in texts])
    told = [
        (text, theirs, mine)
        for text, answer in zip(texts, answers, strict=True)
        if (theirs := (answer["outcome"], plain(answer["value"]) if answer["outcome"] == "value" else None))
        != (mine := computed(text, full))
    ]
    assert told == []
    assert sum(answer["outcome"] == "value" for answer in answers) > len(texts) // 20
