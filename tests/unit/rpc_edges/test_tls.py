"""Contexts, self-signed certificates, and what is said about bad files."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
import trio.testing
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from rpc.selfsigned import self_signed, write_self_signed
from rpc.tls import ServerTls, TlsError, client_context, server_context


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    write_self_signed(tmp_path / "cert.pem", tmp_path / "key.pem")
    return tmp_path / "cert.pem", tmp_path / "key.pem"


def test_a_self_signed_certificate_is_a_proper_leaf() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    pem, _ = self_signed(["localhost", "::1"], days=30, now=now)
    certificate = x509.load_pem_x509_certificate(pem)
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["::1"]
    assert certificate.not_valid_before_utc <= now
    assert certificate.not_valid_after_utc == certificate.not_valid_before_utc + timedelta(days=30)


@pytest.mark.parametrize("arguments", [{"names": []}, {"names": [""]}, {"names": ["a b"]}, {"days": 0}, {"days": 900}])
def test_certificates_that_nobody_would_accept(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        self_signed(**arguments)  # type: ignore[arg-type]


def test_files_are_private_and_never_overwritten(files: tuple[Path, Path]) -> None:
    certificate, key = files
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    with pytest.raises(TlsError, match="exists already"):
        write_self_signed(certificate, key)
    assert key.read_bytes() == before


async def test_handshake_verified_against_itself(files: tuple[Path, Path]) -> None:
    near, far = trio.testing.memory_stream_pair()
    client = trio.SSLStream(near, client_context(authorities=files[0]), server_hostname="localhost")
    server = trio.SSLStream(far, server_context(*files), server_side=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.do_handshake)
        nursery.start_soon(server.do_handshake)
    assert client.selected_alpn_protocol() == server.selected_alpn_protocol() == "h2"
    assert client.version() == "TLSv1.3"


def test_settings(files: tuple[Path, Path]) -> None:
    for context in (server_context(*files), client_context()):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_2
        names = [cipher["name"] for cipher in context.get_ciphers()]
        assert all(n.startswith("TLS_") or (n.startswith("ECDHE") and ("GCM" in n or "CHACHA20" in n)) for n in names)
    assert client_context().verify_mode == ssl.CERT_REQUIRED
    assert client_context(verify=False).verify_mode == ssl.CERT_NONE


def refused(certificate: Path, key: Path) -> str:
    with pytest.raises(TlsError) as caught:
        ServerTls(certificate, key)
    text = str(caught.value)
    assert "PRIVATE KEY-----\n" not in text
    return text


def test_bad_files(files: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, key = files
    other_certificate, other_key = tmp_path / "c2.pem", tmp_path / "k2.pem"
    write_self_signed(other_certificate, other_key)
    assert "does not belong" in refused(certificate, other_key)
    assert "check the path" in refused(certificate, tmp_path / "none")
    assert "no readable PEM certificate" in refused(key, key)
    assert "no readable PEM private key" in refused(certificate, certificate)
    assert "cannot be read" in refused(certificate, tmp_path)
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    locked = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    other_key.write_bytes(locked)
    assert "encrypted" in refused(certificate, other_key)
    with pytest.raises(TlsError, match="certificate authority"):
        client_context(authorities=tmp_path / "none")


def test_reload(files: tuple[Path, Path]) -> None:
    certificate, key = files
    tls = ServerTls(certificate, key)
    before = tls.context
    assert not tls.reload()
    chain = certificate.read_bytes()
    certificate.write_bytes(self_signed()[0])
    current = tls.context
    with pytest.raises(TlsError):
        tls.reload()
    assert tls.context is current
    certificate.write_bytes(chain)
    new_chain, new_key = self_signed()
    certificate.write_bytes(new_chain)
    key.write_bytes(new_key)
    assert tls.reload()
    assert tls.context is not before
    assert not tls.facts.expired()
    assert tls.facts.expired(datetime.now(UTC) + timedelta(days=400))
    assert "localhost" in repr(tls)
