"""Scenes for test_webrtc.py: programs are killed and restarted, and callers send what they should not."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.peers import wrtc_engine
from rpc.peers.port import Description, PeerOptions
from rpc.peers.signals import encode_description
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.test_machine import until
from tests.netns.peers.hostile_scenes import CANDIDATES, DESCRIPTIONS
from tests.netns.peers.pairs import scene
from tests.netns.webrtc.connect_scenes import recovered
from tests.netns.webrtc.sdk import Failed
from tests.netns.webrtc.world import World, scene_within, world

SIGNALING = "proto.rpc.webrtc.v1.SignalingService"
CONNECTIONS = int(os.environ.get("MACHINE_WEBRTC_CONNECTIONS", "1000"))
LEAVE = {"error": {"code": 1, "message": "the caller gives up"}}  # ends an attempt at the machine at once
CLIENTS = 5
GROWTH = 8 << 20  # bytes
EXPECTED = {ErrorKind.INVALID, ErrorKind.EXHAUSTED, ErrorKind.PRECONDITION, ErrorKind.UNAVAILABLE}


@scene
async def test_a_cloud_that_is_killed_and_started_again(tmp_path: Path) -> None:
    """Calls go on meanwhile, and later clients connect."""
    async with world(tmp_path, nat=False) as made, made.sdk() as client, made.sdk() as later:
        await made.dial(client)
        await made.cloud.stop(signal.SIGKILL)
        await client("read", count=100)
        async with made.restarted_cloud():
            await client("read", count=100)
            connected = await made.dial(later, initial_connection_attempts=0)
            await later("read", count=10)
            print(connected)
        assert len(made.paths()) == 2


@scene
async def test_a_cloud_that_is_killed_during_signalling(tmp_path: Path) -> None:
    """The attempt fails or goes on, without a wait for its time limit; a later one succeeds."""
    async with (
        world(tmp_path, nat=False, switches=["-debug"]) as made,
        made.sdk() as client,
        trio.open_nursery() as nursery,
    ):
        made.net.each(delay=0.1)  # so that the attempt takes seconds
        ended = trio.Event()

        async def dial() -> bool:
            try:
                print(await made.dial(client, initial_connection_attempts=1))
            except Failed as error:
                print(error)
                return False
            finally:
                ended.set()
            return True

        nursery.start_soon(dial)
        await until(lambda: _offered(made), "the machine has the offer")
        assert not ended.is_set()
        await made.cloud.stop(signal.SIGKILL)
        async with made.restarted_cloud():
            await ended.wait()
            await until(dial, "a later attempt succeeds")
            await client("read", count=10)


async def _offered(made: World) -> bool:
    return "the WebRTC engine runs" in made.machine.log()


@scene
async def test_a_client_that_is_killed(tmp_path: Path) -> None:
    """Its motor stops within the session window."""
    async with world(tmp_path, nat=False) as made, made.sdk() as client, made.sdk() as observer:
        await made.dial(client)
        await made.dial(observer)
        assert await client("spin", motor="wheel")
        await trio.sleep(2.5)  # longer than the session window: heartbeats extend the session

        async def stopped() -> bool:
            return not await observer("powered", motor="wheel")

        assert not await stopped()
        client.process.kill()
        print("stopped after", await until(stopped, "the motor has stopped"))


@scene
async def test_a_killed_client_is_disconnected(tmp_path: Path) -> None:
    async with world(tmp_path, nat=False) as made, made.sdk() as client:
        await made.dial(client)
        client.process.kill()

        async def closed() -> bool:
            return "a client has disconnected" in made.machine.log()

        print("closed after", await until(closed, "the connection is closed"))


@scene
async def test_a_machine_that_is_killed_and_started_again(tmp_path: Path) -> None:
    async with world(tmp_path, nat=False) as made, made.sdk() as client:
        await made.dial(client, check=None)
        await client("watch")
        await trio.sleep(1)
        made.machine.process.kill()
        async with made.run_machine() as made.machine:
            print(await recovered(client, 100))


@scene_within(1200)
async def test_many_connections_leave_nothing(tmp_path: Path) -> None:
    """Open and close connections with the SDK, and compare what the machine uses afterwards."""
    async with world(tmp_path, nat=False) as made:
        process = psutil.Process(made.machine.process.pid)

        async def churn(count: int) -> None:
            async with made.sdk() as client:
                for _ in range(count // 10):
                    await client("churn", host=made.host, key=made.cloud.key, count=10)

        async def connect(count: int) -> tuple[int, int, int]:
            async with trio.open_nursery() as nursery:
                for _ in range(CLIENTS):  # to close a connection, one takes a second
                    nursery.start_soon(churn, count // CLIENTS)
            await trio.sleep(3)  # the machine notices the end of the last ones
            return process.num_fds(), process.num_threads(), process.memory_info().rss

        figures = [await connect(100)]
        for _ in range(4):
            figures.append(await connect(CONNECTIONS // 4))
            print("descriptors, threads, bytes:", figures[0], figures[-1], flush=True)
        assert figures[-1][0] <= figures[0][0] + 2
        assert figures[-1][1] <= figures[0][1] + 2
        assert figures[-1][2] - figures[0][2] < GROWTH


# ---- hostile callers


@asynccontextmanager
async def caller(made: World, key: tuple[str, str]) -> AsyncIterator[ApiClient]:
    """Yield a client of the cloud's signalling that names the machine."""
    async with Channel(made.cloud.address, credentials=ApiKey(*key)) as channel:
        yield ApiClient(channel, metadata={"rpc-host": made.host})


async def offer(client: ApiClient, sdp: str, *updates: Any) -> str:
    """Offer a connection, send updates, and leave after the answer; return the outcome."""
    try:
        with trio.fail_after(30):
            async with aclosing(client.stream(SIGNALING, "", "call", sdp=sdp)) as replies:
                async for reply in replies:
                    for update in updates:
                        await send(client, reply["uuid"], update)
                    return "answered"
    except MachineError as error:
        return expected(error)
    return "ended"


async def send(client: ApiClient, attempt: str, update: Any) -> str:
    """Send an update and return the outcome."""
    try:
        await client.call(SIGNALING, "", "call_update", uuid=attempt, **update)
    except MachineError as error:
        return expected(error)
    return "taken"


def expected(error: MachineError) -> str:
    """Return the kind of an error, which must be one that blames the caller."""
    if error.kind not in EXPECTED:
        raise error
    return error.kind.value


async def usual_offer() -> str:
    """Return a session description of this computer."""
    async with wrtc_engine.open_engine() as engine:
        peer = engine.connect(PeerOptions())
        peer.channel("data", 0)
        sdp = (await peer.offer()).sdp
        peer.close()
        return sdp


@scene
async def test_hostile_offers_and_candidates(tmp_path: Path) -> None:
    """The machine and the cloud survive each, and others connect in the meantime."""
    async with world(tmp_path, nat=False) as made, made.sdk() as client:
        await made.dial(client)
        sdp = await usual_offer()
        other = await made.operator_key()
        async with caller(made, other) as hostile:
            results = {}
            for name, change in DESCRIPTIONS.items():
                text = change(sdp)
                try:
                    message = encode_description(Description("offer", text))
                except UnicodeEncodeError:
                    message = text.encode("utf-8", "surrogatepass").hex()
                results[name] = await offer(hostile, message, LEAVE)
            for name, raw in {"not base64": "%", "empty": "", "large": "A" * 70_000}.items():
                results[name] = await offer(hostile, raw, LEAVE)
            fields = [
                {"candidate": {"candidate": c.text, "sdp_mid": c.mid or "", "sdpm_line_index": c.line or 0}}
                for c in CANDIDATES.values()
                if c.text.isprintable() and (c.line or 0) in range(1 << 32)
            ]
            assert len(fields) >= 25
            results["candidates"] = await offer(hostile, encode_description(Description("offer", sdp)), *fields, LEAVE)
        print(results)
        assert "exhausted" not in results.values()
        await client("read", count=50)
        await client("close")
        await made.dial(client)
        await client("read", count=50)
        assert made.machine.process.poll() is None
        assert "Traceback" not in made.machine.log() + (made.folder / "cloud" / "cloud.log").read_text()


@scene
async def test_a_flood_of_offers(tmp_path: Path) -> None:
    """A key that offers without end, and never connects, does not keep another key from connecting."""
    async with world(tmp_path, nat=False) as made, made.sdk() as client, trio.open_nursery() as nursery:
        message = encode_description(Description("offer", await usual_offer()))
        counts: dict[str, int] = {}

        async def flood(flooding: ApiClient) -> None:
            while True:
                outcome = await offer(flooding, message)
                counts[outcome] = counts.get(outcome, 0) + 1

        async with caller(made, await made.operator_key()) as flooding:
            for _ in range(20):
                nursery.start_soon(flood, flooding)
            await trio.sleep(3)
            for _ in range(3):
                print(counts, await made.dial(client, timeout=15, initial_connection_attempts=1))
                await client("read", count=10)
                await client("close")
            nursery.cancel_scope.cancel()
