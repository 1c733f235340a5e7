"""TLS contexts, self-signed certificates, and error messages for invalid files."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio
import trio.testing
from cryptography.hazmat.primitives import serialization

from rpc.network.tls import ServerTls, TlsError, client_context
from tests.selfsigned import self_signed, write_self_signed

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="the program openssl is not installed")


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
    unverified = client_context(verify=False)
    assert (unverified.verify_mode, unverified.cert_store_stats()["x509"]) == (ssl.CERT_NONE, 0)


def system_authorities(folder: Path, monkeypatch: pytest.MonkeyPatch, *, in_file: int) -> Path:
    """Let a self-signed certificate be the only authority in the system's folder, and `in_file` times in its file."""
    authority, file = folder / "authority.pem", folder / "all.crt"
    write_self_signed(authority, folder / "key.pem")
    command = ["openssl", "x509", "-noout", "-subject_hash", "-in", str(authority)]
    digest = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    (folder / "hashed").mkdir()
    (folder / "hashed" / f"{digest}.0").symlink_to(authority)
    file.write_text(authority.read_text() * in_file)
    places = ("SSL_CERT_FILE", str(file), "SSL_CERT_DIR", str(folder / "hashed"))
    paths = ssl.DefaultVerifyPaths(str(file), str(folder / "hashed"), *places)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    return authority


@needs_openssl
async def test_authorities_of_the_system_are_loaded_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = system_authorities(tmp_path, monkeypatch, in_file=1)
    context = client_context()
    assert context.cert_store_stats()["x509"] == 0
    near, far = trio.testing.memory_stream_pair()
    client = trio.SSLStream(near, context, server_hostname="localhost")
    server = trio.SSLStream(far, ServerTls(authority, tmp_path / "key.pem").context, server_side=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.do_handshake)
        nursery.start_soon(server.do_handshake)
    assert context.cert_store_stats()["x509"] == 1


@needs_openssl
@pytest.mark.parametrize(("in_file", "variable"), [(2, ""), (1, "SSL_CERT_FILE"), (1, "SSL_CERT_DIR")])
def test_authorities_are_those_of_a_file_that_was_edited_or_is_chosen(
    in_file: int, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = system_authorities(tmp_path, monkeypatch, in_file=in_file)
    if variable:
        monkeypatch.setenv(variable, str(authority))
    default = ssl.create_default_context()
    assert client_context().cert_store_stats() == default.cert_store_stats()
    assert default.cert_store_stats()["x509"] > 0


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
