"""The named formats of Kubernetes, with the messages of apimachinery."""

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Iterator

from extender.allocation.cel.library.clock import days_in
from extender.allocation.cel.library.urls import problem_of
from extender.allocation.cel.limits import Budget
from extender.allocation.cel.overloads import Overload, function, metered, method
from extender.allocation.cel.types import NAMED_FORMAT, STRING, list_of, optional_of
from extender.allocation.cel.values import NONE, NamedFormat, Optional

Problems = tuple[str, ...]
LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = LABEL + r"(\." + LABEL + ")*"
LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
VALUE = f"({KEY})?"
ALPHANUMERIC = "lower case alphanumeric characters"
ENDS = "and must start and end with an alphanumeric character"
LABEL_RULE = f"a lowercase RFC 1123 label must consist of {ALPHANUMERIC} or '-', {ENDS}"
SUBDOMAIN_RULE = f"a lowercase RFC 1123 subdomain must consist of {ALPHANUMERIC}, '-' or '.', {ENDS}"
LABEL_1035_RULE = (
    f"a DNS-1035 label must consist of {ALPHANUMERIC} or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
CHARACTERS = f"alphanumeric characters, '-', '_' or '.', {ENDS}"
KEY_RULE = f"must consist of {CHARACTERS}"
VALUE_RULE = f"a valid label must be an empty string or consist of {CHARACTERS}"
UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}")
BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
# Longer strings fail on their length before any pattern looks at them: the patterns are not linear.
MAX_LABEL, MAX_SUBDOMAIN, MAX_PATTERN = 63, 253, 1024


def rule(message: str, pattern: str, *examples: str) -> str:
    """Write what apimachinery says of a pattern that does not match."""
    given = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {given}regex used for validation is '{pattern}')"


def too_long(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def length(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def fits(pattern: str, text: str) -> bool:
    return len(text) <= MAX_PATTERN and re.fullmatch(pattern, text) is not None


def label(text: str) -> Problems:
    found = [too_long(MAX_LABEL)] if length(text) > MAX_LABEL else []
    if not fits(LABEL, text):
        found.append(
            "must not contain dots" if fits(SUBDOMAIN, text) else rule(LABEL_RULE, LABEL, "my-name", "123-abc")
        )
    return tuple(found)


def subdomain(text: str, unit: str = "characters") -> Problems:
    found = [too_long(MAX_SUBDOMAIN, unit)] if length(text) > MAX_SUBDOMAIN else []
    if not fits(SUBDOMAIN, text):
        found.append(rule(SUBDOMAIN_RULE, SUBDOMAIN, "example.com"))
    return tuple(found)


def label_1035(text: str) -> Problems:
    found = [too_long(MAX_LABEL)] if length(text) > MAX_LABEL else []
    if not fits(LABEL_1035, text):
        found.append(rule(LABEL_1035_RULE, LABEL_1035, "my-name", "abc-123"))
    return tuple(found)


def qualified_name(text: str) -> Problems:
    parts = text.split("/")
    key_rule = rule(KEY_RULE, KEY, "MyName", "my.name", "123-abc")
    if len(parts) > 2:
        return (
            f"a valid label key {key_rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        )
    found: list[str] = []
    name = parts[-1]
    if len(parts) == 2:
        problems = subdomain(parts[0], "bytes") if parts[0] else ("must be non-empty",)
        found += [f"prefix part {problem}" for problem in problems]
    if not name:
        found.append("name part must be non-empty")
    elif length(name) > MAX_LABEL:
        found.append(f"name part {too_long(MAX_LABEL, 'bytes')}")
    if not fits(KEY, name):
        found.append(f"name part {key_rule}")
    return tuple(found)


def label_value(text: str) -> Problems:
    found = [too_long(MAX_LABEL, "bytes")] if length(text) > MAX_LABEL else []
    if not fits(VALUE, text):
        found.append(rule(VALUE_RULE, VALUE, "MyValue", "my_value", "12345"))
    return tuple(found)


def is_date(text: str) -> bool:
    match = DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    return 1 <= month <= 12 and 1 <= day <= days_in(year, month)


def is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    match = TIME.fullmatch(parts[1]) if len(parts) > 1 and is_date(parts[0]) else None
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def is_base64(text: str) -> bool:
    if len(text) % 4 or not BASE64.fullmatch(text):
        return False
    try:
        b64decode(text, validate=True)
    except Error:
        return False
    return True


def _masked(check: Callable[[str], Problems]) -> Callable[[str], Problems]:
    """Check a prefix, which may end with the dash that a generated suffix will follow."""
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _only(test: Callable[[str], bool], message: str) -> Callable[[str], Problems]:
    return lambda text: () if test(text) else (message,)


def _uri(text: str) -> Problems:
    problem = problem_of(text)
    return (problem,) if problem else ()


FORMATS: dict[str, NamedFormat] = {
    "dns1123Label": NamedFormat("DNS1123Label", label),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", subdomain),
    "dns1035Label": NamedFormat("DNS1035Label", label_1035),
    "qualifiedName": NamedFormat("QualifiedName", qualified_name),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _masked(label)),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _masked(subdomain)),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _masked(label_1035)),
    "labelValue": NamedFormat("LabelValue", label_value),
    "uri": NamedFormat("URI", _uri),
    "uuid": NamedFormat("uuid", _only(lambda text: UUID.fullmatch(text) is not None, "does not match the UUID format")),
    "byte": NamedFormat("byte", _only(is_base64, "invalid base64")),
    "date": NamedFormat("date", _only(is_date, "invalid date")),
    "datetime": NamedFormat("datetime", _only(is_datetime, "invalid datetime")),
}


def named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(present=True, value=found)


def validate(budget: Budget, given: NamedFormat, text: str) -> Optional:
    budget.spend(1 + len(text))
    problems = given.problems(text)
    return Optional(present=True, value=problems) if problems else NONE


def _constant(value: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: value


def overloads() -> Iterator[Overload]:
    yield function("format.named", (STRING,), optional_of(NAMED_FORMAT), named)
    yield metered(method("validate", (NAMED_FORMAT, STRING), optional_of(list_of(STRING)), validate))
    for name, value in FORMATS.items():
        yield function(f"format.{name}", (), NAMED_FORMAT, _constant(value))
