"""The keys of log lines. A line is a fixed message and these fields, so that people search for what stays the same."""

from typing import Final

POD: Final = "pod"
POD_UID: Final = "podUID"
NODE: Final = "node"
CLAIM: Final = "claim"
DRIVER: Final = "driver"
RESOURCE: Final = "resource"
RESOURCE_VERSION: Final = "resourceVersion"
VERB: Final = "verb"
METHOD: Final = "method"
PATH: Final = "path"
CODE: Final = "code"
REASON: Final = "reason"
PHASE: Final = "phase"
ERROR: Final = "error"
ERROR_ID: Final = "errorID"
PROBLEM: Final = "problem"
COUNT: Final = "count"
SECONDS: Final = "seconds"
SCHEDULER: Final = "scheduler"
GENERATION: Final = "generation"
ADDRESS: Final = "address"
FILE: Final = "file"
VERSION: Final = "version"

KEYS: Final = frozenset(value for name, value in list(globals().items()) if name.isupper() and isinstance(value, str))
