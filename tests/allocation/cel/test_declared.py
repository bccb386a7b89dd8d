"""The table of functions and macros is that of Kubernetes' own environment."""

import re

from extender.allocation.cel.macros import LOOPS
from extender.allocation.cel.overloads import table
from tests.oracle_program import Oracle

# What is a node of its own in our tree, or inserted by a macro.
NODES = {"_&&_", "_||_", "_?._", "@not_strictly_false"}
NAMES = {"cel.@mapInsert": "@mapInsert"}
OTHER_MACROS = {"has:1:false", "bind:3:true", "optMap:2:true", "optFlatMap:2:true"}


def plainly(is_member: object, parameters: list[str], result: str) -> str:
    """Write a signature; the parameters of its types are A, B and so on, whatever they are called."""
    text = re.sub(r"<([A-Z])>", r"\1", f"{is_member} {parameters} -> {result}")
    names: dict[str, str] = {}
    return re.sub(r"\b[A-Z]\b", lambda match: names.setdefault(match[0], "ABC"[len(names)]), text)


def test_every_function_has_upstreams_variants_in_upstreams_order(oracle: Oracle) -> None:
    (environment,) = oracle.ask("cel-declared", [{}])
    theirs: dict[str, list[str]] = {}
    for one in environment["overloads"]:
        if one["function"] not in NODES:
            variants = theirs.setdefault(NAMES.get(one["function"], one["function"]), [])
            variants.append(plainly(one["isMember"], one["parameters"], one["result"]))
    ours = {
        name: [plainly(one.is_member, list(map(str, one.parameters)), str(one.result)) for one in variants]
        for name, variants in table().items()
    }
    assert ours == theirs


def test_every_macro_is_expanded(oracle: Oracle) -> None:
    (environment,) = oracle.ask("cel-declared", [{}])
    ours = {f"{name}:{count}:true" for name, counts in LOOPS.items() for group in counts for count in group}
    assert ours | OTHER_MACROS == set(environment["macros"])
