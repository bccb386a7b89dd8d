from extender.topology.configuration import Configuration
from extender.topology.document import document_of


def configured(raw: object) -> Configuration:
    """Return what a document says of topology."""
    return document_of(raw).configuration
