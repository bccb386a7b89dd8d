"""Certificates for tests, made by openssl."""

import subprocess
from pathlib import Path


def authority(folder: Path, name: str, days: int = 1) -> Path:
    """Make an authority; return its certificate, beside which lies its key."""
    certificate = folder / f"{name}.crt"
    _openssl(
        "req", "-x509", *_new_key(folder, name), "-subj", f"/CN={name}", "-days", str(days), "-out", str(certificate),
        "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    return certificate


def issued(folder: Path, name: str, by: Path, names: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    """Let an authority issue a certificate, for 127.0.0.1 unless it is for others; return it with its key."""
    request, extensions = folder / f"{name}.csr", folder / f"{name}.ext"
    # Newer Pythons, strict as RFC 5280, ask for the identifiers of keys.
    extensions.write_text(
        f"subjectAltName={names}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n"
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
    )
    _openssl("req", *_new_key(folder, name), "-subj", f"/CN={name}", "-out", str(request))
    fresh, certificate = folder / f"{name}.fresh", folder / f"{name}.crt"
    _openssl(
        "x509", "-req", "-in", str(request), "-CA", str(by), "-CAkey", str(by.with_suffix(".key")), "-days", "1",
        "-extfile", str(extensions), "-out", str(fresh),
    )  # fmt: skip
    fresh.rename(certificate)
    return certificate, folder / f"{name}.key"


def locked_by(key: Path, password: str) -> Path:
    """Return *key* as a file that needs a password."""
    locked = key.with_suffix(".locked")
    _openssl("pkey", "-in", str(key), "-aes256", "-passout", f"pass:{password}", "-out", str(locked))
    return locked


def _new_key(folder: Path, name: str) -> tuple[str, ...]:
    key = folder / f"{name}.key"
    return ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", str(key))


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
