"""The executor of effects: order, failures and their repetition."""

from __future__ import annotations

from ipaddress import IPv4Interface

import trio
from trio.testing import MockClock

from netmgr.applying.executor import FIRST_PAUSE, MAX_PAUSE, Executor
from netmgr.model.plan import AddAddress, Effect, SetDns, SetUp
from schema.errors import MachineError

UP, OTHER = SetUp(interface="eth0"), SetUp(interface="eth1")
ADDRESS = AddAddress(interface="eth0", address=IPv4Interface("192.168.1.2/24"))


class Device:
    """Records what was applied; effects of `broken` interfaces fail."""

    def __init__(self) -> None:
        self.applied: list[Effect] = []
        self.attempts: list[float] = []
        self.broken: set[str] = set()

    async def apply(self, effect: Effect) -> None:
        self.attempts.append(trio.current_time())
        if effect.interface in self.broken:
            raise MachineError("no such device")
        self.applied.append(effect)

    def executor(self) -> Executor:
        return Executor({SetUp: self.apply, AddAddress: self.apply})


async def test_effects_are_applied_in_order() -> None:
    device = Device()
    await device.executor().apply([UP, ADDRESS, OTHER])
    assert device.applied == [UP, ADDRESS, OTHER]


async def test_a_failure_delays_only_its_interface(autojump_clock: MockClock) -> None:
    device = Device()
    device.broken = {"eth0"}
    executor = device.executor()
    await executor.apply([UP, ADDRESS, OTHER])
    assert device.applied == [OTHER]
    (failure,) = executor.failures()
    assert (failure.effect, failure.reason) == (UP, "no such device")
    assert executor.next_attempt() == trio.current_time() + FIRST_PAUSE


async def test_pauses_grow_and_success_ends_them(autojump_clock: MockClock) -> None:
    device = Device()
    device.broken = {"eth0"}
    executor = device.executor()
    for _ in range(10):
        await executor.apply([UP, ADDRESS])
        await trio.sleep_until(executor.next_attempt())
    pauses = [later - earlier for earlier, later in zip(device.attempts, device.attempts[1:], strict=False)]
    assert pauses == [1, 2, 4, 8, 16, 32, *[MAX_PAUSE] * 3]
    device.broken.clear()
    await executor.apply([UP, ADDRESS])
    assert device.applied == [UP, ADDRESS]
    assert executor.failures() == ()
    assert executor.next_attempt() == float("inf")


async def test_effects_with_dictionaries_fail_and_succeed(autojump_clock: MockClock) -> None:
    device = Device()
    device.broken = {""}
    names = SetDns(servers={"eth0": ("9.9.9.9",)}, domains={})
    executor = Executor({SetDns: device.apply})
    await executor.apply([names])
    assert len(executor.failures()) == 1
    device.broken.clear()
    await trio.sleep(FIRST_PAUSE)
    await executor.apply([names])
    assert device.applied == [names]


async def test_a_call_before_the_pause_has_passed_repeats_nothing(autojump_clock: MockClock) -> None:
    device = Device()
    device.broken = {"eth0"}
    executor = device.executor()
    await executor.apply([UP])
    await executor.apply([UP])
    assert len(device.attempts) == 1
    await executor.apply([])
    assert executor.failures() == (), "an effect that is no longer needed has not failed"
