"""Every way in which the official Python SDK connects to a self-hosted machine.

The SDK's default transport uses a native helper that resolves names on the network: these tests run in a network
namespace with nothing but loopback.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from grpclib import GRPCError, Status
from viam.robot.client import RobotClient

from tests.e2e.harness import Server, in_namespace, namespace_refusal
from tests.e2e.sdk.client import over_tls, plaintext
from tests.e2e.sdk.machine import document

KEY_ID, KEY = "4c2e7f3e-3f0a-4a43-9a9f-0d5d7a0b9a11", "a-key-that-only-this-test-knows"
AUTH = {"handlers": [{"type": "api-key", "config": {KEY_ID: KEY, "keys": [KEY_ID]}}]}


def tls_section(certificate: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in certificate.items() if key.startswith("tls_")}


async def names(address: str, options: RobotClient.Options) -> int:
    async with asyncio.timeout(30):
        robot = await RobotClient.at_address(address, options)
        try:
            return len(robot.resource_names)
        finally:
            await robot.close()


def test_plaintext(machine: str) -> None:
    assert asyncio.run(names(machine, plaintext())) >= 20


def test_tls_without_credentials(tmp_path: Path, certificate: dict[str, str]) -> None:
    with Server(document(network=tls_section(certificate)), tmp_path) as server:
        server.wait_running()
        assert asyncio.run(names(server.address, over_tls())) >= 20


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_tls_with_an_api_key(tmp_path: Path, certificate: dict[str, str]) -> None:
    with Server(document(network=tls_section(certificate), auth=AUTH), tmp_path) as server:
        server.wait_running()
        assert asyncio.run(names(server.address, over_tls(KEY_ID, KEY))) >= 20
        for options in (over_tls(KEY_ID, "wrong"), over_tls()):
            with pytest.raises((GRPCError, ConnectionError)) as refused:
                asyncio.run(names(server.address, options))
            assert status_of(refused.value) is Status.UNAUTHENTICATED
    assert KEY not in server.log()


def status_of(error: BaseException | None) -> Status | None:
    """Return the gRPC status that caused an error of the SDK, which wraps only some of them."""
    while error is not None and not isinstance(error, GRPCError):
        error = error.__cause__ or error.__context__
    return error.status if isinstance(error, GRPCError) else None


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_a_plaintext_port_refuses_a_tls_client_fast(machine: str) -> None:
    """The SDK's probe is synchronous: without an immediate answer it would hang for 20 s."""

    async def main() -> None:
        async with asyncio.timeout(5):
            with pytest.raises(Exception, match=r"(?i)insecure|ssl|tls|version|unavailable|connect"):
                await RobotClient.at_address(machine, over_tls())

    asyncio.run(main())


NATIVE = ["native", "native-credentials", "native-tls-credentials"]


@pytest.mark.parametrize("way", NATIVE)
def test_default_transport(way: str, tmp_path: Path, certificate: dict[str, str]) -> None:
    refusal = namespace_refusal()
    if refusal:
        pytest.skip(f"no network namespace of our own here: {refusal}")
    done = subprocess.run(
        in_namespace([sys.executable, "-m", "tests.e2e.sdk.native", way, str(tmp_path), certificate["ca_file"]]),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "connected" in done.stdout
