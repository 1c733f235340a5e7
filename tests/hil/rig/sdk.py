"""The official Python SDK, which needs asyncio, for tests on Trio: its event loop runs in a thread of its own."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

CONNECT_LIMIT = 60  # seconds
Result = TypeVar("Result")


class Sdk:
    """A connection: `robot`, and a call that awaits any coroutine of the SDK."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.robot: RobotClient

    async def __call__(self, work: Coroutine[Any, Any, Result]) -> Result:
        token, ended = trio.lowlevel.current_trio_token(), trio.Event()
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        future.add_done_callback(lambda _: token.run_sync_soon(ended.set))
        try:
            await ended.wait()
        finally:
            future.cancel()
        return future.result()


@asynccontextmanager
async def open_sdk(address: str) -> AsyncIterator[Sdk]:
    """Connect directly to a machine, without TLS and credentials."""
    loop = asyncio.new_event_loop()
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, loop.run_forever)
            sdk = Sdk(loop)
            try:
                dial = DialOptions(disable_webrtc=True, insecure=True, timeout=CONNECT_LIMIT)
                options = RobotClient.Options(dial_options=dial, check_connection_interval=0)
                sdk.robot = await sdk(RobotClient.at_address(address, options))
                try:
                    yield sdk
                finally:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + CONNECT_LIMIT):
                        await sdk(sdk.robot.close())
            finally:
                loop.call_soon_threadsafe(loop.stop)
    finally:
        loop.close()
        with warnings.catch_warnings():  # the SDK does not close channels of abandoned attempts
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
