"""A replica is killed while a client and a machine at different replicas are being connected; the engine is simulated.

MACHINE_SIGNALLING_SEEDS is the number of moments for each of the two replicas.
"""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from cloud.domain.machines import signalling
from cloud.domain.machines.machines import note_seen
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.values.times import now
from rpc.access.credential_types import API_KEY, PART_SECRET
from rpc.call import ServerCore
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from rpc.datachannel import clients
from rpc.peers.dial import dialled
from rpc.peers.memory import Pair, memory_channels
from rpc.peers.port import Description, PeerOptions, PeerState
from runtime.parts.cloud import answering
from runtime.parts.cloud.answering import MAX_ATTEMPTS, Answering
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.relay import Relay, relay
from tests.e2e.cloud.test_machine import APP
from tests.postgresql import Cluster
from tests.unit.runtime.parts.cloud.test_answering import CallerEngine, CallerPeer, FakeEngine, machine_media
from uplink.dial import CloudAddress

SEEDS = int(os.environ.get("MACHINE_SIGNALLING_SEEDS", "2"))
LIMIT = 20.0  # seconds for a step that takes two at most
SPAN = 0.06  # seconds after the start of an attempt in which the replica is killed; an attempt takes about 0.05
PAIRS = 20  # attempts of both ends in a round, at most


class Pairing:
    """Two replicas, and a machine whose connections go to the one that `balancer` selects."""

    def __init__(self, nursery: trio.Nursery, folder: Path, url: str) -> None:
        self.replicas: list[CloudProcess] = []
        self._nursery = nursery
        self._folder = folder
        self._options = ("--database", url, "--files", str(folder / "files"))

    async def start(self, number: int) -> CloudProcess:
        process: CloudProcess = await self._nursery.start(self._run, f"replica {number}")
        return process

    async def _run(self, name: str, *, task_status: trio.TaskStatus[CloudProcess]) -> None:
        async with cloud(self._folder / name, *self._options) as process:
            task_status.started(process)
            await trio.sleep_forever()


class Caller:
    """A client that tries again until it is connected."""

    def __init__(self, key: tuple[str, str], part: str, engine: CallerEngine) -> None:
        self._key = key
        self._part = part
        self._engine: Any = engine
        self.attempts = 0

    async def connect(self, addresses: list[str]) -> None:
        """Connect by the first address, and then by the last."""
        with trio.fail_after(LIMIT):
            while True:
                address = addresses[min(self.attempts, len(addresses) - 1)]
                self.attempts += 1
                async with Channel(address, credentials=ApiKey(*self._key)) as channel:
                    try:
                        async with dialled(self._engine, channel, self._part):
                            return
                    except MachineError as error:
                        if error.kind is not ErrorKind.UNAVAILABLE:
                            raise
                await trio.sleep(0.05)  # as clients do


class JoinedPeer(CallerPeer):
    """The client's end; the channels of both ends open when it has the answer."""

    machine: FakeEngine

    async def accept(self, description: Description) -> None:
        await super().accept(description)
        self.machine.peers[-1].opens.set()


class JoinedEngine(CallerEngine):
    """The client's engine."""

    def __init__(self, pairs: Iterator[Pair], machine: FakeEngine) -> None:
        self._pairs = pairs
        self._machine = machine
        self.peers = []

    def connect(self, options: PeerOptions) -> CallerPeer:
        peer = JoinedPeer(options, next(self._pairs))
        peer.machine = self._machine
        return peer


@asynccontextmanager
async def answered_by(
    monkeypatch: pytest.MonkeyPatch, nursery: trio.Nursery, balancer: Relay, part: Any, key: str, pairs: list[Pair]
) -> AsyncIterator[tuple[Answering, FakeEngine]]:
    """Run a machine that answers offers with a simulated engine."""
    engine = FakeEngine(pairs)
    engine.patient = True

    @asynccontextmanager
    async def open_engine(run_blocking: Any) -> AsyncIterator[FakeEngine]:
        yield engine

    monkeypatch.setattr(clients, "open_engine", open_engine)
    address = CloudAddress(f"http://{balancer.address}", part["id"], part["id"], PART_SECRET, part["secret"])
    connections = clients.Clients(_unused, machine_media)
    machine = Answering(address, ServerCore({}), connections)
    machine.configure([(API_KEY, key)])
    await nursery.start(lambda task_status: connections.run(task_status=task_status))
    await nursery.start(lambda task_status: machine.run(task_status=task_status))
    yield machine, engine


async def _unused(function: Any) -> Any:
    raise NotImplementedError


async def _pair(*, task_status: trio.TaskStatus[Pair]) -> None:
    async with memory_channels() as pair:
        task_status.started(pair)
        await trio.sleep_forever()


async def test_the_next_attempt_connects_and_nothing_is_left(
    tmp_path: Path, postgresql: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "FIRST_DELAY", 0.05)
    monkeypatch.setattr(clients, "CONNECT_LIMIT", 2.0)  # no signal ends an attempt whose caller's replica was killed
    url = postgresql.fresh()
    async with trio.open_nursery() as nursery, PostgresStore(url, Events()).opened() as store:
        pairing = Pairing(nursery, tmp_path, url)
        replicas = [await pairing.start(number) for number in range(2)]
        first = replicas[0]
        async with first.client() as client:
            robot = await client.call(APP, "", "new_robot", name="rover", location=first.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
        pairs: list[Pair] = [await nursery.start(_pair) for _ in range(PAIRS * SEEDS)]
        async with (
            relay(replicas[1].address) as balancer,
            answered_by(monkeypatch, nursery, balancer, part, first.key[0], pairs) as (machine, engine),
        ):
            unused = iter(pairs)
            for seed in range(2 * SEEDS):
                victim, moment = seed % 2, random.Random(seed).uniform(0, SPAN)
                await store.write(lambda sql: note_seen(sql, part["id"], now(), {"webrtc": True}))
                caller = Caller(first.key, part["id"], JoinedEngine(unused, engine))
                addresses = [replicas[0].address, replicas[1 - victim].address]
                before = _connected(engine)
                async with trio.open_nursery() as round_nursery:
                    round_nursery.start_soon(caller.connect, addresses)
                    await trio.sleep(moment)
                    replicas[victim].process.kill()
                    balancer.target = replicas[1 - victim].address
                await _until(lambda before=before: _connected(engine) > before)  # type: ignore[misc]
                end = ("the caller", "the machine")[victim]
                print(f"seed {seed}: killed the replica of {end} after {moment:.3f} s, {caller.attempts} attempts")
                replicas[victim] = await pairing.start(seed + 2)
                replicas.reverse()  # the machine is at the replica that was not killed, or moves there
                balancer.target = replicas[1].address
            connections: Any = machine._clients
            await _until(lambda: machine._attempts.value == MAX_ATTEMPTS - 1 and not connections._connecting)
        rows = await store.read(lambda sql: sql.rows("SELECT id FROM offers"))
        ended = await store.write(lambda sql: signalling.expire(sql, now() + signalling.TIME))
        left = await store.read(lambda sql: sql.rows("SELECT offer_id FROM signals"))
        assert (ended, left) == (len(rows), [])
        nursery.cancel_scope.cancel()


def _connected(engine: FakeEngine) -> int:
    return sum(peer.state is PeerState.CONNECTED for peer in engine.peers)


async def _until(true: Any) -> None:
    with trio.fail_after(LIMIT):
        while not true():  # noqa: ASYNC110 - the states have no events
            await trio.sleep(0.01)
