"""Drawn expressions of the shapes in which languages differ: numbers and texts as they are written, read and searched.

Most texts are nearly right: something that a function reads, damaged in a few places.
"""

from collections.abc import Callable, Sequence
from random import Random

from tests.allocation.cel import written_mixtures as mixtures
from tests.allocation.cel import written_shapes as shapes


def literal(text: str) -> str:
    """Write *text* as a string of CEL."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(character: str) -> str:
    if " " <= character <= "~" and character not in '\\"':
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def damaged(random: Random, text: str, alphabet: str) -> str:
    """Put in, leave out, exchange or repeat something, a few times or never."""
    for _ in range(random.choice((0, 1, 1, 2, 3))):
        begin, end = sorted(random.randrange(len(text) + 1) for _ in range(2))
        match random.randrange(4):
            case 0:
                text = text[:begin] + random.choice(alphabet) + text[begin:]
            case 1:
                text = text[:begin] + text[begin + 1 :]
            case 2:
                text = text[:begin] + random.choice(alphabet) + text[begin + 1 :]
            case _:
                text = text[:end] + text[begin:end] + text[end:]
    return text[:200]


def filled(random: Random, templates: Sequence[str], draw: Callable[[str], str]) -> str:
    """Choose a template, and replace each letter behind a ``$`` by what is drawn for it."""
    first, *parts = random.choice(templates).split("$")
    return first + "".join(draw(part[0]) + part[1:] for part in parts)


def number(random: Random) -> str:
    def draw(_letter: str) -> str:
        return random.choice(shapes.SIGNS) + random.choice(shapes.NUMBERS)

    return filled(random, shapes.OF_NUMBERS, draw)


def double(random: Random) -> str:
    value = random.choice(
        (
            random.uniform(-1, 1) * 10 ** random.randrange(-12, 25),
            random.randrange(-(10**6), 10**6) / 10 ** random.randrange(8),
            float(random.getrandbits(random.randrange(1, 70))),
            random.randrange(-1000, 1000) + random.choice((0.0, 0.5, 0.005, 0.015)),
        )
    )
    return filled(random, shapes.OF_DOUBLES, lambda letter: repr(value) if letter == "d" else str(random.randrange(25)))


def token(random: Random) -> str:
    """Write strings and bytes with all that may stand in them."""

    def draw(_letter: str) -> str:
        quote = random.choice(('"', "'", '"""', "'''"))
        body = "".join(random.choices(shapes.CHARACTERS, k=random.randrange(1, 6)))
        return random.choice(shapes.PREFIXES) + quote + body + quote

    return filled(random, shapes.OF_TOKENS, draw)


def text(random: Random) -> str:
    def draw(letter: str) -> str:
        if letter == "i":
            return str(random.randrange(-2, 12))
        return literal(random.choice(shapes.PARTS if letter == "p" else shapes.TEXTS))

    return filled(random, shapes.OF_TEXTS, draw)


def format_(random: Random) -> str:
    pattern = "".join(random.choices(shapes.CLAUSES, k=random.randrange(1, 4)))
    values = ", ".join(random.choices(shapes.FORMATTED, k=random.randrange(4)))
    return filled(random, shapes.OF_FORMATS, lambda letter: literal(pattern) if letter == "f" else f"[{values}]")


def read(random: Random) -> str:
    """Have a function read a damaged text, and ask for something of what it makes of it."""
    texts, alphabet, templates = random.choice(shapes.READ)

    def draw(letter: str) -> str:
        given = literal(damaged(random, random.choice(texts), alphabet))
        return f"dyn({given})" if letter == "d" else given

    return filled(random, templates, draw)


def mixture(random: Random) -> str:
    """Ask for what values of open types come to, of types that go together or not."""

    def draw(letter: str) -> str:
        if letter == "l":
            items = ", ".join(f"dyn({value})" for value in random.choices(mixtures.VALUES, k=random.randrange(4)))
            return f"[{items}]" if random.random() < 0.6 else f"dyn([{items}])"
        value = random.choice(mixtures.VALUES)
        return value if random.random() < 0.25 else f"dyn({value})"

    return filled(random, random.choice((mixtures.OF_LISTS, mixtures.OF_VALUES)), draw)


def search(random: Random) -> str:
    letters = "".join(random.choices(shapes.LETTERS, k=random.randrange(1, 12)))
    found = literal(random.choice((*shapes.TEXTS, letters)))
    return filled(
        random, shapes.OF_SEARCHES, lambda letter: found if letter == "t" else literal(_pattern(random, depth=3))
    )


def _pattern(random: Random, depth: int) -> str:
    if depth <= 0 or random.random() < 0.3:
        return random.choice(shapes.ATOMS) if random.random() < 0.8 else _brackets(random)
    return filled(random, shapes.PATTERNS, lambda _letter: _pattern(random, depth - 1))


def _brackets(random: Random) -> str:
    inner = "".join(random.choices(shapes.IN_BRACKETS, k=random.randrange(1, 4)))
    return f"[{random.choice(('', '^', ''))}{inner}]"


SHAPES: dict[str, Callable[[Random], str]] = {
    each.__name__.strip("_"): each for each in (number, double, token, text, format_, read, mixture, search)
}
