"""Values of every type, and what is done with them whatever they are: ``$v`` is a value, ``$l`` a list of some."""

VALUES = (
    *("0", "1", "1.0", "1u", "-0.0", "2", "3u", "-1", "1e300", "5e-324", "9223372036854775807"),
    *("9223372036854775807.0", "18446744073709551615u", "9007199254740993", "9007199254740992.0", "true"),
    *("false", "null", "'a'", "'1'", "b'a'", "[]", "[1]", "[1.0]", "[[1]]", "['a']", "[null]"),
    *("[dyn(1), dyn(1.0)]", "{}", "{'a': 1}", "{1: 1}", "{1u: 1.0}", "optional.of(1)", "optional.none()"),
    *("[optional.of(1)]", "optional.of('a')", "{'a': optional.of({'a': 1})}", "semver('1.0.0')"),
    *("semver('1.0.0+b')", "quantity('1')", "quantity('1000m')", "quantity('1').add(0)", "int", "timestamp(0)"),
    *("timestamp('1970-01-01T01:00:00+01:00')", "duration('1s')", "duration('1000ms')", "type(1)"),
    *("ip('1.1.1.1')", "cidr('1.1.1.1/8')", "url('http://a')", "format.uri()", "[quantity('1')]"),
    *("[semver('1.0.0')]", "device", "device.attributes['nope']", "device.attributes['dra.example.com'].ints"),
    *("1 / 0", "device.attributes['dra.example.com'].model"),
    *("device.attributes['dra.example.com'].driverVersion", "device.attributes['dra.example.com'].versions"),
    *("device.capacity['dra.example.com'].memory",),
)
OF_LISTS = (
    *("$l.sort()", "$l.min()", "$l.max()", "$l.sum()", "$l.distinct()", "$l.isSorted()", "$l.reverse()"),
    *("$l.first()", "$l.last()", "$l.flatten()", "$l.flatten(2)", "$l.slice(1, 2)", "$l.unwrapOpt()"),
    *("$l.join()", "$l.join('-')", "$l.indexOf($v)", "$l.lastIndexOf($v)", "$v in $l", "$l.includes($v)"),
    *("$l[$v]", "$l[?$v]", "$l == $l", "$l + $l", "sets.contains($l, $l)", "sets.equivalent($l, $l)"),
    *("sets.intersects($l, $l)", "$l.sortBy(x, x)", "'%s'.format($l)", "$l.map(x, x == $v)"),
    *("$l.filter(x, x == $v)", "$l.exists(x, x < $v)", "$l.all(x, x != $v)", "$l.sort() == $l"),
    *("$l.exists_one(x, x == $v)", "$l.transformMap(i, x, x)", "$l.transformList(i, x, [i, x])"),
    *("'%d %x'.format($l)",),
)
OF_VALUES = (
    *("$v == $v", "$v != $v", "$v < $v", "$v >= $v", "$v + $v", "$v - $v", "$v * $v", "$v / $v", "$v % $v"),
    *("-$v", "!$v", "$v && $v", "$v || $v", "$v ? 1 : 2", "$v in $v", "$v.a", "$v.?a", "has($v.a)"),
    *("true ? has($v.a) : false", "$v.a.a", "$v[$v]", "$v[?$v]", "$v in [1, 2]", "$v in ['a', 'A100']"),
    *("$v in [1.0]", "$v in [1u]", "$v in [true]", "size($v)", "$v in {1: 1}", "$v in {'a': 1}"),
    *("$v in {1.0: 1}", "$v in {1u: 1}", "{1: 1}[$v]", "{'a': 1}[$v]", "{1.0: 1}[$v]", "type($v) == type($v)"),
    *("string($v)", "int($v)", "uint($v)", "double($v)", "bool($v)", "bytes($v)", "timestamp($v)"),
    *("duration($v)", "optional.of($v) == optional.of($v)", "optional.ofNonZeroValue($v)", "$v.hasValue()"),
    *("$v.value()", "$v.or($v)", "$v.orValue($v)", "$v.optMap(x, x)", "$v.all(x, x == $v)"),
    *("$v.exists(x, y, x == y)", "$v.map(x, x).size()", "$v.includes($v)", "$v.contains($v)", "$v.startsWith($v)"),
    *("$v.matches('a')", "$v.matches($v)", "$v.findAll('.', $v)", "$v.compareTo($v)", "$v.isLessThan($v)"),
    *("$v.add($v)", "$v.sub($v)", "sign($v)", "$v.major()", "$v.getHours()", "$v.containsIP($v)"),
    *("$v.validate($v)", "$v.indexOf($v)", "$v.format([$v])", "cel.bind(z, $v, z == $v)", "$v.size()"),
)
