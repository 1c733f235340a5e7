"""Lost remotes and lost connections stop what moves; whole machines in simulated time."""

from __future__ import annotations

import random

import pytest
import trio
from trio.testing import MockClock

from schema.errors import ErrorKind, MachineError
from tests.sim.remotes.network import (
    MOTOR,
    ROBOT,
    SENSOR,
    Network,
    document,
    gauge,
    motor,
)
from tests.sim.remotes.pair import HEAR, PI, happened, names, network, pair, ready, until

__all__ = ["network"]


async def test_motors_stop_when_the_parent_vanishes(network: Network, autojump_clock: MockClock) -> None:
    parent, pi = await pair(network)
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    for _, to, wire in network._wires:  # the parent hangs: its connection stays open but silent
        assert to == "pi"
        wire.hold()
    began = trio.current_time()
    await until(lambda: bool(happened("stop", "left")), 10)
    assert 0 < happened("stop", "left")[0] - began <= 2.1
    assert await pi.client().call(MOTOR, "left", "is_moving") is False


async def test_motors_of_a_remote_stop_when_a_client_of_the_parent_vanishes(
    network: Network, autojump_clock: MockClock
) -> None:
    parent, _ = await pair(network)
    session = await parent.client().call(ROBOT, "", "start_session", resume="")
    client = parent.client({"viam-sid": session["id"]})
    await client.call(MOTOR, "left", "set_power", power_pct=0.5)
    began = trio.current_time()
    await trio.sleep(5)  # the client sends nothing more
    (stopped,) = happened("stop", "left")
    assert stopped - began == pytest.approx(2.0, abs=0.1)


async def test_the_session_at_a_remote_is_renewed_without_errors(network: Network, autojump_clock: MockClock) -> None:
    parent, pi = await pair(network)
    pi.machine.traffic.sessions._sessions.clear()  # as if the session had expired
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    assert len(pi.machine.traffic.sessions) == 1
    (holder,) = pi.machine.status().sessions
    assert holder.resources == (f"{MOTOR}/left",)


async def test_only_resources_commanded_by_this_machine_are_stopped(
    network: Network, autojump_clock: MockClock
) -> None:
    pi = await network.start("pi", document(motor("left"), motor("right")))
    parent = await network.start("parent", document(remotes={"pi": "pi"}))
    await until(ready(parent, "pi:left", "pi:right"))
    await pi.client().call(MOTOR, "right", "set_power", power_pct=0.5)  # commanded by another client
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    parent.write(document())
    await until(lambda: not parent.machine.roster.hosts, 10)
    assert happened("stop", "left")
    assert not happened("stop", "right")


@pytest.mark.parametrize("seed", range(4))
async def test_half_an_hour_of_faults(network: Network, autojump_clock: MockClock, seed: int) -> None:
    """With a remote that is killed, held, cut off and changed at random, local calls never wait and all recovers."""
    rng = random.Random(seed)
    parent, _ = await pair(network)
    own = parent.machine.roster.hosts[f"{MOTOR}/own"]
    answered = refusals = 0
    kinds: set[ErrorKind] = set()

    async def local() -> None:
        while True:
            began = trio.current_time()
            assert await parent.client().call(MOTOR, "own", "is_moving") is False
            assert trio.current_time() == began
            await trio.sleep(5 * rng.random())

    async def remote() -> None:
        nonlocal answered, refusals
        while True:
            began = trio.current_time()
            try:
                await parent.client().call(SENSOR, "pi:air", "get_readings")
                answered += 1
            except MachineError as error:
                kinds.add(error.kind)
                refusals += 1
            assert trio.current_time() - began <= HEAR
            await trio.sleep(5 * rng.random())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(local)
        nursery.start_soon(remote)
        for _ in range(25):
            await trio.sleep(rng.expovariate(1 / 60))
            fault = rng.choice(["crash", "cut", "hold", "change"])
            pi = network.machines.get("pi")
            if fault == "crash" and pi is not None:
                network.crash("pi")
            elif fault == "cut":
                network.cut("pi")
            elif fault == "hold":
                network.hold("pi")
            elif pi is not None:
                pi.write(document(motor("left"), *(gauge(name) for name in ("air", "water") if rng.random() < 0.7)))
            await trio.sleep(rng.expovariate(1 / 10))
            network.release("pi")
            if "pi" not in network.machines:
                await network.start("pi", PI)
        network.machines["pi"].write(document(motor("left"), gauge("air"), gauge("water")))
        await trio.sleep(60)
        assert await names(parent) == ["near", "own", "pi:air", "pi:left", "pi:water"]
        assert {resource.state for resource in parent.machine.status().resources} == {"ready"}
        nursery.cancel_scope.cancel()
    assert parent.machine.roster.hosts[f"{MOTOR}/own"] is own
    assert kinds <= {ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND}
    assert answered > 100
    assert refusals > 5
