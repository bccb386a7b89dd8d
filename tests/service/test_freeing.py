"""What keeps pods from being placed is freed, by what was found out in this term alone."""

from extender.service.freeing import Vain
from tests.scheduling.cast import belief_of, claim, node, pod
from tests.service.test_attention import Wakes, attention_of


def test_nothing_that_was_found_out_in_an_earlier_term_is_remembered() -> None:
    subject = pod("p", "c")
    attention = attention_of(belief_of(node("n1"), claim("c"), subject), Wakes(), 0.0)
    freeing = attention._freeing
    freeing.refusals[subject.uid] = 3
    freeing.cleared[subject.uid] = frozenset()
    freeing._leaving[claim("c").uid] = "1"
    freeing._vain[subject.uid] = Vain(frozenset(), 9.0, 1.0)
    attention._steers[subject.uid], attention._silent = True, claim("c").uid
    attention._forget()
    known = freeing.refusals, freeing.cleared, freeing._leaving, freeing._vain, attention._steers, attention._silent
    assert not any(known)
