"""What claims may tolerate, and what not: by name, the toleration, and whether a claim with it is taken."""

from tests.controlplane.client import Object

KEY = "dra-extender.x-k8s.io/owned"
TOLERATIONS: list[tuple[str, Object, bool]] = [
    ("everything", {"operator": "Exists"}, False),
    ("everything-of-its-effect", {"operator": "Exists", "effect": "NoSchedule"}, False),
    ("its-key", {"key": KEY, "operator": "Exists"}, False),
    ("its-key-with-a-value", {"key": KEY, "operator": "Equal", "value": "x"}, False),
    ("everything-of-another-effect", {"operator": "Exists", "effect": "NoExecute"}, True),
    ("another-key", {"key": "example.com/broken", "operator": "Exists"}, True),
]
