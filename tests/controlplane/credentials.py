"""What the programs of a control plane know each other by."""

import base64
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def token_file(tokens: Mapping[str, str]) -> str:
    """Write who may ask, and with what."""
    rights = {"admin": ',"system:masters"'}
    return "".join(f"{token},{user},{user}{rights.get(user, '')}\n" for user, token in tokens.items())


def signing_key() -> str:
    """Return a new private key on P-256, in the form of RFC 5915: version, scalar, name of the curve."""
    scalar = bytes([secrets.randbelow(0x7F) + 1]) + secrets.token_bytes(31)
    encoded = bytes.fromhex("303102010104 20") + scalar + bytes.fromhex("a00a06082a8648ce3d030107")
    body = base64.encodebytes(encoded).decode()
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}-----END EC PRIVATE KEY-----\n"


def kubeconfig(url: str, authority: Path, token: str) -> dict[str, Any]:
    """Write with what one of them asks the API server at *url*."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "plane", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "user"}}],
        "current-context": "plane",
    }
