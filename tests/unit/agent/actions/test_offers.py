"""Offers to a machine with a pinned root when the cloud, or another host on the way to it, cannot be trusted."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import msgspec
import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock

from agent.actions.catalog import ReleaseCatalog
from agent.actions.offers import HURRY, LONGEST_PAUSE, ReleaseOffers
from agent.commands import UpdateCommands
from agent.control.requests import CloudRequest
from agent.layout import AGENT, SERVER
from agent.releases.chain import pin
from agent.releases.trust import Trust
from agent.update.desired import DesiredVersion
from agent.update.record import QuarantinedRelease, Release, UpdateStep
from schema.errors import ConfigError, MachineError
from support.worker import Worker
from tests.helpers.agent.cloud import PLATFORM
from tests.helpers.agent.device import Device, Open
from tests.unit.agent.releases.repository import Repository
from uplink.releases import TARGETS

HOUR = 3600.0
T = TypeVar("T")


class Inline(Worker):
    """Calls functions at once: virtual time would pass while a thread works."""

    async def run(self, function: Callable[[], T]) -> T:
        await trio.lowlevel.checkpoint()
        return function()

    def post(self, function: Callable[[], object]) -> None:
        with suppress(Exception):
            function()


@dataclass
class Organization:
    """A machine, the signed releases of its organization, and `good`, which it runs."""

    device: Device
    repository: Repository
    offers: ReleaseOffers
    today: datetime
    good: Release

    def build(self, version: str) -> Release:
        """Return a release that a machine can download and run, not signed by anyone."""
        return self.device.cloud.publish(SERVER, version)

    def sign(self, *files: Release, **more: Any) -> None:
        """Publish metadata with `good` and these releases, with the keys of the organization if nothing else is given.

        `age` is the number of days since the signature.
        """
        now = self.today - timedelta(days=more.pop("age", 0))
        self.repository.publish(files=(self.good, *files), now=now, **more)

    async def want(self, release: Release) -> None:
        """Let the cloud want a release, and let some hours pass."""
        self.offers.answered({SERVER: DesiredVersion(release.version, release.origin, release.sha256)})
        await trio.sleep(3 * HOUR)

    @property
    def current(self) -> str:
        return self.device.record(SERVER).slots.current.sha256

    @property
    def problem(self) -> str:
        return "".join(str(problem) for problem in self.offers.problems.values())


@asynccontextmanager
async def organization(folder: Path) -> AsyncIterator[Organization]:
    device, repository, today = Device(folder, random.Random(1)), Repository(), datetime.now(UTC)
    for program in (SERVER, AGENT):
        device.install(program)
    pin(device.layout.trust, repository.files["1.root.json"])
    repository.publish_root(now=today)
    worker = Inline("inline")
    releases = ReleaseCatalog(
        Trust(device.layout.trust, worker), cast(Any, repository), cast(Any, None), worker, device.layout.downloads
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.run)
        await trio.sleep(1)
        offers = ReleaseOffers(
            {SERVER: device.drivers[SERVER]}, releases, folder / "chosen.json", device._blocking,
            part="part", platform=PLATFORM, wall=time.time,
        )  # fmt: skip
        nursery.start_soon(offers.run)
        yield Organization(device, repository, offers, today, device.cloud.publish(SERVER, "1.0.5"))
        nursery.cancel_scope.cancel()


def wrong_signature(this: Organization, bad: Release) -> None:
    this.sign(bad, by=["thief"])


def expired_signature(this: Organization, bad: Release) -> None:
    this.sign(bad, age=400)
    this.repository.renew(now=this.today)


def expired_timestamp(this: Organization, bad: Release) -> None:
    this.sign(bad, age=8)


def revoked_key(this: Organization, bad: Release) -> None:
    this.repository.keys[TARGETS] = ["targets 2"]
    this.repository.publish_root(now=this.today)
    this.sign(bad, by=["targets"])


def replaced_root(this: Organization, bad: Release) -> None:
    this.repository.keys[TARGETS] = ["thief"]
    this.repository.publish_root(now=this.today, by=["thief"])
    this.sign(bad)


def not_signed(this: Organization, bad: Release) -> None:
    this.sign()


def another_file_of_the_version(this: Organization, bad: Release) -> None:
    this.sign(Release(bad.version, "0" * 64, bad.size, bad.origin, bad.platform))


def another_program(this: Organization, bad: Release) -> None:
    this.repository.publish(files=[bad], now=this.today, program=AGENT)


def another_platform(this: Organization, bad: Release) -> None:
    this.sign(Release(bad.version, bad.sha256, bad.size, bad.origin, "linux/aarch64"))


BAD: dict[str, tuple[Callable[[Organization, Release], None], str]] = {
    "wrong signature": (wrong_signature, "not signed by enough"),
    "expired signature": (expired_signature, "targets.json has expired"),
    "expired timestamp": (expired_timestamp, "timestamp.json has expired"),
    "revoked key": (revoked_key, "not signed by enough"),
    "replaced root": (replaced_root, "3.root.json is not signed by enough"),
    "not signed": (not_signed, "the organization signed no such file"),
    "another file of the version": (another_file_of_the_version, "the organization signed no such file"),
    "another program": (another_program, "the organization signed no such file"),
    "another platform": (another_platform, "the organization signed no such file"),
}


def nothing_of(this: Organization, bad: Release) -> None:
    """Raise AssertionError if anything of a release is on the disk, or an update is in progress."""
    record = this.device.record(SERVER)
    assert (record.slots.current.sha256, record.progress) == (this.good.sha256, None)
    assert not this.device.layout.release(SERVER, bad.sha256).exists()
    assert list(this.device.layout.downloads.iterdir()) == []
    assert bad.sha256 not in this.device.server.starts


@pytest.mark.parametrize("case", BAD)
async def test_releases_not_signed_for_this_machine_are_never_downloaded(
    case: str, tmp_path: Path, autojump_clock: MockClock
) -> None:
    prepare, reason = BAD[case]
    async with organization(tmp_path) as this:
        this.sign()
        await this.want(this.good)
        assert (this.current, this.problem) == (this.good.sha256, "")
        bad = this.build("1.1.0")
        before = dict(this.repository.files), list(this.repository.keys[TARGETS])
        prepare(this, bad)
        await this.want(bad)
        nothing_of(this, bad)
        assert reason in this.problem
        # The organization repairs it: the machine continues by itself.
        if case == "replaced root":
            this.repository.files, this.repository.keys[TARGETS] = before
        cure = this.build("1.1.1")
        this.sign(cure)
        await this.want(cure)
        assert (this.current, this.problem) == (cure.sha256, "")


async def test_metadata_that_is_replayed_brings_back_no_withdrawn_release(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with organization(tmp_path) as this:
        bad = this.build("0.9.0")  # with a known weakness
        this.sign(bad)
        replayed = dict(this.repository.files)
        this.sign()
        await this.want(this.good)
        assert this.current == this.good.sha256
        this.repository.files.update(replayed)
        await this.want(bad)
        nothing_of(this, bad)
        assert "timestamp.json is not the version that must follow" in this.problem


class Asked:
    """A cloud that answers with a new version when it is asked."""

    def __init__(self, this: Organization, release: Release) -> None:
        self._this, self._release = this, release

    async def ask(self) -> None:
        await trio.sleep(1)
        release = self._release
        self._this.offers.answered({SERVER: DesiredVersion(release.version, release.origin, release.sha256)})


def closed(this: Organization) -> None:
    permission = this.device.permission
    assert isinstance(permission, Open)
    permission.reason = "not now"


@pytest.mark.parametrize("known", [True, False], ids=["waits already", "published just now"])
async def test_update_now_does_not_wait_for_maintenance(known: bool, tmp_path: Path, autojump_clock: MockClock) -> None:
    async with organization(tmp_path) as this:
        closed(this)
        new = this.build("1.1.0")
        this.sign(new)
        await this.want(new if known else this.good)
        assert this.current != new.sha256
        updates = SimpleNamespace(offers=this.offers, driver=lambda name: this.device.drivers[name])
        commands = UpdateCommands(cast(Any, updates), cast(Any, Asked(this, new)))
        await commands.carry_out(CloudRequest("update", SERVER))
        await trio.sleep(HOUR)
        assert this.current == new.sha256
        later = this.build("1.2.0")  # maintenance counts again
        this.sign(new, later)
        await this.want(later)
        progress = this.device.record(SERVER).progress
        assert progress is not None
        assert progress.step is UpdateStep.WAIT


async def test_update_now_is_forgotten_if_nothing_can_be_offered_for_a_day(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with organization(tmp_path) as this:
        closed(this)
        new = this.build("1.1.0")
        this.sign(new, age=8)  # its timestamp has expired
        await this.want(new)
        this.offers.hurry(SERVER)
        await trio.sleep(HURRY + HOUR)
        assert "has expired" in this.problem
        this.sign(new)
        await trio.sleep(3 * HOUR)
        progress = this.device.record(SERVER).progress
        assert progress is not None
        assert progress.step is UpdateStep.WAIT


async def test_requests_that_cannot_be_carried_out_are_logged(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with organization(tmp_path) as this:

        def refuse(name: str) -> None:
            raise MachineError(f"{name} is not updated")

        commands = UpdateCommands(cast(Any, SimpleNamespace(driver=refuse)), cast(Any, Asked(this, this.good)))
        with capture_logs() as log:
            await commands.carry_out(CloudRequest("update", "machine-agent"))
            await commands.carry_out(CloudRequest("dance", ""))
        assert [entry["log_level"] for entry in log] == ["error", "warning"]


async def test_changes_of_problems_are_announced_once(tmp_path: Path, autojump_clock: MockClock) -> None:
    seen: dict[float, str] = {}
    async with organization(tmp_path) as this, trio.open_nursery() as nursery:

        async def follow() -> None:
            async with aclosing(this.offers.changes()) as changes:
                async for _ in changes:
                    seen[trio.current_time()] = this.problem

        nursery.start_soon(follow)
        await trio.sleep(1)
        this.sign()
        await this.want(this.build("1.1.0"))
        await trio.sleep(24 * HOUR)  # it is looked up again and again
        cure = this.build("1.1.1")
        this.sign(cure)
        await this.want(cure)
        nursery.cancel_scope.cancel()
    assert [bool(problem) for problem in seen.values()] == [False, True, False]


async def test_a_signed_older_version_may_be_selected(tmp_path: Path, autojump_clock: MockClock) -> None:
    async with organization(tmp_path) as this:
        older = this.build("0.9.0")
        this.sign(older)
        await this.want(this.good)
        await this.want(older)
        assert (this.current, this.problem) == (older.sha256, "")
        previous = this.device.record(SERVER).slots.previous
        assert previous is not None
        assert previous.sha256 == this.good.sha256


async def test_a_file_that_cannot_be_identified_is_fetched_less_and_less_often(
    tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []

    async def refuse(releases: ReleaseCatalog, url: str) -> object:
        times.append(trio.current_time())
        raise MachineError(f"{url} has more than 256 MiB")

    monkeypatch.setattr(ReleaseCatalog, "identify", refuse)
    async with organization(tmp_path) as this:
        this.sign()
        await this.offers.choose(SERVER, "https://files.test/large")
        await trio.sleep(48 * HOUR)
        pauses = [round(after - before) for before, after in itertools.pairwise(times)]
        assert pauses[:4] == [300, 600, 1200, 2400]
        assert max(pauses) <= LONGEST_PAUSE
        assert len(times) < 12
        assert "has more than 256 MiB" in this.problem
        count = len(times)
        await this.offers.choose(SERVER, "https://files.test/large")  # a person asks again
        await trio.sleep(1)
        assert len(times) == count + 1


async def test_the_reason_for_which_nothing_is_offered_is_kept_and_logged(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with organization(tmp_path) as this:
        this.sign()
        with capture_logs() as log:
            this.offers.answered({SERVER: None})
            await trio.sleep(1)
        assert this.offers.kept[SERVER] == "the cloud has no release for this machine"
        (line,) = (entry for entry in log if entry["event"] == "decided which release to offer")
        assert line["log_level"] == "debug"
        assert (line["decision"], line["asked"], line["source"]) == ("keep", "stable", "the settings")
        assert line["reason"] == "the cloud has no release for this machine"
        bad = this.build("1.1.0")
        this.sign(bad)
        record = this.device.record(SERVER)
        entry = QuarantinedRelease(bad.sha256, bad.version, "it did not serve", 1.0)
        this.device.drivers[SERVER].record = msgspec.structs.replace(record, quarantine=(entry,))
        await this.want(bad)
        assert this.offers.kept[SERVER] == "version 1.1.0 is in quarantine: it did not serve"
        this.sign(this.good)
        await this.want(this.good)
        assert this.offers.kept[SERVER] == ""


async def test_problems_of_versions_are_shown_until_they_end(tmp_path: Path, autojump_clock: MockClock) -> None:
    problem = ConfigError("agent.version_control.machine-server", "'banana' is not a version", remedy="write stable")
    async with organization(tmp_path) as this:
        with capture_logs() as log:
            for _ in range(3):
                this.offers.answered({SERVER: None}, (problem,))
        assert this.offers.version_problems == (problem,)
        assert [entry["setting"] for entry in log] == [problem.path]
        this.offers.answered({SERVER: None})
        assert this.offers.version_problems == ()
