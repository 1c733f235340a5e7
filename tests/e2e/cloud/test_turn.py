"""The TURN server of the examples accepts the cloud's credentials only, and relays to public addresses only."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from cloud.domain.machines.ice import LIFE, IceServers

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "turn" / "turnserver.conf"
SECRET = "a secret of the test"
LIMIT = 20.0  # seconds

pytestmark = pytest.mark.skipif(shutil.which("turnserver") is None, reason="needs coturn: apt-get install coturn")


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """Run coturn on a free port of loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    text = EXAMPLE.read_text().replace("REPLACE_BY_THE_SECRET", SECRET)
    text = text.replace("listening-port=3478", f"listening-port={number}").replace("syslog", "log-file=stdout")
    path = tmp_path / "turnserver.conf"
    here = f"listening-ip=127.0.0.1\nrelay-ip=127.0.0.1\npidfile={tmp_path}/pid\nuserdb={tmp_path}/db\n"
    path.write_text(f"{text}\n{here}")
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(["turnserver", "-c", str(path)], stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            until = time.monotonic() + LIMIT
            while True:
                with socket.socket() as client:
                    if client.connect_ex(("127.0.0.1", number)) == 0:
                        break
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < until
                time.sleep(0.02)
            yield number
        finally:
            process.terminate()
            process.wait(LIMIT)


def relay(port: int, username: str, credential: str, *peer: str) -> str:
    """Allocate a relay in another process, send to `peer`; return "allocated", or the server's error."""
    command = [sys.executable, "-m", "tests.e2e.cloud.test_turn", str(port), username, credential, *peer]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def credentials(now: datetime, secret: str = SECRET) -> tuple[str, str]:
    (server,) = IceServers(("turn:127.0.0.1",), secret).offered("key", now)
    return server["username"], server["credential"]


def test_credentials_of_the_cloud_are_valid_until_they_expire(port: int) -> None:
    now = datetime.now(UTC)
    assert relay(port, *credentials(now)) == "allocated"
    assert "401" in relay(port, *credentials(now - LIFE - timedelta(minutes=1)))
    assert "401" in relay(port, *credentials(now, "another secret"))
    name, credential = credentials(now)
    assert "401" in relay(port, f"{int(name.partition(':')[0]) + 3600}:key", credential)


@pytest.mark.parametrize("peer", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.1.1"])
def test_private_addresses_are_not_reached(port: int, peer: str) -> None:
    assert "403" in relay(port, *credentials(datetime.now(UTC)), peer)


async def _relay(port: int, username: str, credential: str, peers: list[str]) -> str:
    from aioice.stun import TransactionFailed
    from aioice.turn import create_turn_endpoint

    try:
        transport, _ = await create_turn_endpoint(
            asyncio.DatagramProtocol,
            server_addr=("127.0.0.1", port),
            username=username,
            password=credential,
        )
    except TransactionFailed as error:
        return str(error)
    try:
        client: Any = transport._TurnTransport__inner_protocol  # type: ignore[attr-defined]
        for number, peer in enumerate(peers):
            await client.channel_bind(0x4000 + number, (peer, 9))
    except TransactionFailed as error:
        return str(error)
    finally:
        transport.close()
    return "allocated"


if __name__ == "__main__":
    print(asyncio.run(_relay(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:])))
