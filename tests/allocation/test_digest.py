from tests.allocation.digest import digest


def test_the_same_questions_have_the_same_answers_twice() -> None:
    assert digest(60) == digest(60)
