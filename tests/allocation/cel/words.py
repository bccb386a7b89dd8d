"""Literals of every type, and the strings that functions read something out of."""

from extender.allocation.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DEVICE,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NAMED_FORMAT,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
)

MODEL = "device.attributes['dra.example.com']"
LITERALS: dict[Type, tuple[str, ...]] = {
    BOOL: ("true", "false", f"{MODEL}.mig", "device.allowMultipleAllocations"),
    INT: (
        *("0", "1", "-1", "2", "3"),
        *("5", "100", "-7", "9223372036854775807", "-9223372036854775808", "9007199254740993"),
        *(f"{MODEL}.index", f"{MODEL}.ints[1]"),
    ),
    UINT: ("0u", "1u", "2u", "7u", "18446744073709551615u", "9223372036854775808u"),
    DOUBLE: (
        *("0.0", "-0.0", "1.0", "1.5", "-2.5", "3.0", "1e21", "1e-7", "9223372036854775807.0", "0.1", "123456.789"),
        *("double('nan')", "double('inf')", "double('-inf')", "1e308", "5e-324"),
    ),
    STRING: (
        *("''", "'a'", "'A'", "'abc'", "'héllo'"),
        *("'\\u65e5\\u672c'", "'\\U0001F600x'", "'a,b,,c'", "' x\\t'", "'é\\u0301'"),
        *("'a\"b\\\\c\\n'", "'1'", "'true'", "'[a-c]+'"),
        *(f"{MODEL}.model", "device.driver", "'%s'", "'\\x00\\x7f\\u200b'"),
    ),
    BYTES: ("b''", "b'a'", "b'\\xff\\x00'", "b'abc'", "b'\\xc3\\xa9'"),
    DURATION: (
        *("duration('0')", "duration('1s')", "duration('-1.5h')", "duration('1ns')", "duration('90m1ms')"),
        *("duration('2562047h')", "duration('-1us')", "duration('100000h0.000000001s')"),
    ),
    TIMESTAMP: (
        *("timestamp(0)", "timestamp('2020-02-29T23:59:59.999999999Z')", "timestamp('0001-01-01T00:00:00Z')"),
        *("timestamp('9999-12-31T23:59:59Z')", "timestamp('2021-07-01T12:30:00+05:30')", "timestamp(-1)"),
    ),
    QUANTITY: (
        *("quantity('0')", "quantity('1')", "quantity('-1')"),
        *("quantity('40Gi')", "quantity('1500m')", "quantity('1e3')"),
        *("quantity('1n')", "quantity('9223372036854775807')", "quantity('1E')", "quantity('0.1')", "quantity('1e20')"),
        "device.capacity['dra.example.com'].memory",
    ),
    SEMVER: (
        *("semver('1.2.3')", "semver('1.10.0')", "semver('1.0.0-alpha.1')", "semver('1.0.0-alpha.beta+b')"),
        *("semver('v1', true)", "semver('18446744073709551615.0.0')", f"{MODEL}.driverVersion", f"{MODEL}.preview"),
    ),
    URL: (
        *("url('https://u:p@example.com:8080/a%20b/c?x=1&x=2&y=%C3%A9#f')", "url('/abs/path?q')"),
        "url('http://[::1]/')",
        *("url('mailto:a@b')", "url('http://h')", "url('x://h:1/?a=b;c')", "url('http://h/é d')"),
    ),
    IP: ("ip('127.0.0.1')", "ip('::1')", "ip('10.0.0.1')", "ip('fe80::1')", "ip('255.255.255.255')", "ip('ff02::1')"),
    CIDR: (
        *("cidr('10.0.0.0/8')", "cidr('192.168.1.1/24')"),
        *("cidr('::/0')", "cidr('2001:db8::1/64')", "cidr('1.2.3.4/32')"),
    ),
    NAMED_FORMAT: ("format.dns1123Label()", "format.uri()", "format.uuid()", "format.date()", "format.datetime()"),
    NULL: ("null",),
    DEVICE: ("device",),
    DYN: ("dyn(1)", f"{MODEL}.ints", f"{MODEL}.strings", f"{MODEL}.nope"),
}
ZONES = ("UTC", "", "+02:00", "-02:30", "05:45", "x", "+25:00", "-00:30")
PATTERNS = (
    *("a", "[a-c]+", "^$", "", "(a)|(b)", "\\d+", "(?i)ABC"),
    *(".", "(", "é*", "a{2}", "b?", "\\bx", "[^,]+", "\\pL"),
)
SEMVERS = (
    *("1.2.3", "v1.2.3", "1.2", "1", "01.2.3", "1.2.3-rc.1"),
    *("1.2.3-01", "1.2.3+b", "", "1.2.3.4", "-1.0.0", " 1.0.0"),
)
QUANTITIES = ("1", "1Gi", "1.5", "-1", "1e3", "1E", "1e", "", "1.5Gi", "abc", "1m", "1_0", ".5", "5.", "+1", "1n", "1 ")
ADDRESSES = (
    *("127.0.0.1", "::1", "2001:DB8::68", "::ffff:1.2.3.4", "fe80::1%eth0"),
    *("1.2.3", "01.2.3.4", "", "::", "1::2::3"),
)
NETWORKS = (
    *("10.0.0.0/8", "10.0.0.1/8", "::/0", "1.2.3.4/33"),
    *("10.0.0.0", "10.0.0.0/08", "::ffff:1.2.3.4/96", "2001:db8::/32"),
)
URLS = (
    *("https://a.b/c", "/x", "x", "", "http://a b", "http://h:x/", "http://[::1]:80/", "http://[::1", "http://%41/"),
    *("http://h/%zz", "HTTP://H", "://", "http://u@h/", "http://h?a=1&b"),
    *("*", "//h/p", "http://h/a?b#c", "a:b", "1a://b"),
)
NUMBERS = (
    *("1", "-1", "+1", "1.5", "", "x", "0x10", "1e3", "inf", "-Infinity", "NaN", "1_000", "9223372036854775808"),
    *("18446744073709551615", "-0", "1e400", "0x1p-2", " 1", "007", ".5", "5.", "1e", "1e-400"),
)
DURATIONS = (
    *("1s", "-1.5h", "1h1m1s", "1", "", "1d", ".5s"),
    *("1.s", "0", "+1ns", "1us1µs", "9223372036854775808ns", "1 s", "1.0000000009s"),
)
TIMESTAMPS = (
    *("2020-01-01T00:00:00Z", "2020-02-30T00:00:00Z"),
    *("2020-01-01T00:00:00.5+01:00", "2020-01-01", "10000-01-01T00:00:00Z"),
    *("2020-01-01T24:00:00Z", "2020-01-01T00:00:60Z"),
    *("2020-01-01t00:00:00z", "0000-01-01T00:00:00Z", "2020-01-01T1:00:00Z"),
)
NAMED = (
    *("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uri", "uuid", "byte", "date"),
    *("datetime", "dns1123LabelPrefix", "nope", ""),
)
VALUES = (
    *("ok-name", "Not_ok", "a.b.c", "1a", "example.com/name"),
    *("-bad", "https://e.com", "/x", "aGVsbG8=", "###", "2024-02-29"),
    *("2023-02-29", "2024-02-29T00:00:00Z", "123e4567-e89b-12d3-a456-426614174000", "", "a" * 64, "a/b/c", "a-", "é"),
    *("2024-02-29T00:00:00.5+01:00", "a" * 254, "A_b.c", "/name", "x/", "aGVsbG8", "2024-2-9"),
)
FORMATS = (
    *("%s", "%d", "%f", "%.2f", "%e", "%b", "%o", "%x"),
    *("%X", "%%", "%.3e", "%s %s", "%", "a%db", "%q", "%.0f", "%10d"),
)
PIECES = ("a", "", ",", "l", "abc", "é", "A", "b", "x", "日", " ")

# The strings that a function takes mostly: as its only argument, or after its target.
WORDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("matches", "find", "findAll"), PATTERNS),
    **dict.fromkeys(("semver", "isSemver"), SEMVERS),
    **dict.fromkeys(("quantity", "isQuantity"), QUANTITIES),
    **dict.fromkeys(("ip", "isIP", "ip.isCanonical", "containsIP"), ADDRESSES),
    **dict.fromkeys(("cidr", "isCIDR", "containsCIDR"), NETWORKS),
    **dict.fromkeys(("url", "isURL"), URLS),
    **dict.fromkeys(("int", "uint", "double"), NUMBERS),
    "bool": ("true", "false", "1", "t", "TRUE", "tRUE", "", "yes"),
    "duration": DURATIONS,
    "timestamp": TIMESTAMPS,
    "format.named": NAMED,
    "validate": VALUES,
    **dict.fromkeys(("getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"), ZONES),
    **dict.fromkeys(("getHours", "getMinutes", "getSeconds", "getMilliseconds"), ZONES),
    **dict.fromkeys(("contains", "startsWith", "endsWith", "indexOf", "lastIndexOf"), PIECES),
    **dict.fromkeys(("replace", "split", "join", "substring"), PIECES),
}
