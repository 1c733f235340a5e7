"""Machines with other machines as their remotes, in simulated time."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from schema.errors import ErrorKind
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
)
from tests.sim.remotes.pair import HEAR, PARENT, PI, happened, names, network, pair, ready, refused, status, until

__all__ = ["network"]


async def test_resources_of_a_remote_belong_to_the_machine(network: Network, autojump_clock: MockClock) -> None:
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


async def test_names_for_dependencies_on_remote_resources(network: Network, autojump_clock: MockClock) -> None:
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
    assert await parent.client().call(MOTOR, "left", "is_moving") is False  # the parent's own motor
    error = await refused(parent, SENSOR, "air", "get_readings")
    assert error.kind is ErrorKind.INVALID
    assert f"may be {SENSOR}/one:air or {SENSOR}/two:air" in str(error)
    network.stop("two")
    assert (await refused(parent, SENSOR, "air", "get_readings")).kind is ErrorKind.INVALID  # still configured


@pytest.mark.parametrize("prompt", [True, False], ids=["at once", "after a long time"])
async def test_a_reconnecting_remote_affects_no_other_resource(
    network: Network, autojump_clock: MockClock, prompt: bool
) -> None:
    parent, _ = await pair(network)
    near, own = status(parent, "near"), status(parent, "own")
    network.crash("pi")
    await until(lambda: status(parent, "pi").state == "unhealthy", 5)
    error = await refused(parent, SENSOR, "pi:air", "get_readings")
    assert error.kind is ErrorKind.UNAVAILABLE
    assert "remote 'pi' is not connected" in str(error)
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


async def test_only_changed_resources_are_rebuilt_after_a_restart(network: Network, autojump_clock: MockClock) -> None:
    parent, _ = await pair(network)
    kept, near = parent.machine.roster.hosts[f"{MOTOR}/pi:left"], parent.machine.roster.hosts[f"{SENSOR}/near"]
    network.crash("pi")
    await network.start("pi", document(motor("left"), gauge("water")))
    await until(ready(parent, "pi:water"))
    await until(lambda: f"{SENSOR}/pi:air" not in parent.machine.roster.hosts, 15)
    assert parent.machine.roster.hosts[f"{MOTOR}/pi:left"] is kept
    assert parent.machine.roster.hosts[f"{SENSOR}/near"] is near
    error = await refused(parent, SENSOR, "pi:air", "get_readings")
    assert error.kind is ErrorKind.NOT_FOUND


async def test_resources_that_a_remote_adds_and_removes(network: Network, autojump_clock: MockClock) -> None:
    parent, pi = await pair(network)
    pi.write(document(motor("left"), gauge("water")))
    await until(ready(parent, "pi:water"), 15)
    await until(lambda: f"{SENSOR}/pi:air" not in parent.machine.roster.hosts, 1)
    pi.write(document(gauge("water")))
    error = await refused(parent, MOTOR, "pi:left", "is_moving")  # a doubtful answer makes the parent look again soon
    assert error.kind in (ErrorKind.NOT_FOUND, ErrorKind.UNAVAILABLE)
    await until(lambda: f"{MOTOR}/pi:left" not in parent.machine.roster.hosts, 3)
    await until(
        lambda: (
            "the remote 'pi' has no resource of that name" in status(parent, "near").reason
            or not ready(parent, "near")()
        )
    )
    pi.write(PI)
    await until(ready(parent, "pi:left", "near"), 15)


async def test_unhealthy_remote_resources_are_kept_with_their_reason(
    network: Network, autojump_clock: MockClock
) -> None:
    parent, pi = await pair(network)
    Gauge.broken.add("air")
    pi.write(document(motor("left"), gauge("air", speed=2.0)))
    await until(lambda: status(parent, "pi:air").state == "unhealthy", 15)
    assert status(parent, "pi:air").reason == "on remote 'pi': unhealthy: no such bus"
    error = await refused(parent, SENSOR, "pi:air", "get_readings")
    assert error.kind is ErrorKind.UNAVAILABLE
    assert "no such bus" in str(error)
    Gauge.broken.clear()
    await until(lambda: status(parent, "pi:air").state == "ready", 30)
    assert (await parent.client().call(SENSOR, "pi:air", "get_readings"))["speed"] == 2.0


async def test_a_hanging_remote_delays_nothing_and_is_disconnected(network: Network, autojump_clock: MockClock) -> None:
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


async def test_a_remote_that_hangs_from_the_start_does_not_block_the_machine(
    network: Network, autojump_clock: MockClock
) -> None:
    await network.start("pi", PI)
    network.hold("pi")
    began = trio.current_time()
    parent = await network.start("parent", PARENT)
    await until(ready(parent, "own"), 1)
    await until(lambda: not parent.machine.configured.applying, 3)
    assert trio.current_time() - began < 3
    assert "it may be on a remote that is not connected: pi (not connected yet)" in status(parent, "near").reason
    network.release("pi")
    await until(ready(parent, "pi:left", "near"), 30)


async def test_local_dependents_stop_before_their_remote_dependencies(
    network: Network, autojump_clock: MockClock
) -> None:
    await network.start("pi", PI)
    parent = await network.start("parent", document(motor("arm", needs=["pi:left"]), remotes={"pi": "pi"}))
    await until(ready(parent, "arm"))
    await parent.client().call(MOTOR, "pi:left", "set_power", power_pct=0.5)
    Wheel.events.clear()
    parent.write(document(motor("arm", needs=["pi:left"])))
    await until(lambda: f"{MOTOR}/pi:left" not in parent.machine.roster.hosts, 10)
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
    assert "remote 'pi': " in str(error)
    assert "remote 'deck'" in str(error)
    await trio.sleep(30)
    assert await names(parent) == ["pi:deck:crane", "pi:left"]
    assert "remote 'deck' is not connected" in status(parent, "pi:deck:crane").reason
    assert await parent.client().call(MOTOR, "pi:left", "is_moving") is False


async def test_machines_that_are_remotes_of_each_other(network: Network, autojump_clock: MockClock) -> None:
    a = await network.start("a", document(motor("one"), remotes={"b": "b"}))
    b = await network.start("b", document(motor("two"), remotes={"c": "c"}))
    c = await network.start("c", document(motor("three"), remotes={"a": "a"}))
    await trio.sleep(300)
    assert await names(a) == ["b:c:three", "b:two", "one"]
    assert await names(b) == ["c:a:one", "c:three", "two"]
    assert await names(c) == ["a:b:two", "a:one", "three"]


async def test_a_machine_that_is_its_own_remote(network: Network, autojump_clock: MockClock) -> None:
    a = await network.start("a", document(motor("one"), remotes={"me": "a"}))
    await trio.sleep(60)
    assert await names(a) == ["one"]
    assert status(a, "me").state == "ready"


async def test_a_starting_remote_loses_no_calls(network: Network, autojump_clock: MockClock) -> None:
    parent, _ = await pair(network)
    near = parent.machine.roster.hosts[f"{SENSOR}/near"]
    network.crash("pi")
    pi = await network.start("pi", document(motor("left", slow=20.0), gauge("air")))
    pi.machine.lifecycle.state = type(pi.machine.lifecycle.state).INITIALIZING
    await until(lambda: status(parent, "pi").state == "ready", 15)
    await trio.sleep(5)
    assert f"{MOTOR}/pi:left" in parent.machine.roster.hosts  # kept while the remote is not ready
    assert status(parent, "pi:left").state == "unhealthy"
    await trio.sleep(20)
    pi.machine.lifecycle.state = type(pi.machine.lifecycle.state).RUNNING
    await until(lambda: status(parent, "pi:left").state == "ready", 5)
    assert parent.machine.roster.hosts[f"{SENSOR}/near"] is near


async def test_a_changed_address_opens_a_new_connection(network: Network, autojump_clock: MockClock) -> None:
    await network.start("elsewhere", document(motor("left", speed=7.0), gauge("air", speed=7.0)))
    parent, _ = await pair(network)
    air = parent.machine.roster.hosts[f"{SENSOR}/pi:air"]
    parent.write(document(motor("own"), gauge("near", needs=["left"]), remotes={"pi": "elsewhere"}))
    await until(lambda: parent.machine.roster.hosts.get(f"{SENSOR}/pi:air") not in (None, air), 15)
    await until(ready(parent, "near"), 1)
    assert (await parent.client().call(SENSOR, "pi:air", "get_readings"))["speed"] == 7.0
    assert not happened("end", "own")
