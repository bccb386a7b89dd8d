"""What a watch brings is told in order, nothing twice and nothing backwards."""

import json

from extender.kube.delivery import Delivery
from extender.kube.recent import Recent
from extender.kube.resource import NODES, Served
from extender.kube.setback import Remedy
from extender.kube.told import Told
from extender.model.change import Changed, Gone


def line(kind: str, version: int, name: str = "n1") -> bytes:
    metadata = {"name": name, "uid": name, "resourceVersion": str(version)}
    return json.dumps({"type": kind, "object": {"kind": "Node", "metadata": metadata}}).encode()


def delivered(*lines: bytes) -> tuple[Delivery, list[Told]]:
    """Deliver *lines* to somebody who knows all up to version 5."""
    told = list[Told]()
    delivery = Delivery(Served(NODES, "v1"), told.append, "5", Recent())
    for _ in delivery.steps(list(lines)):
        pass
    return delivery, told


def test_what_was_told_before_is_not_told_again() -> None:
    delivery, told = delivered(line("MODIFIED", 4), line("ADDED", 5), line("DELETED", 5))
    assert (told, delivery.position, delivery.count, delivery.setback) == ([], "5", 0, None)


def test_news_are_told_in_order_and_move_the_position() -> None:
    delivery, told = delivered(line("MODIFIED", 6), line("BOOKMARK", 8), line("DELETED", 7), line("DELETED", 9))
    assert [type(each) for each in told] == [Changed, Gone]
    assert (delivery.position, delivery.count, delivery.setback) == ("9", 3, None)


def test_a_bookmark_where_we_are_is_no_news_and_one_of_the_past_has_all_listed_anew() -> None:
    delivery, _ = delivered(line("BOOKMARK", 5))
    assert (delivery.position, delivery.count, delivery.setback) == ("5", 0, None)
    delivery, told = delivered(line("BOOKMARK", 4), line("MODIFIED", 6))
    assert delivery.setback is not None
    assert delivery.setback.remedy is Remedy.RELIST
    assert (told, delivery.position, delivery.count) == ([], "5", 0)


def test_nothing_is_told_after_what_cannot_be_read() -> None:
    delivery, told = delivered(line("MODIFIED", 6), b"half a line", line("MODIFIED", 7))
    assert (len(told), delivery.position, delivery.setback is not None) == (1, "6", True)
