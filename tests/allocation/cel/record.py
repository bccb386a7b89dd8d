"""Writes down what Kubernetes' environment says of every written case: ``python -m tests.allocation.cel.record``."""

import json
from pathlib import Path

from tests.allocation.cel.cases import FAILING, REFUSED, TRUE
from tests.allocation.cel.written import containers, devices, dispatch, library, numbers, texts
from tests.allocation.cel.written.fixtures import asked
from tests.oracle_program import Answer, Oracle, built

FILE = Path(__file__).parent / "written" / "answers.jsonl"
MODULES = (devices, numbers, texts, containers, library, dispatch)


def written() -> list[tuple[str, str]]:
    """Return every case: the device it is about, and the expression."""
    cases = [(name, text) for module in MODULES for name, texts_of in module.CASES.items() for text in texts_of]
    cases += [("bare", text) for table in (TRUE, FAILING, REFUSED) for group in table.values() for text in group]
    return list(dict.fromkeys(cases))


def told(oracle: Oracle) -> list[Answer]:
    """Ask for every case; the wording of errors is not kept."""
    cases = written()
    answers = oracle.ask("cel", [asked(name, text) for name, text in cases])
    return [
        {"device": name, "expression": text, "outcome": answer["outcome"]}
        | ({"value": _in_order(answer["value"])} if answer["outcome"] == "value" else {})
        for (name, text), answer in zip(cases, answers, strict=True)
    ]


def _in_order(value: Answer) -> Answer:
    """Give maps an order: Go has none."""
    inner = value["value"]
    if value["type"] == "list":
        inner = [_in_order(item) for item in inner]
    elif value["type"] == "map":
        inner = sorted(([_in_order(key), _in_order(item)] for key, item in inner), key=json.dumps)
    elif value["type"] == "optional" and inner is not None:
        inner = _in_order(inner)
    return {"type": value["type"], "value": inner}


if __name__ == "__main__":
    FILE.write_text("".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in told(built())))
