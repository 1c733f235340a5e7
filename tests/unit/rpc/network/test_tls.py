"""TLS contexts, self-signed certificates, and error messages for invalid files."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
import trio.testing
from cryptography.hazmat.primitives import serialization

from rpc.network.tls import ServerTls, TlsError, client_context
from tests.selfsigned import self_signed, write_self_signed


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    write_self_signed(tmp_path / "cert.pem", tmp_path / "key.pem")
    return tmp_path / "cert.pem", tmp_path / "key.pem"


async def test_handshake_verified_against_itself(files: tuple[Path, Path]) -> None:
    near, far = trio.testing.memory_stream_pair()
    client = trio.SSLStream(near, client_context(authorities=files[0]), server_hostname="localhost")
    server = trio.SSLStream(far, ServerTls(*files).context, server_side=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.do_handshake)
        nursery.start_soon(server.do_handshake)
    assert client.selected_alpn_protocol() == server.selected_alpn_protocol() == "h2"
    assert client.version() == "TLSv1.3"


def test_settings(files: tuple[Path, Path]) -> None:
    for context in (ServerTls(*files).context, client_context()):
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
