"""What a claim makes of a text that cannot be written keeps nobody from being told."""

import pytest

from extender.demo.apiserver.kinds import POD
from tests import kube_objects
from tests.service.door import SCHEDULER, opened
from tests.service.test_counted import until
from tests.web.raw_client import connected

# Their errors quote a byte that is no UTF-8.
SELECTORS = [
    "{'a': 1}[url('http://a/?a=%ff').getQuery()['a'][0]] == 1",
    "{'a': 1}[url('http://%ff/').getHost()] == 1",
]


@pytest.mark.parametrize("expression", SELECTORS)
async def test_an_error_that_quotes_bytes_that_are_no_text_is_told(expression: str) -> None:
    async with opened(["n1"]) as door:
        item = kube_objects.claim("odd")
        item["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": expression}}]
        door.server.registry.create(door.kind("resourceclaims"), "default", item)
        spec = {"schedulerName": SCHEDULER, "resourceClaims": [{"name": "c", "resourceClaimName": "odd"}]}
        made = door.server.registry.create(POD, "default", kube_objects.pod("odd", **spec))
        await door.seen(made)
        assert not (await door.filter(made))["NodeNames"]
        events = next(kind for kind in door.server.kinds.values() if kind.plural == "events")
        await until(lambda: bool(door.server.store.all(events)))
        (event,) = door.server.store.all(events)
        assert "no such key: \N{REPLACEMENT CHARACTER}" in event["note"]
        async with connected(door.service.server.ports[0]) as connection:
            answer = await connection.send(b"GET /v1/decisions/default/odd HTTP/1.1\r\nHost: e\r\n\r\n")
        assert answer.status == 200
        assert "no such key: \N{REPLACEMENT CHARACTER}".encode() in answer.body
        assert await door.scrape("/livez") == "ok"
