"""The simulated bench as a whole: supply, quantities, noise, faults and errors."""

from __future__ import annotations

import errno

import pytest
import trio
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.sim import World
from hal.sim.bench.axes import SimAxes
from hal.sim.bench.motor import SimMotor
from hal.sim.faults import FaultPlan
from schema.errors import ErrorKind


async def test_the_supply_sags_under_load_and_recovers(autojump_clock: MockClock) -> None:
    world = World()
    idle = world.volts()
    with world.holding(SimMotor("m", 100.0, world.now())) as motor:
        motor.shaft.drive(1.0, world.now())
        starting = world.current()
        assert starting == pytest.approx(2.0)
        assert world.volts() < idle
        await trio.sleep(2)
        assert 0 < world.current() < starting / 5
        motor.shaft.drive(0.0, world.now())
        assert world.volts() == idle


async def test_working_motors_warm_the_bench_and_lamps_light_it(autojump_clock: MockClock) -> None:
    world = World()
    with world.holding(SimMotor("m", 100.0, world.now())) as motor, world.holding(world.board("b")) as board:
        cold = world.temperature()
        motor.shaft.drive(1.0, world.now())
        await trio.sleep(600)
        assert world.temperature() > cold + 3
        dark = world.light()
        board.pin("1").write(True)
        assert world.light() == pytest.approx(dark + 40)


async def test_noise_depends_on_seed_key_and_time_only(autojump_clock: MockClock) -> None:
    first, same, other = World(seed=1), World(seed=1), World(seed=2)
    first.noise("else")
    assert first.noise("x") == same.noise("x") != other.noise("x")
    before = first.noise("x")
    await trio.sleep(1)
    assert first.noise("x") != before


async def test_faults_strike_by_seed(autojump_clock: MockClock) -> None:
    async def run() -> list[bool]:
        world = World(seed=5)
        world.faults.inject("d", FaultPlan(Fault.NO_ACKNOWLEDGE, probability=0.5))
        struck = []
        for _ in range(40):
            try:
                await world.faults.strike("d")
                struck.append(False)
            except HalError:
                struck.append(True)
        return struck

    first = await run()
    assert first == await run()
    assert 5 < sum(first) < 35


async def test_a_slow_device_is_late_and_a_cleared_one_is_not(autojump_clock: MockClock) -> None:
    world = World()
    world.faults.inject("d", FaultPlan(delay=3.0))
    begin = trio.current_time()
    await world.faults.strike("d")
    assert trio.current_time() - begin == pytest.approx(3)
    world.faults.clear("d")
    await world.faults.strike("d")
    assert trio.current_time() - begin == pytest.approx(3)


async def test_devices_leave_the_bench_whatever_happens(autojump_clock: MockClock) -> None:
    world = World()
    with pytest.raises(RuntimeError), world.holding(SimAxes("a", "servo", [0.0])):
        raise RuntimeError
    assert world.devices() == []
    assert world.find(SimAxes, "a") is None


@pytest.mark.parametrize(
    ("number", "fault", "kind"),
    [
        (errno.EACCES, Fault.PERMISSION, ErrorKind.PERMISSION),
        (errno.ENOENT, Fault.GONE, ErrorKind.UNAVAILABLE),
        (errno.EBUSY, Fault.BUSY, ErrorKind.PRECONDITION),
        (errno.EREMOTEIO, Fault.NO_ACKNOWLEDGE, ErrorKind.UNAVAILABLE),
        (errno.ETIMEDOUT, Fault.TIMEOUT, ErrorKind.TIMEOUT),
        (errno.EOPNOTSUPP, Fault.UNSUPPORTED, ErrorKind.UNSUPPORTED),
        (errno.EIO, Fault.BUS, ErrorKind.UNAVAILABLE),
    ],
)
def test_errors_of_the_system_get_a_kind_and_a_remedy(number: int, fault: Fault, kind: ErrorKind) -> None:
    error = HalError.of(OSError(number, "what the system said"), "/dev/thing", group="things")
    assert error.fault is fault
    assert error.kind is kind
    assert "what the system said" in str(error)
    assert error.remedy
    assert ("things" in error.remedy) == (fault is Fault.PERMISSION)


async def test_axes_glide_together_or_apart(autojump_clock: MockClock) -> None:
    axes = SimAxes("a", "gantry", [0.0, 0.0])
    assert axes.send([10.0, 20.0], [10.0, 10.0], 0.0) == pytest.approx(2.0)
    assert axes.values(1.0) == pytest.approx([10.0, 10.0])
    axes.halt(1.5)
    assert axes.values(9.0) == pytest.approx([10.0, 15.0])
    assert not axes.moving(1.6)
    end = axes.send_together([0.0, 0.0], [10.0, 10.0], 2.0)
    assert end == pytest.approx(3.5)
    assert axes.values(2.75) == pytest.approx([5.0, 7.5])
    assert (axes.moving(3.4), axes.moving(end)) == (True, False)
    assert axes.current(2.5) > axes.current(4.0)
