"""The task that updates a program: good and bad releases, interruptions, requests of people."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from agent.actions import disk
from agent.actions.permission import AgentMaintenance
from agent.launch import links
from agent.layout import AGENT, SERVER
from agent.leases.leases import Leases
from agent.update import store
from agent.update.record import ReleaseOffer, UpdateResult, UpdateStep
from schema.agent.records import AdvancedSettings
from schema.errors import MachineError
from tests.helpers.agent.cloud import Behavior
from tests.helpers.agent.device import Device, Open

HOUR = 3600.0


@asynccontextmanager
async def running(folder: Path, change: Callable[[Device], None] = lambda device: None) -> AsyncIterator[Device]:
    """Run a device, after `change` of it."""
    device = Device(folder, random.Random(1))
    change(device)
    device.install(SERVER)
    device.install(AGENT)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.run)
        await trio.sleep(1)
        yield device
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("program", [SERVER, AGENT])
async def test_an_update_is_confirmed_after_ten_minutes(
    program: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        old = device.record(program).slots.current
        new = device.cloud.publish(program, "1.1.0")
        device.offer(program, new)
        await trio.sleep(HOUR)
        record = device.record(program)
        assert (record.slots.current, record.slots.previous, record.progress) == (new, old, None)
        assert record.history[-1].result is UpdateResult.UPDATED
        launch = links.read(device.layout, program)
        assert (launch.run, launch.back, launch.on_trial) == (new.sha256, old.sha256, False)
        assert list(device.layout.downloads.iterdir()) == []


def flipped(content: bytes) -> bytes:
    return content[:-1] + b"x"


BAD: dict[str, tuple[str, Behavior, dict[str, str], Callable[[bytes], bytes], str]] = {
    # name: program, behavior, claims of the header, what is delivered, result
    "server crashes at once": (SERVER, Behavior(crashes_after=0.1), {}, bytes, "rolled_back"),
    "server crashes after 5 minutes": (SERVER, Behavior(crashes_after=300), {}, bytes, "rolled_back"),
    "server never serves": (SERVER, Behavior(serves_after=None), {}, bytes, "rolled_back"),
    "server cannot read its configuration": (SERVER, Behavior(configured=False), {}, bytes, "rolled_back"),
    "agent crashes at once": (AGENT, Behavior(crashes_after=0.1), {}, bytes, "rolled_back"),
    "agent crashes after 5 minutes": (AGENT, Behavior(crashes_after=300), {}, bytes, "rolled_back"),
    "agent starves its watchdog": (AGENT, Behavior(serves_after=None), {}, bytes, "rolled_back"),
    "wrong hash": (SERVER, Behavior(), {}, flipped, "rejected"),
    "too long": (SERVER, Behavior(), {}, lambda content: content + b"x", "rejected"),
    "another program": (SERVER, Behavior(), {"program": AGENT}, bytes, "rejected"),
    "another version in the header": (SERVER, Behavior(), {"version": "9.9.9"}, bytes, "rejected"),
    "another platform in the header": (SERVER, Behavior(), {"platform": "linux/aarch64"}, bytes, "rejected"),
}

STARTS = "it was not confirmed: it was started 3 times, or ran too long"
REASONS = {
    "server crashes at once": STARTS,
    "server crashes after 5 minutes": STARTS,
    "server never serves": "it does not answer requests",
    "server cannot read its configuration": "it has not fetched its configuration",
    "agent crashes at once": STARTS,
    "agent crashes after 5 minutes": STARTS,
    "agent starves its watchdog": STARTS,
    "wrong hash": "the downloaded file has SHA-256",
    "too long": "the file is too long",
    "another program": "its program is machine-agent instead of machine-server",
    "another version in the header": "its version is 9.9.9 instead of 1.1.0",
    "another platform in the header": "its platform is linux/aarch64 instead of linux/x86_64",
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_release_ends_in_quarantine(case: str, tmp_path: Path, autojump_clock: MockClock) -> None:
    program, behavior, claims, deliver, result = BAD[case]
    async with running(tmp_path) as device:
        old = device.record(program).slots.current
        bad = device.cloud.publish(program, "1.1.0", behavior, claims=claims, deliver=deliver)
        device.offer(program, bad)
        await trio.sleep(6 * HOUR)
        record = device.record(program)
        assert (record.slots.current, record.progress) == (old, None)
        assert record.is_quarantined(bad)
        assert [(outcome.version_to, outcome.result.value) for outcome in record.history] == [("1.1.0", result)]
        assert REASONS[case] in record.history[0].reason
        assert links.read(device.layout, program).run == old.sha256
        assert not device.layout.release(program, bad.sha256).exists()
        if program == SERVER:
            assert device.server.release == old.sha256
        else:
            assert device.agents[-1] == old.sha256


async def test_a_release_for_another_platform_is_rejected(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path) as device:
        wrong = device.cloud.publish(SERVER, "1.1.0", platform="linux/aarch64")
        device.offer(SERVER, wrong)
        await trio.sleep(HOUR)
        record = device.record(SERVER)
        assert record.is_quarantined(wrong)
        assert "select a version for linux/x86_64" in record.history[-1].reason


async def test_a_truncated_download_is_continued_until_it_is_complete(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        new = device.cloud.publish(SERVER, "1.1.0", deliver=lambda content: content[:1500])
        device.offer(SERVER, new)
        await trio.sleep(HOUR)
        progress = device.record(SERVER).progress
        assert progress is not None
        assert (progress.step, progress.pausing, progress.error) == (
            UpdateStep.DOWNLOAD,
            True,
            "the connection was closed",
        )
        device.cloud.published[new.sha256].content = device.cloud.published[new.sha256].genuine
        await trio.sleep(2 * HOUR)
        assert device.record(SERVER).slots.current == new


async def test_the_switch_waits_for_permission_and_a_request_does_not(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        permission = device.permission
        assert isinstance(permission, Open)
        permission.reason = "the arm moves"
        new = device.cloud.publish(SERVER, "1.1.0")
        device.offer(SERVER, new)
        await trio.sleep(24 * HOUR)
        driver = device.drivers[SERVER]
        assert [waiting.reason for waiting in driver.waiting] == ["the arm moves"]
        assert device.server.release != new.sha256
        await driver.offer(device.offered[SERVER], now=True)
        await trio.sleep(HOUR)
        assert device.record(SERVER).slots.current == new


async def test_each_reason_is_shown_since_it_became_one(tmp_path: Path, autojump_clock: MockClock) -> None:
    refusals = ["the arm moves"]
    async with running(tmp_path, refusing(100 * HOUR, refusals)) as device:
        driver, permission = device.drivers[SERVER], device.permission
        assert isinstance(permission, AgentMaintenance)
        device.offer(SERVER, device.cloud.publish(SERVER, "1.1.0"))
        await trio.sleep(2 * HOUR)
        await permission._leases.take("flash", 20 * HOUR)
        leased = driver._clock.now()
        await trio.sleep(HOUR)
        progress = device.record(SERVER).progress
        assert progress is not None
        lease, refusal = driver.waiting
        assert lease.reason.startswith("held by flash until ")
        assert leased <= lease.since < leased + 5
        assert refusal.reason == "the arm moves"
        assert progress.since <= refusal.since < progress.since + 60
        refusals[0] = "the arm moves fast"
        changed = driver._clock.now()
        await trio.sleep(HOUR)
        assert driver.waiting[0] == lease
        assert driver.waiting[1].reason == "the arm moves fast"
        assert changed <= driver.waiting[1].since < changed + 120


def refusing(longest_deferral: float, refusals: Sequence[str] = ("the arm moves",)) -> Callable[[Device], None]:
    """Let machine-server refuse with the first reason, with a longest deferral."""

    async def refuse() -> str | None:
        return refusals[0]

    def change(device: Device) -> None:
        leases = Leases(device.layout.leases, device._blocking, device.wall, trio.current_time)
        device.permission = maintenance = AgentMaintenance(refuse, leases, device._blocking, device.wall)
        maintenance.settings(AdvancedSettings(maintenance_longest_deferral=longest_deferral))

    return change


async def test_the_longest_deferral_is_counted_and_not_read_from_a_clock_that_is_set(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path, refusing(10 * HOUR)) as device:
        new = device.cloud.publish(SERVER, "1.1.0")
        device.offer(SERVER, new)
        await trio.sleep(2 * HOUR)
        for jump in (24 * HOUR, -48 * HOUR):
            device.wall_offset += jump
            await trio.sleep(3 * HOUR)
            assert device.record(SERVER).slots.current != new
            assert [waiting.reason for waiting in device.drivers[SERVER].waiting] == ["the arm moves"]
        await trio.sleep(2.5 * HOUR)
        assert device.record(SERVER).slots.current == new


async def test_a_hold_ends_by_itself(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path) as device:
        driver = device.drivers[SERVER]
        await driver.hold(driver._clock.now() + 10 * HOUR)
        new = device.cloud.publish(SERVER, "1.1.0")
        device.offer(SERVER, new)
        await trio.sleep(9 * HOUR)
        assert device.record(SERVER).slots.current != new
        assert [waiting.reason for waiting in driver.waiting] == ["a person holds updates"]
        await trio.sleep(2 * HOUR)
        assert device.record(SERVER).slots.current == new


async def test_a_person_goes_back(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path) as device:
        driver = device.drivers[SERVER]
        with pytest.raises(MachineError, match="there is no older release"):
            await driver.roll_back()
        old = device.record(SERVER).slots.current
        new = device.cloud.publish(SERVER, "1.1.0")
        device.offer(SERVER, new)
        await trio.sleep(HOUR)
        await driver.roll_back()
        await trio.sleep(HOUR)
        record = device.record(SERVER)
        assert (record.slots.current, record.is_quarantined(new), record.progress) == (old, True, None)
        assert device.server.release == old.sha256


async def test_a_person_cannot_go_back_from_the_only_release_while_an_update_is_held(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        driver = device.drivers[SERVER]
        await driver.hold(driver._clock.now() + 10 * HOUR)
        new = device.cloud.publish(SERVER, "1.1.0")
        device.offer(SERVER, new)
        await trio.sleep(HOUR)
        progress = device.record(SERVER).progress
        assert progress is not None
        with pytest.raises(MachineError, match="there is no older release"):
            await driver.roll_back()
        assert device.record(SERVER).progress == progress


async def test_another_offer_replaces_a_trial(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with running(tmp_path) as device:
        first = device.cloud.publish(SERVER, "1.1.0", Behavior(serves_after=None))
        device.offer(SERVER, first)
        await trio.sleep(900)
        cure = device.cloud.publish(SERVER, "1.1.1")
        await device.drivers[SERVER].offer(None)
        device.offer(SERVER, cure)
        await trio.sleep(2 * HOUR)
        record = device.record(SERVER)
        assert record.slots.current == cure
        assert not record.is_quarantined(first)


async def test_a_machine_that_was_offline_before_the_switch_confirms_offline(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        permission = device.permission
        assert isinstance(permission, Open)
        permission.reason = "not yet"
        new = device.cloud.publish(SERVER, "1.1.0")
        device.offer(SERVER, new)
        await trio.sleep(HOUR)
        device.cloud.reachable = False
        permission.reason = ""
        await trio.sleep(HOUR)
        assert device.record(SERVER).slots.current == new


async def test_a_record_that_cannot_be_stored_delays_the_update_and_refuses_requests(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        device.disk_full = 1.0
        driver = device.drivers[SERVER]
        new = device.cloud.publish(SERVER, "1.1.0")
        async with aclosing(driver.changes()) as changes:
            await anext(changes)
            with pytest.raises(MachineError, match="cannot be stored"):
                await driver.hold(driver._clock.now() + HOUR)
            with trio.fail_after(1):
                await anext(changes)  # reports contain the problem
        assert "cannot be stored" in driver.problem
        device.offer(SERVER, new)
        await trio.sleep(HOUR)
        assert device.record(SERVER).progress is None
        device.disk_full = 0.0
        await driver.hold(0)
        await trio.sleep(HOUR)
        assert device.record(SERVER).slots.current == new
        assert driver.problem == ""


@pytest.mark.parametrize("program", [SERVER, AGENT])
async def test_a_release_that_fills_the_disk_is_rolled_back_although_the_disk_stays_full(
    program: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        old = device.record(program).slots.current
        bad = device.cloud.publish(program, "1.1.0", Behavior(fills_disk=True))
        device.offer(program, bad)
        await trio.sleep(2 * HOUR)
        record = device.record(program)
        assert device.filled
        assert (record.slots.current, record.progress) == (old, None)
        assert [entry.reason for entry in record.quarantine] == ["the disk became full during its trial"]
        assert (device.server.release if program == SERVER else device.agents[-1]) == old.sha256
        # A person makes space: later updates are possible.
        device.filled = False
        new = device.cloud.publish(program, "1.1.1")
        device.offer(program, new)
        await trio.sleep(2 * HOUR)
        assert device.record(program).slots.current == new
        assert device.layout.reserve.stat().st_size == disk.RESERVED_FILE


async def test_a_lost_record_is_made_again_from_the_links(tmp_path: Path, autojump_clock: MockClock) -> None:
    device = Device(tmp_path, random.Random(1))
    device.install(AGENT)
    release = device.install(SERVER)
    device.layout.record(SERVER).write_text("{")
    device.invariants.damage(SERVER)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.run)
        await trio.sleep(1)
        record = device.drivers[SERVER].record
        assert record is not None
        assert (record.slots.current, record.slots.factory) == (release, release)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("program", [SERVER, AGENT])
async def test_a_release_whose_record_is_lost_during_its_trial_is_rolled_back(
    program: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        old = device.record(program).slots.current
        new = device.cloud.publish(program, "1.1.0")
        device.offer(program, new)
        await trio.sleep(700)  # it is offered after 600 seconds
        assert device.server.release == new.sha256 or device.agents[-1] == new.sha256
        del device.offered[program]
        record = device.layout.record(program)
        device.invariants.damage(program)
        for path in (record, record.with_name(record.name + store.COPY)):
            path.write_text("{")
        device.life.kill()
        await trio.sleep(HOUR)
        assert device.record(program).slots.current == old
        assert device.record(program).progress is None
        assert (device.server.release if program == SERVER else device.agents[-1]) == old.sha256


async def test_a_file_that_is_damaged_after_it_was_verified_is_downloaded_again(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        new = device.cloud.publish(SERVER, "1.1.0")
        await device.drivers[SERVER].offer(ReleaseOffer(new))
        await device.reached(UpdateStep.STAGE)
        (file,) = device.layout.downloads.iterdir()
        file.write_bytes(file.read_bytes()[:-10] + b"0123456789")
        await trio.sleep(HOUR)
        assert device.record(SERVER).slots.current == new
        assert not device.record(SERVER).is_quarantined(new)


@pytest.mark.parametrize("jump", [-5, 5])
async def test_a_clock_that_was_set_while_the_agent_did_not_run_does_not_change_a_pause(
    jump: float, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        device.cloud.reachable = False
        new = device.cloud.publish(SERVER, "1.1.0")
        driver = device.drivers[SERVER]
        await driver.offer(ReleaseOffer(new))
        await trio.sleep(6)  # the first look-up has failed
        assert driver.record is not None
        assert driver.record.progress is not None
        assert driver.record.progress.pausing
        device.life.kill()
        device.wall_offset = jump * 365 * 24 * HOUR
        device.cloud.reachable = True
        await trio.sleep(60)  # the agent starts again after 5 seconds, and the pause takes at most 11
        assert device.step is UpdateStep.TRIAL


async def test_a_record_that_cannot_be_made_again_is_a_problem_and_not_a_crash(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    device = Device(tmp_path, random.Random(1))
    device.install(SERVER)
    device.layout.record(SERVER).write_text("{")
    device.invariants.damage(SERVER)
    (device.layout.release(SERVER, (links.read(device.layout, SERVER).run or "")) / disk.DESCRIPTION).unlink()
    async with trio.open_nursery() as nursery:
        driver = device._driver(SERVER, device.server, device.life)
        device.invariants.check = lambda: None  # type: ignore[method-assign]
        await nursery.start(driver.run)
        assert "damaged" in driver.problem
        with pytest.raises(MachineError, match="cannot be updated"):
            await driver.roll_back()
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("program", [SERVER, AGENT])
async def test_a_trial_is_over_before_an_update_that_follows_a_roll_back(
    program: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        old = device.record(program).slots.current
        bad = device.cloud.publish(program, "1.1.0", Behavior(crashes_after=0.1))
        device.offer(program, bad)
        await device.reached(UpdateStep.RECOVER)
        assert links.read(device.layout, program).on_trial
        device.permission = Open("the window is closed")
        device.offer(program, device.cloud.publish(program, "1.2.0"))
        await device.reached(UpdateStep.WAIT)
        launch = links.read(device.layout, program)
        assert (launch.run, launch.on_trial) == (old.sha256, False)


@pytest.mark.parametrize("program", [SERVER, AGENT])
async def test_a_power_loss_after_the_confirmation_does_not_bring_back_the_older_release(
    program: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with running(tmp_path) as device:
        old = device.record(program).slots.current
        new = device.cloud.publish(program, "1.1.0")
        device.offer(program, new)
        await device.reached(UpdateStep.TRIAL)
        await trio.sleep(60)
        (device.layout.launch(program) / "trial").write_text("3\n")  # it was started three times
        device.cuts = {None: 1.0}
        await trio.sleep(HOUR)
        assert device.occurred["power fails after a call"] == 1
        assert (device.record(program).slots.current, device.record(program).slots.previous) == (new, old)
        launch = links.read(device.layout, program)
        assert (launch.run, launch.on_trial) == (new.sha256, False)
        started = device.server.starts if program == SERVER else device.agents
        assert started[-2:] == [old.sha256, new.sha256], "it does not end with the new release"


async def test_each_decision_of_an_update_is_logged(tmp_path: Path, autojump_clock: MockClock) -> None:
    with capture_logs() as log:
        async with running(tmp_path) as device:
            device.offer(SERVER, device.cloud.publish(SERVER, "1.1.0"))
            await trio.sleep(HOUR)
            steps = [entry for entry in log if entry["event"] == "decided about the update"]
            verdicts = [entry for entry in log if entry["event"] == "decided about maintenance"]
    assert {entry["log_level"] for entry in (*steps, *verdicts)} == {"debug"}
    assert ("Offered", "none", "resolve") in [(entry["cause"], entry["before"], entry["after"]) for entry in steps]
    assert "trial" in {entry["after"] for entry in steps}
    assert verdicts[0]["allowed"] is True
    assert verdicts[0]["reason"]
