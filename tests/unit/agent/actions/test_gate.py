"""Hooks before and after updates, switches and roll-backs, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from agent.actions.driver import ASK_AGAIN
from agent.actions.gate import outcome_of
from agent.hooks.moments import LIMITS, HookedChange, HookMoment
from agent.layout import AGENT, SERVER
from agent.update.record import (
    Release,
    ReleaseSlots,
    UpdateOutcome,
    UpdateProgress,
    UpdateRecord,
    UpdateResult,
    UpdateStep,
)
from agent.update.steps import LONGEST_PAUSE
from tests.helpers.agent.cloud import PLATFORM, Behavior
from tests.helpers.agent.device import EPOCH, Device, Open, PowerLoss
from tests.unit.agent.actions.test_driver import HOUR, refusing, running

UPDATE = HookedChange(SERVER, "1.0.0", "1.1.0")
BACK = HookedChange(SERVER, "1.1.0", "1.0.0")


def hooked(*, refusal: str = "", hang: HookMoment | None = None) -> Callable[[Device], None]:
    """Let the hook before the switch refuse, or one hang."""

    def change(device: Device) -> None:
        if refusal:
            device.hooks.refusals[HookMoment.BEFORE_SWITCH] = refusal
        if hang is not None:
            device.hooks.hangs.add(hang)

    return change


def step(device: Device) -> UpdateStep | None:
    progress = device.record(SERVER).progress
    return progress.step if progress is not None else None


def reason(device: Device) -> str:
    """Return what the update of machine-server waits for."""
    return "; ".join(waiting.reason for waiting in device.drivers[SERVER].waiting)


def runs(device: Device, moment: HookMoment) -> int:
    return sum(entry[0] is moment for entry in device.hooks.ran)


async def offered(device: Device, behavior: Behavior | None = None, program: str = SERVER) -> str:
    """Offer a release, and wait for an hour; return its hash."""
    new = device.cloud.publish(program, "1.1.0", behavior)
    device.offer(program, new)
    await trio.sleep(HOUR)
    return new.sha256


@pytest.mark.parametrize("program", [SERVER, AGENT])
async def test_the_hooks_of_a_good_update(program: str, tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path) as device:
        await offered(device, program=program)
        change = HookedChange(program, "1.0.0", "1.1.0")
        assert device.hooks.ran == [
            (HookMoment.BEFORE_UPDATE, change, ""),
            (HookMoment.BEFORE_SWITCH, change, ""),
            (HookMoment.AFTER_SWITCH, change, ""),
            (HookMoment.AFTER_UPDATE, change, "updated"),
        ]


async def test_the_hooks_of_a_bad_update(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path) as device:
        await offered(device, Behavior(crashes_after=0.1))
        assert device.hooks.ran == [
            (HookMoment.BEFORE_UPDATE, UPDATE, ""),
            (HookMoment.BEFORE_SWITCH, UPDATE, ""),
            (HookMoment.AFTER_SWITCH, UPDATE, ""),
            (HookMoment.BEFORE_ROLLBACK, BACK, ""),
            (HookMoment.AFTER_ROLLBACK, BACK, "rolled_back"),
            (HookMoment.AFTER_UPDATE, UPDATE, "rolled_back"),
        ]


async def test_the_hooks_of_a_roll_back_by_a_person(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path) as device:
        await offered(device)
        device.hooks.ran.clear()
        await device.drivers[SERVER].roll_back()
        await trio.sleep(HOUR)
        assert device.hooks.ran == [
            (HookMoment.BEFORE_ROLLBACK, BACK, ""),
            (HookMoment.AFTER_ROLLBACK, BACK, "rolled_back"),
            (HookMoment.AFTER_UPDATE, BACK, "rolled_back"),
        ]


async def test_an_update_that_is_rejected_or_replaced_ends_with_its_hook(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path, hooked(refusal="not now")) as device:
        await offered(device)
        wrong = device.cloud.publish(SERVER, "1.1.1", platform="linux/aarch64")
        device.offer(SERVER, wrong)
        await trio.sleep(HOUR)
        assert [entry for entry in device.hooks.ran if entry[0] is HookMoment.AFTER_UPDATE] == [
            (HookMoment.AFTER_UPDATE, UPDATE, "superseded"),
            (HookMoment.AFTER_UPDATE, HookedChange(SERVER, "1.0.0", "1.1.1"), "rejected"),
        ]


async def test_a_hook_that_refuses_defers_the_switch_with_its_reason_and_growing_pauses(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path, hooked(refusal="exit code 3: a load")) as device:
        new = await offered(device)
        assert (step(device), reason(device)) == (UpdateStep.WAIT, "exit code 3: a load")
        assert device.server.release != new
        assert runs(device, HookMoment.BEFORE_SWITCH) == 9  # after 10 s, doubled each time
        await trio.sleep(6 * HOUR)
        assert 5 <= runs(device, HookMoment.BEFORE_SWITCH) - 9 <= 8  # each hour
        device.hooks.refusals.clear()
        await trio.sleep(LONGEST_PAUSE + HOUR)
        assert device.record(SERVER).slots.current.sha256 == new


async def test_changed_hooks_and_a_request_are_tried_at_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path, hooked(refusal="a load")) as device:
        await offered(device)
        await trio.sleep(10 * HOUR)
        before = runs(device, HookMoment.BEFORE_SWITCH)
        device.hooks.edit()
        await trio.sleep(1)
        assert runs(device, HookMoment.BEFORE_SWITCH) == before + 1
        await device.drivers[SERVER].offer(device.offered[SERVER], now=True)
        await trio.sleep(10)
        assert runs(device, HookMoment.BEFORE_SWITCH) == before + 2
        assert (step(device), reason(device)) == (UpdateStep.WAIT, "a load"), "a request does not override hooks"
        device.hooks.refusals.clear()
        device.hooks.edit()
        await trio.sleep(1)
        assert step(device) is UpdateStep.TRIAL


async def test_the_hook_before_the_switch_runs_only_when_everything_else_allows_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def change(device: Device) -> None:
        device.permission = Open("the window is closed")

    async with running(tmp_path, change) as device:
        await offered(device)
        assert runs(device, HookMoment.BEFORE_SWITCH) == 0
        assert runs(device, HookMoment.BEFORE_UPDATE) == 1


async def test_a_switch_forbidden_while_the_hook_runs_does_not_happen(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        permission = device.permission
        assert isinstance(permission, Open)

        async def close(moment: HookMoment, change: HookedChange) -> None:
            if moment is HookMoment.BEFORE_SWITCH:
                permission.reason = "a lease was taken"

        device.hooks.during = close
        new = await offered(device)
        assert (step(device), reason(device)) == (UpdateStep.WAIT, "a lease was taken")
        assert device.server.release != new


async def test_the_longest_deferral_ends_the_refusals_of_hooks(tmp_path: Path, autojump_clock: MockClock) -> None:
    def change(device: Device) -> None:
        refusing(5 * HOUR)(device)
        device.hooks.refusals[HookMoment.BEFORE_SWITCH] = "a load"

    async with running(tmp_path, change) as device:
        new = await offered(device)
        await trio.sleep(3.9 * HOUR)
        assert step(device) is UpdateStep.WAIT
        await trio.sleep(HOUR)
        assert device.record(SERVER).slots.current.sha256 == new
        assert runs(device, HookMoment.BEFORE_SWITCH) == 1, "it runs, but its refusal does not count"


async def test_a_hook_that_hangs_at_the_end_of_the_longest_deferral_delays_by_its_limit(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def change(device: Device) -> None:
        refusing(5 * HOUR)(device)
        device.hooks.hangs.add(HookMoment.BEFORE_SWITCH)

    async with running(tmp_path, change) as device:
        new = await offered(device)
        progress = device.record(SERVER).progress
        assert progress is not None
        await trio.sleep(5 * HOUR)
        assert device.server.release == new
        delay = EPOCH + device.server.since - progress.began
        assert delay == pytest.approx(5 * HOUR + LIMITS[HookMoment.BEFORE_SWITCH], abs=ASK_AGAIN)


async def test_the_hook_before_an_update_defers_its_download_with_its_reason(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def change(device: Device) -> None:
        device.hooks.refusals[HookMoment.BEFORE_UPDATE] = "on battery"

    async with running(tmp_path, change) as device:
        new = await offered(device)
        progress = device.record(SERVER).progress
        assert progress is not None
        assert (progress.step, progress.pausing, progress.error) == (UpdateStep.RESOLVE, True, "on battery")
        assert list(device.layout.downloads.iterdir()) == []
        device.hooks.refusals.clear()
        await trio.sleep(LONGEST_PAUSE + HOUR)
        assert device.record(SERVER).slots.current.sha256 == new


async def test_after_the_longest_deferral_the_hook_before_an_update_does_not_defer_it(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    def change(device: Device) -> None:
        refusing(5 * HOUR)(device)
        device.hooks.refusals[HookMoment.BEFORE_UPDATE] = "on battery"

    async with running(tmp_path, change) as device:
        new = await offered(device)
        await trio.sleep(3.9 * HOUR)
        assert step(device) is UpdateStep.RESOLVE
        await trio.sleep(LONGEST_PAUSE * 1.3)
        assert device.record(SERVER).slots.current.sha256 == new


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_hook_delays_a_roll_back_by_its_limit_and_never_prevents_it(
    hangs: bool, tmp_path: Path, autojump_clock: MockClock
) -> None:
    def change(device: Device) -> None:
        device.hooks.refusals[HookMoment.BEFORE_ROLLBACK] = "never"
        if hangs:
            device.hooks.hangs.add(HookMoment.BEFORE_ROLLBACK)

    async with running(tmp_path, change) as device:
        old = device.record(SERVER).slots.current.sha256
        await offered(device)
        begun = trio.current_time()
        await device.drivers[SERVER].roll_back()
        while device.server.release != old:
            await device.server.change()
        delay = trio.current_time() - begun
        assert delay == pytest.approx(LIMITS[HookMoment.BEFORE_ROLLBACK] if hangs else 0, abs=1)


async def test_a_refusal_of_a_hook_is_about_one_release(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path, hooked(refusal="a load")) as device:
        await offered(device)
        await trio.sleep(5 * HOUR)
        before = runs(device, HookMoment.BEFORE_SWITCH)
        device.offered_every = 1.0
        device.offer(SERVER, device.cloud.publish(SERVER, "1.1.1"))
        await trio.sleep(20 * 60)
        assert runs(device, HookMoment.BEFORE_SWITCH) >= before + 5, "the pause of the other release counts"


async def test_the_hook_before_a_roll_back_is_repeated_after_a_power_loss(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:

        async def fail(moment: HookMoment, change: HookedChange) -> None:
            if runs(device, HookMoment.BEFORE_ROLLBACK) == 1 and moment is HookMoment.BEFORE_ROLLBACK:
                raise PowerLoss

        await offered(device)
        device.hooks.during = fail
        await device.drivers[SERVER].roll_back()
        await trio.sleep(HOUR)
        assert runs(device, HookMoment.BEFORE_ROLLBACK) == 2
        assert device.record(SERVER).slots.current.version == "1.0.0"


def test_the_outcome_is_that_of_the_update_that_ended_and_not_of_what_was_to_follow() -> None:
    release = Release("1.1.0", "a" * 64, 1, "/a", PLATFORM)
    ours, other = (
        UpdateOutcome("1.0.0", "1.1.0", release.sha256, UpdateResult.SUPERSEDED, reason, began, 9.0)
        for reason, began in (("ours", 1.0), ("replaced before it began", 5.0))
    )
    progress = UpdateProgress(UpdateStep.RECOVER, release, began=1.0, since=2.0, deadline=3.0)
    before = UpdateRecord(SERVER, ReleaseSlots(release), progress)
    ended = UpdateRecord(SERVER, ReleaseSlots(release), history=(ours, other))
    assert outcome_of(before, ended) is ours
    assert outcome_of(before, replace(ended, progress=progress)) is None
    assert outcome_of(before, replace(ended, progress=replace(progress, began=5.0))) is ours
    assert outcome_of(ended, ended) is None
