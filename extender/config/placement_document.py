"""The placement document out of its file."""

from pathlib import Path

from extender.config.file import parsed
from extender.config.load import Invalid
from extender.topology.document import Document, document_of
from extender.topology.reading import InvalidDocument


def document_at(file: str) -> Document:
    """Read the document in *file*, or without one what is shipped; raise Invalid with all that is wrong."""
    return document_in(content_of(file), file) if file else Document()


def content_of(file: str) -> bytes | str:
    """Return what is in *file*, or as text why it cannot be read."""
    try:
        return Path(file).read_bytes()
    except OSError as error:
        return error.strerror or str(error)


def document_in(content: bytes | str, file: str) -> Document:
    """Read the document that is the *content* of *file*; raise Invalid with all that is wrong."""
    if isinstance(content, str):
        raise Invalid([f"{file}: {content}"])
    try:
        return document_of(_filled(parsed(content.decode())))
    except InvalidDocument as invalid:
        raise Invalid(f"{file}: {complaint}" for complaint in invalid.complaints) from invalid
    except ValueError as error:
        raise Invalid([f"{file}: {error}"]) from error


def _filled(raw: object) -> object:
    # A file that was emptied by mistake must not allow what was forbidden.
    if raw is None:
        raise ValueError("is empty; {} leaves everything as it is shipped")
    return raw
