"""What a failed read asks for: the same again, all anew, or another path; and whether it would last."""

import pytest

from extender.kube.answer import Complaint
from extender.kube.setback import Remedy, setback_in


@pytest.mark.parametrize(
    ("complaint", "remedy", "is_lasting", "is_expired"),
    [
        (Complaint(500, "InternalError", ""), Remedy.AGAIN, False, False),
        (Complaint(401, "Unauthorized", ""), Remedy.AGAIN, False, False),
        (Complaint(408, "Timeout", ""), Remedy.AGAIN, False, False),
        (Complaint(429, "TooManyRequests", ""), Remedy.AGAIN, False, False),
        (Complaint(403, "Forbidden", ""), Remedy.AGAIN, True, False),
        (Complaint(400, "BadRequest", ""), Remedy.AGAIN, True, False),
        (Complaint(404, "NotFound", ""), Remedy.REDISCOVER, True, False),
        (Complaint(410, "", ""), Remedy.RELIST, False, True),
        (Complaint(0, "Expired", ""), Remedy.RELIST, False, True),
        (Complaint(0, "Gone", ""), Remedy.RELIST, False, True),
    ],
)
def test_what_a_complaint_asks_for(complaint: Complaint, remedy: Remedy, *, is_lasting: bool, is_expired: bool) -> None:
    setback = setback_in(complaint)
    assert (setback.remedy, setback.is_lasting, setback.is_expired) == (remedy, is_lasting, is_expired)
    assert setback.is_passing == (remedy is Remedy.AGAIN and not is_lasting)


def test_a_pause_is_at_least_as_long_as_was_asked_for() -> None:
    assert setback_in(Complaint(429, "TooManyRequests", "", 7.0)).pause_s == 7.0
    assert setback_in(Complaint(429, "TooManyRequests", "")).pause_s == 0.0
