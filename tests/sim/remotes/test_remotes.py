"""Whole machines with whole machines as their remotes, in simulated time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from runtime.memory import MemoryMachine
from runtime.remotes.life import ANSWER_LIMIT
from schema.errors import ErrorKind, MachineError
from tests.sim.remotes.network import (
    MOTOR,
    ROBOT,
    SENSOR,
    Gauge,
    Network,
    Wheel,
    document,
    gauge,
    motor,
    open_network,
)

HEAR = ANSWER_LIMIT + 1.0  # seconds after which a hung remote counts as lost: a beat's pause and one question


@pytest.fixture
async def network() -> AsyncIterator[Network]:
    Wheel.events.clear()
    Gauge.broken.clear()
    async with open_network() as found:
        yield found


def happened(event: str, name: str) -> list[float]:
    return [time for time, what, who in Wheel.events if (what, who) == (event, name)]


async def names(memory: MemoryMachine) -> list[str]:
    found: list[str] = await memory.client().call(ROBOT, "", "resource_names")
    return sorted(one.rpartition("/")[2] for one in found)


async def until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Virtual time passes until something is so; looks often, which costs nothing here."""
    with trio.fail_after(seconds):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.05)


def ready(memory: MemoryMachine, *wanted: str) -> Callable[[], bool]:
    return lambda: all(any(full.endswith(f"/{name}") for full in memory.machine.hosts) for name in wanted)


def status(memory: MemoryMachine, name: str) -> Any:
    everything = (*memory.machine.status().resources, *memory.machine.status().internal)
    return next(one for one in everything if one.name.endswith(f"/{name}"))


async def refused(memory: MemoryMachine, api: str, name: str, method: str, **arguments: Any) -> MachineError:
    with pytest.raises(MachineError) as caught:
        await memory.client().call(api, name, method, **arguments)
    return caught.value


PARENT = document(motor("own"), gauge("near", needs=["left"]), remotes={"pi": "pi"})
PI = document(motor("left"), gauge("air", speed=1.0))


async def pair(network: Network) -> tuple[MemoryMachine, MemoryMachine]:
    pi = await network.start("pi", PI)
    parent = await network.start("parent", PARENT)
    await until(ready(parent, "pi:left", "pi:air", "near"))
    return parent, pi


async def test_resources_of_a_remote_are_the_machines(network: Network, autojump_clock: MockClock) -> None:
    parent, pi = await pair(network)
    assert await names(parent) == ["near", "own", "pi:air", "pi:left"]
    assert await parent.client().call(SENSOR, "pi:air", "get_readings") == {"speed": 1.0, "needs": []}
    assert await parent.client().call(SENSOR, "air", "get_readings") == {"speed": 1.0, "needs": []}
    assert (await parent.client().call(SENSOR, "near", "get_readings"))["needs"] == [f"{MOTOR}/pi:left"]
    await parent.client().call(MOTOR, "left", "set_power", power_pct=0.5)
    assert await parent.client().call(MOTOR, "pi:left", "is_moving") is True
    await parent.client().call(ROBOT, "", "stop_all")
    assert await pi.client().call(MOTOR, "left", "is_moving") is False
    assert status(parent, "pi").state == "ready"
    error = await refused(parent, MOTOR, "pi:lefd", "is_moving")
    assert error.kind is ErrorKind.NOT_FOUND
    assert "pi:left" in str(error)


async def test_names_by_which_entries_may_need_them(network: Network, autojump_clock: MockClock) -> None:
    await network.start("pi", PI)
    wishes = ("left", "pi:lab-left", "lab-left", f"{MOTOR}/pi:lab-left", f"{MOTOR}/lab-left")
    entries = [gauge(f"g{index}", needs=[wish]) for index, wish in enumerate(wishes)]
    parent = await network.start("parent", document(*entries, remotes={"pi": "pi"}, prefix="lab-"))
    await until(ready(parent, "g1", "g2", "g3", "g4"))
    assert "no resource 'left' is configured" in status(parent, "g0").reason


async def test_two_remotes_with_one_name(network: Network, autojump_clock: MockClock) -> None:
    await network.start("one", PI)
    await network.start("two", PI)
    parent = await network.start("parent", document(motor("left"), remotes={"one": "one", "two": "two"}))
    await until(ready(parent, "one:left", "two:left", "one:air", "two:air"))
    assert await parent.client().call(MOTOR, "left", "is_moving") is False  # the machine's own
    error = await refused(parent, SENSOR, "air", "get_readings")
    assert error.kind is ErrorKind.INVALID
    assert f"may be {SENSOR}/one:air or {SENSOR}/two:air" in str(error)
    network.stop("two")
    assert (await refused(parent, SENSOR, "air", "get_readings")).kind is ErrorKind.INVALID  # still configured


@pytest.mark.parametrize("prompt", [True, False], ids=["at once", "after a long time"])
async def test_a_remote_that_goes_and_comes_disturbs_nobody(
    network: Network, autojump_clock: MockClock, prompt: bool
) -> None:
    parent, _ = await pair(network)
    near, own = status(parent, "near"), status(parent, "own")
    network.crash("pi")
    await until(lambda: status(parent, "pi").state == "unhealthy", 5)
    error = await refused(parent, SENSOR, "pi:air", "get_readings")
    assert error.kind is ErrorKind.UNAVAILABLE
    assert "remote pi is not connected" in str(error)
    assert "not connected" in status(parent, "pi:air").reason
    assert await names(parent) == ["near", "own", "pi:air", "pi:left"]
    if not prompt:
        await trio.sleep(3600)
        assert "connection refused" in status(parent, "pi").reason
    Wheel.events.clear()
    await network.start("pi", PI)
    await until(lambda: status(parent, "pi").state == "ready", 15)
    assert await parent.client().call(SENSOR, "pi:air", "get_readings") == {"speed": 1.0, "needs": []}
    assert status(parent, "pi:air").state == "ready"
    assert status(parent, "near").restarts == near.restarts
    assert status(parent, "own").restarts == own.restarts
    assert not happened("start", "own")


async def test_only_what_is_different_after_a_restart_is_touched(network: Network, autojump_clock: MockClock) -> None:
    parent, _ = await pair(network)
    kept, near = parent.machine.hosts[f"{MOTOR}/pi:left"], parent.machine.hosts[f"{SENSOR}/near"]
    network.crash("pi")
    await network.start("pi", document(motor("left"), gauge("water")))
    await until(ready(parent, "pi:water"))
    await until(lambda: f"{SENSOR}/pi:air" not in parent.machine.hosts, 15)
    assert parent.machine.hosts[f"{MOTOR}/pi:left"] is kept
    assert parent.machine.hosts[f"{SENSOR}/near"] is near
    error = await refused(parent, SENSOR, "pi:air", "get_readings")
    assert error.kind is ErrorKind.NOT_FOUND


async def test_what_a_remote_adds_and_removes_without_a_restart(network: Network, autojump_clock: MockClock) -> None:
    parent, pi = await pair(network)
    pi.write(document(motor("left"), gauge("water")))
    await until(ready(parent, "pi:water"), 15)
    await until(lambda: f"{SENSOR}/pi:air" not in parent.machine.hosts, 1)
    pi.write(document(gauge("water")))
    error = await refused(parent, MOTOR, "pi:left", "is_moving")  # a doubtful answer: looked at soon
    assert error.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE)
    await until(lambda: f"{MOTOR}/pi:left" not in parent.machine.hosts, 3)
    await until(
        lambda: "the remote pi has none of that name" in status(parent, "near").reason or not ready(parent, "near")()
    )
    pi.write(PI)
    await until(ready(parent, "pi:left", "near"), 15)


async def test_what_is_not_well_there_is_kept_and_says_why(network: Network, autojump_clock: MockClock) -> None:
    parent, pi = await pair(network)
    Gauge.broken.add("air")
    pi.write(document(motor("left"), gauge("air", speed=2.0)))
    await until(lambda: status(parent, "pi:air").state == "unhealthy", 15)
    assert status(parent, "pi:air").reason == "on remote pi: unhealthy: no such bus"
    error = await refused(parent, SENSOR, "pi:air", "get_readings")
    assert error.kind is ErrorKind.UNAVAILABLE
    assert "no such bus" in str(error)
    Gauge.broken.clear()
    await until(lambda: status(parent, "pi:air").state == "ready", 30)
    assert (await parent.client().call(SENSOR, "pi:air", "get_readings"))["speed"] == 2.0


async def test_a_hung_remote_delays_nobody_and_is_given_up(network: Network, autojump_clock: MockClock) -> None:
    parent, _ = await pair(network)
    network.hold("pi")
    began = trio.current_time()
    await parent.client().call(MOTOR, "own", "set_power", power_pct=0.1)
    assert await names(parent) == ["near", "own", "pi:air", "pi:left"]
    assert trio.current_time() == began
    error = await refused(parent, SENSOR, "pi:air", "get_readings")
    assert error.kind is ErrorKind.UNAVAILABLE
    assert trio.current_time() - began <= HEAR
    assert "no answer within 5 s" in str(await refused(parent, SENSOR, "pi:air", "get_readings"))
    await trio.sleep(100)
    network.release("pi")
    await until(lambda: status(parent, "pi").state == "ready", 15)
    assert await parent.client().call(MOTOR, "pi:left", "is_moving") is False


async def test_a_remote_that_hangs_from_the_start_keeps_the_machine_from_nothing(
    network: Network, autojump_clock: MockClock
) -> None:
    await network.start("pi", PI)
    network.hold("pi")
    began = trio.current_time()
    parent = await network.start("parent", PARENT)
    await until(ready(parent, "own"), 1)
    await until(lambda: not parent.machine.reconfiguring, 3)
    assert trio.current_time() - began < 3
    assert "a remote may have it and is not connected: pi (not connected yet)" in status(parent, "near").reason
    network.release("pi")
    await until(ready(parent, "pi:left", "near"), 30)


async def test_a_parent_that_vanishes_leaves_no_motor_turning(network: Network, autojump_clock: MockClock) -> None:
    parent, pi = await pair(network)
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    for _, to, wire in network._wires:  # the parent hangs: its connection lives, and is silent
        assert to == "pi"
        wire.hold()
    began = trio.current_time()
    await until(lambda: bool(happened("stop", "left")), 10)
    assert 0 < happened("stop", "left")[0] - began <= 2.1
    assert await pi.client().call(MOTOR, "left", "is_moving") is False


async def test_a_client_of_the_parent_that_vanishes_stops_what_it_moves_there(
    network: Network, autojump_clock: MockClock
) -> None:
    parent, _ = await pair(network)
    session = await parent.client().call(ROBOT, "", "start_session", resume="")
    client = parent.client({"viam-sid": session["id"]})
    await client.call(MOTOR, "left", "set_power", power_pct=0.5)
    began = trio.current_time()
    await trio.sleep(5)  # says nothing more
    (stopped,) = happened("stop", "left")
    assert stopped - began == pytest.approx(2.0, abs=0.1)


async def test_our_session_there_is_begun_anew_without_a_word_to_clients(
    network: Network, autojump_clock: MockClock
) -> None:
    parent, pi = await pair(network)
    pi.machine.sessions._sessions.clear()  # as if it had expired
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    assert len(pi.machine.sessions) == 1
    (holder,) = pi.machine.status().sessions
    assert holder.resources == (f"{MOTOR}/left",)


async def test_only_what_was_commanded_from_here_is_stopped_at_the_end(
    network: Network, autojump_clock: MockClock
) -> None:
    pi = await network.start("pi", document(motor("left"), motor("right")))
    parent = await network.start("parent", document(remotes={"pi": "pi"}))
    await until(ready(parent, "pi:left", "pi:right"))
    await pi.client().call(MOTOR, "right", "set_power", power_pct=0.5)  # somebody else's
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    parent.write(document())
    await until(lambda: not parent.machine.hosts, 10)
    assert happened("stop", "left")
    assert not happened("stop", "right")


async def test_local_dependents_stop_before_what_they_need_there(network: Network, autojump_clock: MockClock) -> None:
    await network.start("pi", PI)
    parent = await network.start("parent", document(motor("arm", needs=["pi:left"]), remotes={"pi": "pi"}))
    await until(ready(parent, "arm"))
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    Wheel.events.clear()
    parent.write(document(motor("arm", needs=["pi:left"])))
    await until(lambda: f"{MOTOR}/pi:left" not in parent.machine.hosts, 10)
    order = [(what, who) for _, what, who in Wheel.events]
    assert order.index(("end", "arm")) < order.index(("stop", "left"))


async def test_a_chain_of_three(network: Network, autojump_clock: MockClock) -> None:
    await network.start("deck", document(motor("crane")))
    await network.start("pi", document(motor("left"), remotes={"deck": "deck"}))
    parent = await network.start("parent", document(remotes={"pi": "pi"}))
    await until(ready(parent, "pi:left", "pi:deck:crane"), 30)
    await parent.client().call(MOTOR, "crane", "set_power", power_pct=0.5)
    assert await parent.client().call(MOTOR, "pi:deck:crane", "is_moving") is True
    network.crash("deck")
    await trio.sleep(1)
    error = await refused(parent, MOTOR, "pi:deck:crane", "is_moving")
    assert error.kind is ErrorKind.UNAVAILABLE
    assert "remote pi: " in str(error)
    assert "remote deck" in str(error)
    await trio.sleep(30)
    assert await names(parent) == ["pi:deck:crane", "pi:left"]
    assert "remote deck is not connected" in status(parent, "pi:deck:crane").reason
    assert await parent.client().call(MOTOR, "pi:left", "is_moving") is False


async def test_machines_that_have_each_other_end_the_circle(network: Network, autojump_clock: MockClock) -> None:
    a = await network.start("a", document(motor("one"), remotes={"b": "b"}))
    b = await network.start("b", document(motor("two"), remotes={"c": "c"}))
    c = await network.start("c", document(motor("three"), remotes={"a": "a"}))
    await trio.sleep(300)
    assert await names(a) == ["b:c:three", "b:two", "one"]
    assert await names(b) == ["c:a:one", "c:three", "two"]
    assert await names(c) == ["a:b:two", "a:one", "three"]


async def test_a_machine_that_has_itself(network: Network, autojump_clock: MockClock) -> None:
    a = await network.start("a", document(motor("one"), remotes={"me": "a"}))
    await trio.sleep(60)
    assert await names(a) == ["one"]
    assert status(a, "me").state == "ready"


async def test_a_remote_that_starts_loses_nothing_meanwhile(network: Network, autojump_clock: MockClock) -> None:
    parent, _ = await pair(network)
    near = parent.machine.hosts[f"{SENSOR}/near"]
    network.crash("pi")
    pi = await network.start("pi", document(motor("left", slow=20.0), gauge("air")))
    pi.machine.state = type(pi.machine.state).INITIALIZING
    await until(lambda: status(parent, "pi").state == "ready", 15)
    await trio.sleep(5)
    assert f"{MOTOR}/pi:left" in parent.machine.hosts  # not ready there yet, and kept
    assert status(parent, "pi:left").state == "unhealthy"
    await trio.sleep(20)
    pi.machine.state = type(pi.machine.state).RUNNING
    await until(lambda: status(parent, "pi:left").state == "ready", 5)
    assert parent.machine.hosts[f"{SENSOR}/near"] is near


async def test_another_address_is_another_connection(network: Network, autojump_clock: MockClock) -> None:
    await network.start("elsewhere", document(motor("left", speed=7.0), gauge("air", speed=7.0)))
    parent, _ = await pair(network)
    air = parent.machine.hosts[f"{SENSOR}/pi:air"]
    parent.write(document(motor("own"), gauge("near", needs=["left"]), remotes={"pi": "elsewhere"}))
    await until(lambda: parent.machine.hosts.get(f"{SENSOR}/pi:air") not in (None, air), 15)
    await until(ready(parent, "near"), 1)
    assert (await parent.client().call(SENSOR, "pi:air", "get_readings"))["speed"] == 7.0
    assert not happened("end", "own")


@pytest.mark.parametrize("seed", range(4))
async def test_half_an_hour_of_faults(network: Network, autojump_clock: MockClock, seed: int) -> None:
    """A remote that is killed, held, cut off and changed at random: local calls never wait, in the end all is well."""
    rng = random.Random(seed)
    parent, _ = await pair(network)
    own = parent.machine.hosts[f"{MOTOR}/own"]
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
        assert {one.state for one in parent.machine.status().resources} == {"ready"}
        nursery.cancel_scope.cancel()
    assert parent.machine.hosts[f"{MOTOR}/own"] is own
    assert kinds <= {ErrorKind.UNAVAILABLE, ErrorKind.NOT_FOUND}
    assert answered > 100
    assert refusals > 5
