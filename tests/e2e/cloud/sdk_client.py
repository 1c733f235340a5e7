"""Signing in with the official Python SDK, on a loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import trio
from viam.app.app_client import AppClient
from viam.app.viam_client import ViamClient
from viam.rpc.dial import DialOptions

from tests.e2e.cloud.process import CloudProcess

LIMIT = 60  # seconds for everything that one test asks of the SDK


async def signed_in(address: str, key_id: str, key: str) -> ViamClient:
    """A client in plain text; the caller closes it."""
    options = DialOptions.with_api_key(key, key_id)
    options.insecure = True
    return await ViamClient.create_from_dial_options(options, app_url=f"http://{address}")


async def with_sdk(running: CloudProcess, work: Callable[[AppClient], Awaitable[None]]) -> None:
    """Do something as the owner on the SDK's own loop, in a thread."""

    async def main() -> None:
        async with asyncio.timeout(LIMIT):
            client = await signed_in(running.address, *running.key)
            try:
                await work(client.app_client)
            finally:
                client.close()

    await trio.to_thread.run_sync(lambda: asyncio.run(main()))
