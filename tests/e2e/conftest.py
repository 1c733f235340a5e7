from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from tests.e2e.harness import Server
from tests.e2e.sdk.machine import document
from tests.preloaded import installed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[object]:
    """Start the programs of these tests from a process that has imported them."""
    with installed():
        return (yield)


@pytest.fixture(scope="session")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run one machine with a fake of every component, shared by tests that restore its state; yield its address.

    MACHINE_SDK_ADDRESS names one that runs.
    """
    if address := os.environ.get("MACHINE_SDK_ADDRESS"):
        yield address
        return
    with Server(document(), tmp_path_factory.mktemp("machine")) as server:
        yield server.wait_running().address


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the paths for the `network` section: a server certificate for loopback, and its authority."""
    folder = tmp_path_factory.mktemp("certificate")
    authority = trustme.CA()
    leaf = authority.issue_cert("localhost", "127.0.0.1", "::1")
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    leaf.private_key_pem.write_to_path(str(folder / "server.key"))
    certificate_file: Path = folder / "server.pem"
    for index, pem in enumerate(leaf.cert_chain_pems):
        pem.write_to_path(str(certificate_file), append=index > 0)
    return {
        "tls_cert_file": str(certificate_file),
        "tls_key_file": str(folder / "server.key"),
        "ca_file": str(folder / "ca.pem"),
    }
