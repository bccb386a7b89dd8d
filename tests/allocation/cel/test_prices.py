"""What takes time is paid for in steps, above all where texts are long: a step stands for no more with them."""

import pytest

from extender.allocation.cel import Budget, Verdict, compile_expression, compile_selector
from extender.allocation.cel.library.urls import ESCAPED
from extender.allocation.cel.limits import COST_LIMIT, LONG
from tests.allocation.cel.devices import DEVICE
from tests.allocation.cel.expressions import seeded

# As long as a text may be, nearly.
SIDE = 511
VAST = f"'{'a' * SIDE}'.replace('a', '{'b' * SIDE}')"
SAME = f"[{VAST}].exists(s, [{VAST}].exists(t, $))"
OTHER = f"[{VAST} + 'c'].exists(s, [{VAST} + 'd'].exists(t, $))"
EACH = "lists.range(1000).all(i, $)"
ADDRESS = "1111:2222:3333:4444:5555:6666:7777:8888"
MANY = {name: ",".join(name * 100) for name in "st"}

# If let through, each of these walks over at least a hundred times as many characters as a text may have.
WALKS = {
    "sets.intersects": OTHER.replace("$", f"!sets.intersects([{MANY['s']}], [{MANY['t']}])"),
    "sets.contains": OTHER.replace("$", f"!sets.contains([{MANY['s']}], [{MANY['t']}])"),
    "list-in": OTHER.replace("$", EACH.replace("$", f"!(s in [{MANY['t']}])")),
    "list-index": OTHER.replace("$", EACH.replace("$", f"[{MANY['s']}].indexOf(t) == -1")),
    "list-equality": OTHER.replace("$", EACH.replace("$", "[s] != [t]")),
    "list-minimum": OTHER.replace("$", EACH.replace("$", "[s, t, s].min() == s")),
    "list-sorted": OTHER.replace("$", EACH.replace("$", "[s, t].isSorted()")),
    "distinct": OTHER.replace("$", f"[{MANY['s']},{MANY['t']}].distinct().size() == 2"),
    "inequality": OTHER.replace("$", EACH.replace("$", "s != t")),
    "equality": SAME.replace("$", EACH.replace("$", "s == t")),
    "order": OTHER.replace("$", EACH.replace("$", "s < t")),
    "map-in": SAME.replace("$", "[{s: 1}].all(m, " + EACH.replace("$", "t in m") + ")"),
    "map-index": SAME.replace("$", "[{s: 1}].all(m, " + EACH.replace("$", "m[t] == 1") + ")"),
    "map-optional-index": SAME.replace("$", "[{s: 1}].all(m, " + EACH.replace("$", "m[?t].hasValue()") + ")"),
    "map-literal": SAME.replace("$", EACH.replace("$", "{s: 1, t: 2}.size() == 1")),
    "map-built": SAME.replace("$", EACH.replace("$", "['a'].transformMapEntry(i, v, {s: 1}) == {t: 1}")),
    "bytes": SAME.replace("$", EACH.replace("$", "bytes(s) == bytes(t)")),
}


@pytest.mark.parametrize("text", WALKS.values(), ids=WALKS)
def test_whoever_walks_over_long_texts_pays_for_it(text: str) -> None:
    assert compile_selector(text).evaluate(DEVICE, Budget()).error == COST_LIMIT


# Python meets all of the part at every other place.
TEXT, PART, BACK = f"'{'a' * 2400}'", f"'{'a' * 1200}ba'", f"'ab{'a' * 1200}'"
SEARCHES = {
    "contains": "!t.contains(p)",
    "index": "t.indexOf(p) == -1",
    "last-index": "t.lastIndexOf(b) == -1",
    "last-index-before": "t.lastIndexOf(b, 2399) == -1",
    "split": "t.split(p).size() == 1",
    "replace": "t.replace(p, '') == t",
}


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
def test_whoever_looks_for_long_texts_in_long_ones_pays_for_what_meets(search: str) -> None:
    assert price(f"[{TEXT}].all(t, [{PART}].all(p, [{BACK}].all(b, {search})))") >= 1200 * 1200 // 1000


def price(text: str) -> int:
    budget = Budget()
    assert compile_selector(text).evaluate(DEVICE, budget).verdict is not Verdict.ERROR
    return budget.spent


@pytest.mark.parametrize(
    ("text", "least"),
    [
        pytest.param(f"isURL('http://a/' + '{'a' * 100}'.replace('a', '{'é' * 50}'))", 5_000 * ESCAPED, id="url"),
        pytest.param(f"isURL('http://a/' + '{'a' * 100}'.replace('a', '{'%ff' * 20}'))", 6_000 * ESCAPED, id="escapes"),
        pytest.param(f"url('http://a:' + '{'1' * 5_000}').getPort() != ''", 5_500, id="port"),
        pytest.param(f"['1.0.0-{'a.' * 500}a'].all(t, isSemver(t))", 2_000, id="identifiers"),
        pytest.param(f"[semver('1.0.0-{'a.' * 500}a')].all(v, v.compareTo(v) == 0)", 4_000, id="versions-ordered"),
        pytest.param(f"'{'%s' * 100}'.format([{','.join(['1'] * 100)}]) != ''", 1_000, id="formatted"),
        *(
            pytest.param(f"[{value}].all(v, {each})", least, id=each)
            for value, each, least in (
                (f"'{ADDRESS}'", "isIP(v)", 13),
                (f"'{ADDRESS}/64'", "isCIDR(v)", 13),
                (f"cidr('{ADDRESS}/64')", f"v.containsIP('{ADDRESS}')", 13),
                (f"ip('{ADDRESS}')", "string(v) != ''", 15),
                ("'1h1m1s1ms1us1ns'", "duration(v) != duration('1s')", 15),
                ("'2020-01-02T03:04:05.123456789+01:00'", "timestamp(v) != timestamp(0)", 35),
                ("timestamp(0)", "v.getFullYear() == 1970", 10),
                ("timestamp(0)", "string(v) != ''", 15),
                ("1.5e-200", "string(v) != ''", 15),
                ("quantity('1e1000')", "v.add(v).sub(1) != v", 150),
                ("quantity('1e1000')", "v.asApproximateFloat() > 0.0", 50),
            )
        ),
        pytest.param(f"[semver('1.0.0-{'a.' * 500}a')].all(v, v == v)", 4_000, id="versions-equal"),
        pytest.param("['::1', '', '::'].all(t, isIP(t) || isCIDR(t) || true)", 60, id="addresses"),
    ],
)
def test_what_takes_long_to_read_costs_more_than_what_is_walked_over(text: str, least: int) -> None:
    assert price(text) >= least


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("device.driver == 'dra.example.com' || device.driver != ''", 10),
        ("'GPU-18db0e85-5e64-4c0a-9d63-6f1d4dd0c0a5'.lastIndexOf('-') > 0", 10),
        ("'GPU-18db0e85-5e64-4c0a-9d63-6f1d4dd0c0a5'.matches('^GPU-[0-9a-f-]+$')", 250),
        ("['550.54.15-rc.1+build.5'].all(t, semver(t).isGreaterThan(semver('535.0.0')))", 60),
        ("['https://gpu.example.com:8443/metrics?all=true'].all(t, url(t).getPort() == '8443')", 120),
        ("['https://gpu.example.com:8443/metrics?all=true'].all(t, isURL(t))", 100),
        (f"'{'a' * 256}'.contains('{'a' * 128}') && '{'a' * 63}'.split('-').size() == 1", 60),
        ("[quantity('80Gi')].all(q, q.sub(quantity('1Gi')).asApproximateFloat() > 1.0)", 30),
        ("['10.0.0.1'].all(t, cidr('10.0.0.0/8').containsIP(t))", 40),
        ("['A100', 'H100', 'B200'].exists(m, m == device.driver) || true", 40),
    ],
)
def test_what_is_as_long_as_attributes_are_costs_little(text: str, most: int) -> None:
    assert price(text) <= most


def test_the_last_index_is_that_of_the_last_part_however_long_the_text() -> None:
    random = seeded("last index")
    for _ in range(200):
        text = "".join(random.choices("ab", k=random.choice((3, LONG - 1, LONG, 2 * LONG))))
        part = "".join(random.choices("ab", k=random.choice((0, 1, 2, 8, 9))))
        start = random.randrange(len(text) + 3)
        found = compile_expression(f"['{text}'].map(t, [t.lastIndexOf('{part}'), t.lastIndexOf('{part}', {start})])[0]")
        told = found.compute(DEVICE, Budget())
        expected = min(start, len(text)) if not part else text.rfind(part, 0, start + len(part))
        assert told == (text.rfind(part), expected if not part or start < len(text) else -1)
