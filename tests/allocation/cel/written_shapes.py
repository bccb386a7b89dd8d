"""Words and templates of the drawn shapes: a letter behind a ``$`` stands for what is drawn."""

SIGNS = ("", "", "-", "--", "- ", "+", "---")
NUMBERS = (
    *("0", "00", "1", "007", "9223372036854775807", "9223372036854775808", "18446744073709551615", "0x0", "0X1F"),
    *("18446744073709551616", "0x7fffffffffffffff", "0x8000000000000000", "0xffffffffffffffff", "0xg", "1.", "1.0"),
    *(".5", "1e3", "1E-3", "1e400", "1e-400", "1.e3", "0x1p3", "1_000", "1u", "0x1U", "18446744073709551615u", "1.5u"),
    *("18446744073709551616u", "00u", "0b1", "1e", "1e+", "1.2.3", "1..2", "5e-324", "2.5e-324", "123456.789", "0.1"),
    *("1.7976931348623159e308", "1.7976931348623157e308", "9007199254740993", "123456789012345678901234567890"),
    *("100000.0", "1000000.0", "1e21", "1e20", "1e-5", "0.0001", "0.00001"),
)
OF_NUMBERS = (
    *("$n", "$n+$n", "$n-$n", "$n*$n", "$n/$n", "$n%$n", "$n==$n", "$n<$n", "dyn($n)==$n", "dyn($n)<dyn($n)"),
    *("string($n)", "int($n)", "uint($n)", "double($n)", "timestamp($n)", "duration('1s')*$n", "type($n)", "$n.size()"),
    *("$n in [$n]", "dyn($n) in [dyn($n)]", "{$n:1}[dyn($n)]", "dyn($n) in {$n:1}", "$nin[$n]", "$n?$n:$n", "[$n,$n]"),
    *("[$n,$n].max()", "[$n,$n,$n].sort()", "[$n,$n,$n].distinct()", "[$n,$n].sum()", "-($n)", "!$n", "[1,2,3][$n]"),
    *("'%s %d %x'.format([$n,$n,$n])", "'%f'.format([$n])", "'%.3e'.format([$n])", "[1,2,3][dyn($n)]", "[1,2,3][?$n]"),
)
OF_DOUBLES = (
    *("string($d)", "'%s'.format([$d])", "'%f'.format([$d])", "'%.$if'.format([$d])", "'%.$ie'.format([$d])"),
    *("'%s'.format([[$d]])", "'%s'.format([{'a':$d}])", "int($d)", "uint($d)", "double(string($d))==$d"),
    *("double('$d')", "quantity('1').asApproximateFloat()*$d"),
)
PREFIXES = ("", "", "", "r", "R", "b", "B", "br", "bR", "rb")
CHARACTERS = (
    *("a", "é", "\\n", "\\\\", "\\'", '\\"', "\\x41", "\\X4a", "\\u00e9", "\\ud800", "\\U0001F600", "\\U00110000"),
    *("\\101", "\\400", "\\08", "\\a", "\\v", "\\?", "\\`", "\\ ", "\\q", "\n", "\r\n", "\r", "\t", "'", '"', "''"),
    *('""', "\\xff", "\\377", "\\000", "\\x0", "\\u12", "//", "\x0c", "\x00", "😀", "\\\n", "\\udc00", "\\e", "\\0"),
)
OF_TOKENS = ("$s", "$s+$s", "size($s)", "$s==$s", "$s // x", "[$s,$s]")
TEXTS = (
    *("", "a", "abc", "aAbB_09", "héllo wörld", "\u017fKk\u017f", "日本語", "a\nb\nc", "  x\t", "\u2028x", "😀x😁"),
    *("Straße",),
    *("foo.bar-baz/qux", "e\u0301", "ǅǆ", "\u03a3\u03c3\u03c2\u03a9", "\x00\x7f", "1.2.3", "NVIDIA H100 80GB"),
    *("\u0130\u0131iI", "aaaa", "\ufeff"),
    *("\u00a0", "٣٤", "Ⅷ²", "ab" * 20),
)
PARTS = ("", "a", "b", "é", "日", "x", " ", "ab", "😀", "A", ".")
OF_TEXTS = (
    *("$t.charAt($i)", "$t.indexOf($p)", "$t.indexOf($p,$i)", "$t.lastIndexOf($p)", "$t.lastIndexOf($p,$i)"),
    *("$t.lowerAscii()", "$t.upperAscii()", "$t.replace($p,$t)", "$t.replace($p,$t,$i)", "$t.split($p)"),
    *("$t.split($p,$i)", "$t.substring($i)", "$t.substring($i,$i)", "$t.trim()", "[$t,$t].join($p)", "[$t,$t].join()"),
    *("strings.quote($t)", "size($t)", "$t.startsWith($p)", "$t<$t", "bytes($t)", "string(bytes($t))"),
    *("$t.contains($t)",),
    *("'%s'.format([[$t]])", "'%x'.format([$t])", "'%X'.format([bytes($t)])", "[$t,$t].sort()", "{$t:$t}[$p]"),
    *("'%s'.format([{$t:$t}])", "b'\\xff'<bytes($t)", "$t.split('').reverse().join('')", "$t in [$t,$t]"),
)
CLAUSES = (
    *("%s", "%d", "%f", "%.2f", "%e", "%.0e", "%b", "%o", "%x", "%X", "%%", "%", "%q", "%.s", "%.3s", "%.3d"),
    *("%5d", "a"),
    *("é", " ", "%.10f", "%.f", "%-d", "%#x", "%S", "%v", "%.99f"),
)
FORMATTED = (
    *("1", "-1", "1u", "1.5", "-0.0", "true", "null", "'x'", "b'ab'", "[1,2]", "{'a':1}", "{1:[true]}"),
    *("[null,dyn(1)]",),
    *("{true:1.0,false:2.0}", "duration('1.5s')", "timestamp(0)", "type(1)", "dyn('NaN')", "'Infinity'", "[]", "{}"),
    *("double('nan')", "double('inf')", "optional.of(1)", "quantity('1')", "semver('1.0.0')", "ip('::1')", "dyn(1)"),
    *("[[1.5,[2.25]]]", "9223372036854775807", "1e300", "1e-300", "b'\\xff'", "['a\\n\"']", "device", "{1.0:1}"),
    *("{1u:1}",),
    *("[duration('1s'),duration('2ms')]", "[type(1)]", "device.attributes['dra.example.com'].versions"),
)
OF_FORMATS = ("$f.format($v)", "$f.format($v)", "$f.format(dyn($v))", "dyn($f).format($v)")
# Texts that a function reads, the letters with which they are damaged, and what is asked: ``$d`` is read when the
# expression is evaluated, ``$w`` may be before.
READ: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = (
    (
        (
            *("2024-02-29T12:30:45Z", "2024-02-29T12:30:45.123456789Z", "0001-01-01T00:00:00Z"),
            *("9999-12-31T23:59:59.9Z",),
            *("1969-12-31T23:59:59.5-08:00", "2024-01-01T00:00:00+14:00", "1900-03-01T00:00:00+23:59"),
        ),
        "0123456789-+:.,TZtz ",
        (
            *("timestamp($w)", "timestamp($d)", "string(timestamp($d))", "int(timestamp($d))"),
            *("timestamp($w).getHours()",),
            *("timestamp($d).getDayOfYear('-02:30')", "timestamp($w).getDayOfWeek('05:45')"),
            *("timestamp($d)-timestamp(0)",),
            *("timestamp(0).getMinutes($w)", "timestamp($d)-duration('1h')", "'%s'.format([[timestamp($d)]])"),
        ),
    ),
    (
        (
            *("1h", "1h30m", "-1.5s", "100ms", "1us", "1µs", "1ns", "9223372036s", "2562047h47m16.854775807s", ".5h"),
            *("-2562047h47m16.854775808s", "1.0000000001s", "0.1ns", "1.999999999s", "3.1415926535897932384626433s"),
        ),
        "0123456789hmsnuµ.-+ ",
        (
            *("duration($w)", "duration($d)", "string(duration($d))", "duration($d).getMilliseconds()"),
            *("-duration($d)",),
            *("duration($w).getHours()", "timestamp(0)-duration($d)", "string(timestamp(0)+duration($d))"),
        ),
    ),
    (
        (
            *("1.2.3.4", "255.255.255.255", "::", "::1", "2001:db8::1", "fe80::1%eth0", "::ffff:1.2.3.4", "ff02::1"),
            *("::1.2.3.4", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4", "169.254.1.1", "FE80::A", "10.0.0.0/8", "::/0"),
            *("2001:db8::1/64", "1.2.3.4/32", "::ffff:1.2.3.4/96"),
        ),
        "0123456789abcdefF:.%/ g",
        (
            *("ip($w)", "isIP($w)", "ip.isCanonical($w)", "cidr($w)", "isCIDR($w)"),
            *("cidr('10.0.0.0/8').containsIP($w)",),
            *("cidr($d).masked()", "cidr($d).containsCIDR('10.0.0.0/9')", "cidr('::/1').containsCIDR($w)"),
            *("ip($d).family()",),
            *("ip($d).isGlobalUnicast()", "ip($d).isLinkLocalMulticast()", "string(ip($d))", "string(cidr($d))"),
        ),
    ),
    (
        (
            *("https://u:p@example.com:8080/a%20b/c?x=1&x=2&y=%C3%A9#f", "/abs/path?q", "http://[::1]:80/"),
            *("//h/p", "*"),
            *("http://[fe80::1%25eth0]/", "mailto:a@b", "http://h/é d", "http://h?a=1;b&c=+d&e=%zz", "http://user@h:"),
            *("HTTP://EXAMPLE.com/../x", "http://h/%2F%2f?%41=%42", "http://h#a%20b#c", "x-y+z.1://h", "ftp://a_b/"),
        ),
        "abZ019:/?#[]@!$&'()*+,;=%-._~ é\"<>\\^`{|}\x01",
        (
            *("url($w)", "isURL($w)", "url($d).getScheme()", "url($d).getHost()", "url($w).getHostname()"),
            *("url($d).getPort()",),
            *("url($w).getEscapedPath()", "url($d).getQuery()", "url($d)==url('http://h')"),
        ),
    ),
    (
        # No exponent gets longer: of large ones upstream makes powers of ten, for hours.
        (
            *("1", "1Gi", "1.5", "-1", "1500m", "1n", "0.000000001", "9223372036854775807", "9223372036854775808"),
            *("5.",),
            *("100Ei", "0.5Mi", "1.1Ki", "10Pi", "12345678901234567890", "00010", "+5", "-0", ".5", "1k"),
        ),
        "0123456789.+-numkMGTPiK ",
        (
            *("quantity($w)", "isQuantity($w)", "quantity($d).isInteger()", "quantity($d).asInteger()"),
            *("sign(quantity($d))",),
            *("quantity($d).asApproximateFloat()", "quantity($d).compareTo(quantity('1500m'))", "quantity($d).add(-1)"),
            *("quantity($d).add(quantity('1Gi'))", "quantity('1Ki').sub(quantity($d))", "quantity($d)==quantity('1')"),
        ),
    ),
    (
        (
            *("1.2.3", "v1.2.3", "1.2", "1", "01.2.3", "1.2.3-rc.1", "1.2.3+b.1", "1.2.3-rc.1+b", "1.0.0-alpha.beta"),
            *("18446744073709551615.0.0", "0.0.0", "v01.02.03", "1.2.3--", "1.2.3-0a"),
        ),
        "0123456789v.-+aZ_ ",
        (
            *("semver($w)", "semver($w, true)", "isSemver($w)", "isSemver($d, true)", "semver($d).major()"),
            *("semver($d).compareTo(semver('1.2.3-rc.1'))", "semver($d, true)==semver('1.2.3')", "semver($w, false)"),
        ),
    ),
    (
        (
            "1",
            "-1",
            "007",
            "9223372036854775807",
            "18446744073709551615",
            "1.5",
            "1e3",
            "0x1p3",
            "inf",
            "NaN",
            "true",
            "T",
        ),
        "0123456789.eExXpP+-_ infNat",
        ("int($d)", "uint($d)", "double($d)", "bool($d)", "double($w)", "bool($w)", "int($w)"),
    ),
)
LETTERS = "aAbBkKsS\u017f\u03c3\u03a3日é09_- .\n"
OF_SEARCHES = ("$t.matches($p)", "$t.find($p)", "$t.findAll($p)", "$t.findAll($p,2)", "matches($t,$p)")
ATOMS = (
    *("a", "b", "A", "x", "é", "日", ".", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "\\b", "\\B", "^", "\\A", "\\z"),
    *("\\pL", "\\p{Lu}", "\\P{Ll}", "\\p{Greek}", "\\p{Han}", "\\pN", "\\p{letter}", "\\p{Zs}", "\\p{LC}", "\\pM"),
    *("\\x41", "\\x{65e5}", "\\.", "\\-", "\\n", "\\Q.a\\E", "\\101", "\\p{Cf}", "\\p{ascii}", "k", "s", "\u017f"),
    *("i", "\u03c3"),
)
PATTERNS = (
    *("$p$p$p", "$p$p", "(?:$p|$p)", "($p)", "$p|$p", "$p*", "$p+", "$p?", "$p*?", "$p+?", "$p??", "$p{2}", "$p{1,3}"),
    *("$p{2,}?", "$p{,2}", "$p{0}", "(?i:$p)", "(?s:$p)", "(?m:$p)", "(?U:$p)", "(?ims)$p", "(?-i:$p)", "(?i)$p"),
    *("(?P<n1>$p)", "(?<n>$p)", "(?:$p)*", "(?:$p){2,4}"),
)
IN_BRACKETS = (
    *("a", "b-d", "A-Z", "0-9", "é", "\u03b1-\u03c9", "\\d", "\\w", "\\pL", "\\P{Lu}", "[:digit:]", "[:^alpha:]"),
    *("-", "]", "\\]"),
    *("^", "k", "s", "\\x{100}-\\x{200}", "\\-", "\\n", "日", ".", "Z-a", "\\S", "\\p{number}"),
)
