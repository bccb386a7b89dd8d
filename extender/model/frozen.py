"""``dataclass`` for values: nobody changes one once it is made, and to make one costs little.

The standard library's frozen dataclasses set each field by way of a guard that refuses all others. Type checkers hold
all code to the same; the guard itself is there in Python's development mode (``-X dev``), as other dear checks are.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING or sys.flags.dev_mode:
    from dataclasses import dataclass
else:
    from dataclasses import dataclass as made

    def dataclass(*, frozen: bool = False, eq: bool = True, **options: bool) -> Callable[[type], type]:
        """Make a class a dataclass; one that is to be frozen has the hash that it would have, and no guard."""

        def decorated(kind: type) -> type:
            has_own_hash = "__hash__" in vars(kind)
            return made(eq=eq, unsafe_hash=frozen and eq and not has_own_hash, **options)(kind)

        return decorated
