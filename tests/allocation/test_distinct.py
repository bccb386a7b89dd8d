"""Numbers once, in order: as numpy has them, without what numpy imports for it."""

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from extender.allocation.distinct import distinct, either
from tests.tree import ROOT

NUMBERS = st.lists(st.integers(-3, 9)).map(lambda items: np.array(items, np.int64))
# A node is planned on, as for the first pod, and its metrics are asked for.
PROGRAM = """
import sys
from tests.scheduling.machines import fleet, planner_with_taste, wanted
from tests.scheduling.cast import pod
from extender.model.change import Changed
belief = fleet({"a": "dgx-1v", "b": "dgx-1v"}, {"a": (0, 1)})
planner = planner_with_taste(belief)
for name in ("c", "d"):
    belief.apply(Changed(wanted(name, 2)))
    print(type(planner.plan(pod(name, name), None, 0.0)).__name__)
print(*(name for name in ("numpy.ma", "numpy.random") if name in sys.modules))
"""


@given(NUMBERS, NUMBERS)
def test_every_number_is_there_once_in_order(left: np.ndarray, right: np.ndarray) -> None:
    assert distinct(left).tolist() == sorted(set(left.tolist()))
    assert either(left, right).tolist() == sorted({*left.tolist(), *right.tolist()})


def test_a_plan_does_without_what_of_numpy_is_large() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.split() == ["Offer", "Offer"]
