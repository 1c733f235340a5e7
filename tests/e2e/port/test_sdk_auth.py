"""The official SDK, in a separate process, authenticates with an API key."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from grpclib.const import Cardinality, Handler

from rpc.api import messages
from tests.e2e.port.support import KEY, KEY_ID, port

pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).with_name("sdk_client.py")


class Robot:
    """The minimum of a machine for an SDK connection; everything else is UNIMPLEMENTED."""

    def __init__(self) -> None:
        robot = messages.robot()
        self.reply = robot.ResourceNamesResponse(
            resources=[messages.common().ResourceName(namespace="rdk", type="component", subtype="motor", name="left")]
        )
        self.handler = Handler(
            self.names, Cardinality.UNARY_UNARY, robot.ResourceNamesRequest, robot.ResourceNamesResponse
        )
        self.asked: list[str | None] = []

    def get(self, path: str, /) -> Handler | None:
        return self.handler if path.endswith("RobotService/ResourceNames") else None

    async def names(self, stream: Any) -> None:
        await stream.recv_message()
        self.asked.append(stream.identity and stream.identity.entity)
        await stream.send_message(self.reply)


async def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    return await trio.run_process(
        [sys.executable, str(SCRIPT), *arguments], capture_stdout=True, capture_stderr=True, check=False
    )


async def test_direct_over_tls(tmp_path: Path) -> None:
    robot = Robot()
    async with port(tmp_path, keys=True, inner=robot) as server:
        result = await run(f"localhost:{server.number}", "direct", KEY_ID, KEY)
        assert b"NAMES left" in result.stdout, result.stderr[-2000:]
        assert set(robot.asked) == {KEY_ID}


async def test_wrong_key_over_tls(tmp_path: Path) -> None:
    robot = Robot()
    async with port(tmp_path, keys=True, inner=robot) as server:
        result = await run(f"localhost:{server.number}", "direct", KEY_ID, "wrong")
        assert b"NAMES" not in result.stdout
        assert b"the credentials are wrong" in result.stderr
        assert robot.asked == []


async def test_without_key_where_one_is_needed() -> None:
    robot = Robot()
    async with port(keys=True, inner=robot) as server:
        result = await run(f"localhost:{server.number}", "direct,insecure")
        assert b"NAMES" not in result.stdout
        assert robot.asked == []


async def test_open_server() -> None:
    robot = Robot()
    async with port(inner=robot) as server:
        result = await run(f"localhost:{server.number}", "direct,insecure")
        assert b"NAMES left" in result.stdout, result.stderr[-2000:]
        assert set(robot.asked) == {None}
