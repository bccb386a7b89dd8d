"""Whether a Binding that was sent before can still land, by what the API server says of the pod."""

from dataclasses import replace

import pytest

from extender.model.names import Uid
from extender.scheduling.assigning import kept_off
from extender.scheduling.steps import Done, Outcome, ReadPod, Refusal, Refused, Step, TouchPod, Unknown
from tests.scheduling.cast import pod
from tests.scheduling.server import CONFLICT, NOT_FOUND
from tests.scheduling.stage import N1

POD = pod("p", "a")
BOUND, ANOTHER = replace(POD, node_name=N1), replace(POD, uid=Uid("another"))


@pytest.mark.parametrize(
    ("answers", "is_kept"),
    [
        pytest.param((Done(POD),), True, id="touched"),
        pytest.param((Done(BOUND),), False, id="touched, and bound"),
        pytest.param((NOT_FOUND,), True, id="gone"),
        pytest.param((Unknown(),), False, id="unheard"),
        pytest.param((Refused(Refusal.IN_VAIN),), False, id="nothing has changed"),
        pytest.param((Refused(Refusal.FORBIDDEN),), False, id="forbidden"),
        pytest.param((CONFLICT, Done(ANOTHER)), True, id="another of its name"),
        pytest.param((CONFLICT, Done(replace(ANOTHER, node_name=N1))), True, id="another of its name, and bound"),
        pytest.param((CONFLICT, NOT_FOUND), True, id="gone meanwhile"),
        pytest.param((CONFLICT, Done(POD)), False, id="a conflict with nobody"),
        pytest.param((CONFLICT, Done(BOUND)), False, id="bound meanwhile"),
        pytest.param((CONFLICT, Unknown()), False, id="not to be read"),
    ],
)
def test_a_binding_that_was_sent_before_cannot_land_on_a_pod_that_has_moved_on_without_a_node_or_is_gone(
    answers: tuple[Outcome, ...], *, is_kept: bool
) -> None:
    told = iter(answers)
    taken = list[Step]()

    def carried() -> bool:
        work = kept_off(POD)
        step = next(work)
        while True:
            taken.append(step)
            try:
                step = work.send(next(told))
            except StopIteration as end:
                return bool(end.value)

    assert carried() is is_kept
    assert taken == [TouchPod(POD), ReadPod(POD.key)][: len(answers)]
