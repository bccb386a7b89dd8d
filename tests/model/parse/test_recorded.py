"""The recorded questions for Kubernetes' allocator: not always valid, and always readable."""

import json
from pathlib import Path
from typing import Any

import pytest

from extender.model.parse import parse_claim, parse_class, parse_node, parse_rule, parse_slice
from extender.model.problem import Problem

CASES = Path(__file__).parents[4] / "shared" / "data" / "conformance" / "allocator-1.37.jsonl"
