"""What can go wrong: with a text (CompileError), and with an evaluation (EvaluationError)."""


class CompileError(ValueError):
    """The text is not an expression that may be evaluated. *position* is an offset into it, -1 where unknown."""

    def __init__(self, message: str, position: int = -1) -> None:
        super().__init__(message)
        self.message = message
        self.position = position

    def pointed(self, text: str) -> str:
        """Return the message over the line of *text* that it is about, with a caret under the place."""
        if not 0 <= self.position <= len(text):
            return self.message
        start = text.rfind("\n", 0, self.position) + 1
        end = text.find("\n", self.position)
        line = text[start : end if end >= 0 else len(text)]
        number = text.count("\n", 0, self.position) + 1
        column = self.position - start
        # A tab must stay a tab for the caret to stand under its character.
        padding = "".join(character if character == "\t" else " " for character in line[:column])
        return f"{self.message}\n{number}:{column + 1}: {line}\n{' ' * len(f'{number}:{column + 1}: ')}{padding}^"


class EvaluationError(Exception):
    """An evaluation has no value."""


class Failed(EvaluationError):  # noqa: N818 - raised everywhere: the short name reads better
    """An error of CEL itself, which ``&&`` and ``||`` absorb where another term decides."""


class Crashed(EvaluationError):  # noqa: N818 - as above
    """Upstream's interpreter would crash, which ends its evaluation: no other term can absorb that."""


class Exhausted(EvaluationError):  # noqa: N818 - as above
    """A limit was reached. Never absorbed: otherwise an expression could go on after each limit."""


def no_overload(name: str, *types: str) -> Failed:
    """Return the error for a function that has no variant for values of these *types*."""
    return Failed(f"no such overload: {name}({', '.join(types)})")
