"""The keys of log lines. A line is a fixed message and these fields, so that people search for what stays the same."""

from typing import Final

POD: Final = "pod"
NODE: Final = "node"
CLAIM: Final = "claim"
DEVICE_CLASS: Final = "deviceClass"
DRIVER: Final = "driver"
RULES: Final = "rules"
RESOURCE: Final = "resource"
VERB: Final = "verb"
PATH: Final = "path"
REASON: Final = "reason"
ERROR: Final = "error"
ERROR_ID: Final = "errorID"
PROBLEM: Final = "problem"
COUNT: Final = "count"
GENERATION: Final = "generation"
FILE: Final = "file"
HOLDER: Final = "holder"
TERM: Final = "term"
CLIENT: Final = "client"
DEVICES: Final = "devices"
WRITER: Final = "writer"
CLOSED: Final = "closed"
WAY_OUT: Final = "wayOut"

KEYS: Final = frozenset(value for name, value in list(globals().items()) if name.isupper() and isinstance(value, str))
