"""`machine` over TLS, and its errors when only one side uses TLS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.e2e.harness import Server


def machine(server: Server, *words: str) -> subprocess.CompletedProcess[str]:
    """Run `machine status` as a module."""
    program = [sys.executable, "-m", "command.cli", "status", "--address", server.address]
    return subprocess.run([*program, *words], capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ca.pem, other.pem (of an unrelated authority), chain.pem and key.pem."""
    folder = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    trustme.CA().cert_pem.write_to_path(folder / "other.pem")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    (folder / "chain.pem").write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    return folder


@pytest.fixture(scope="module")
def secure(folder: Path) -> Iterator[Server]:
    network = {"tls_cert_file": str(folder / "chain.pem"), "tls_key_file": str(folder / "key.pem")}
    with Server({"network": network}, folder) as server:
        yield server


@pytest.mark.slow
def test_a_certificate_is_trusted_only_through_its_authority(secure: Server, folder: Path) -> None:
    trusted = machine(secure, "--ca", str(folder / "ca.pem"))
    assert (trusted.returncode, "is running" in trusted.stdout) == (0, True), trusted.stderr
    anyone = machine(secure, "--insecure")
    assert (anyone.returncode, "is running" in anyone.stdout) == (0, True), anyone.stderr
    for words in (("--tls",), ("--ca", str(folder / "other.pem"))):
        refused = machine(secure, *words)
        assert refused.returncode == 3
        assert "give --ca FILE to trust its certificate" in refused.stderr


@pytest.mark.slow
def test_a_file_that_is_not_a_certificate_is_named(secure: Server, folder: Path) -> None:
    refused = machine(secure, "--ca", str(folder / "key.pem"))
    assert refused.returncode == 1
    assert f"{folder / 'key.pem'} cannot be read" in refused.stderr
    assert "PRIVATE KEY" not in refused.stderr


@pytest.mark.slow
def test_plaintext_to_a_tls_server_names_the_option(secure: Server) -> None:
    refused = machine(secure)
    assert refused.returncode == 1
    assert "if it uses TLS, give --tls" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--tls", "--insecure"])
def test_tls_to_a_plaintext_server_is_explained(option: str, tmp_path: Path) -> None:
    with Server({}, tmp_path) as server:
        refused = machine(server, option)
    assert refused.returncode == 3
    assert "does not use TLS: leave out --tls" in refused.stderr
