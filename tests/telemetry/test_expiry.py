"""When certificates run out is read as openssl reads it, and what is none stops nobody."""

import ssl
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.telemetry.expiry import expiry_in
from tests.web.certificates import authority, issued


def openssl(*arguments: str) -> str:
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True, text=True).stdout


def told(certificate: Path) -> float:
    written = openssl("x509", "-in", str(certificate), "-noout", "-enddate")
    return ssl.cert_time_to_seconds(written.strip().removeprefix("notAfter="))


def lasting(folder: Path, days: int, *more: str) -> Path:
    path = folder / f"{days}.crt"
    name = "/CN=" + "long name " * 5 + "/O=Größe"
    key = ("-newkey", "rsa:2048", "-nodes", "-keyout", str(folder / "key"))
    openssl("req", "-x509", "-utf8", *key, "-subj", name, "-days", str(days), "-out", str(path), *more)
    return path


@pytest.mark.parametrize("days", [1, 365, 36500], ids=["a day", "a year", "a century"])
@pytest.mark.parametrize("serial", ["1", "0x" + "7f" * 20], ids=["short", "long"])
def test_it_is_read_as_openssl_reads_it(tmp_path: Path, days: int, serial: str) -> None:
    path = lasting(tmp_path, days, "-set_serial", serial)
    assert expiry_in(path.read_bytes()) == told(path)


def test_a_certificate_of_the_first_version_has_no_version(tmp_path: Path) -> None:
    request, path = tmp_path / "r.csr", tmp_path / "r.crt"
    by = authority(tmp_path, "ca")
    issued(tmp_path, "r", by)
    openssl("x509", "-req", "-in", str(request), "-CA", str(by), "-CAkey", str(by.with_suffix(".key")), "-days", "3",
            "-out", str(path))  # fmt: skip
    assert "Version: 1 " in openssl("x509", "-in", str(path), "-noout", "-text")
    assert expiry_in(path.read_bytes()) == told(path)


def test_of_several_in_a_file_the_first_to_run_out_counts(tmp_path: Path) -> None:
    late, soon = lasting(tmp_path, 300), lasting(tmp_path, 3)
    text = openssl("x509", "-in", str(late), "-text")
    assert expiry_in(text.encode() + soon.read_bytes() + late.read_bytes()) == told(soon)


def test_a_trusted_certificate_has_more_behind_it(tmp_path: Path) -> None:
    path = lasting(tmp_path, 3)
    trusted = openssl("x509", "-in", str(path), "-trustout", "-addtrust", "clientAuth")
    assert "TRUSTED" in trusted
    assert expiry_in(trusted.encode()) == told(path)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return ssl.PEM_cert_to_DER_cert(lasting(tmp_path_factory.mktemp("sound"), 3).read_text())


@given(st.binary(max_size=300), st.integers(0, 2000), st.integers(0, 255))
def test_what_is_no_certificate_stops_nobody(sound: bytes, noise: bytes, place: int, value: int) -> None:
    assert expiry_in(noise) is None
    spoilt = bytearray(sound)
    spoilt[place % len(sound)] = value
    for der in (noise, sound[: place % len(sound)], bytes(spoilt)):
        expiry_in(ssl.DER_cert_to_PEM_cert(der).encode())
