"""When the report of the agent is sent: after changes, rarely otherwise, and again after failures."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest
import trio
from structlog.testing import capture_logs

from agent.control import reporter as module
from agent.control.report import MAX_BYTES, AgentReport, ProblemReport, ProgramReport, WaitReport
from agent.control.reporter import GATHER, MAX_DELAY, PERIOD, REFUSED, SHORTEST, Reporter
from agent.update.record import UpdateOutcome, UpdateResult
from rpc.api.client import ApiClient
from schema.errors import ErrorKind, MachineError
from uplink.dial import CloudAddress

DONE = trio.Event()
DONE.set()


class World:
    """A cloud that answers reports with the errors of a list, and then accepts them; and the state of the agent."""

    def __init__(self, *errors: MachineError) -> None:
        self.errors = list(errors)
        self.silent = False  # the cloud does not answer
        self.sent: list[tuple[float, str, AgentReport]] = []
        self.version = "1.0.0"
        self.key: str | None = None
        self.report = AgentReport(0.0, ProgramReport(), ProgramReport())
        self.changed = trio.Event()
        self.address = CloudAddress("https://cloud.example", "p1", "p1", "robot-secret", "secret")
        self.keys: list[str] = []
        self.reporter = Reporter(self.address, self._report, self.keys.append)

    def _report(self) -> AgentReport:
        return msgspec.structs.replace(self.report, time=trio.current_time(), agent=ProgramReport(version=self.version))

    async def call(self, service: str, name: str, method: str, **arguments: Any) -> str | None:
        assert (service, name, method) == ("machine.cloud.v1.AgentService", "", "report_agent")
        if self.silent:
            await trio.sleep_forever()
        report = msgspec.json.decode(arguments["report_json"], type=AgentReport)
        self.sent.append((trio.current_time(), arguments["part_id"], report))
        if self.errors:
            raise self.errors.pop(0)
        return self.key

    async def changes(self) -> AsyncGenerator[None, None]:
        while True:
            changed = self.changed
            yield
            await changed.wait()

    def change(self, version: str) -> None:
        self.version = version
        changed, self.changed = self.changed, trio.Event()
        changed.set()

    @property
    def times(self) -> list[float]:
        return [time for time, _, _ in self.sent]

    @property
    def versions(self) -> list[str]:
        return [report.agent.version for _, _, report in self.sent]


@asynccontextmanager
async def reporting(world: World, asked: trio.Event = DONE) -> AsyncIterator[float]:
    """Let the reporter run; yield the time of its start."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.reporter.follow, world.changes())
        nursery.start_soon(world.reporter.run, cast(ApiClient, world), asked)
        yield trio.current_time()
        nursery.cancel_scope.cancel()


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: (low + high) / 2)


def gaps(times: Sequence[float]) -> list[float]:
    return [later - earlier for earlier, later in pairwise(times)]


def refusing(kind: ErrorKind) -> MachineError:
    return MachineError("no", kind=kind)


async def test_the_first_report_is_sent_once_settings_were_asked_for(autojump_clock: Any) -> None:
    world, asked = World(), trio.Event()
    async with reporting(world, asked):
        await trio.sleep(100)
        assert world.sent == []
        asked.set()
        await trio.sleep(GATHER + 0.1)
        assert [part for _, part, _ in world.sent] == ["p1"]


async def test_an_unchanged_report_is_sent_once_in_a_period(autojump_clock: Any) -> None:
    world = World()
    async with reporting(world):
        await trio.sleep(10 * PERIOD)
    assert 9 <= len(world.sent) <= 11
    assert all(0.9 * PERIOD <= gap <= 1.1 * PERIOD + SHORTEST for gap in gaps(world.times))
    assert len(set(gaps(world.times))) > 1  # not all machines of a fleet at the same moment


async def test_noise_of_clocks_changes_nothing(autojump_clock: Any) -> None:
    class Clocks(World):
        def _report(self) -> AgentReport:
            noise = 1e-6 * (len(self.sent) + 1)
            program = ProgramReport(running=True, since=1e9 + noise, restart=WaitReport("settings", 2e9 + noise))
            return AgentReport(trio.current_time(), program, program)

    world = Clocks()
    async with reporting(world):
        await trio.sleep(PERIOD / 2)
    assert len(world.sent) == 1


async def test_a_start_at_another_time_is_a_change(autojump_clock: Any) -> None:
    class Restarting(World):
        since = 1e9

        def _report(self) -> AgentReport:
            return AgentReport(trio.current_time(), ProgramReport(), ProgramReport(running=True, since=self.since))

    world = Restarting()
    async with reporting(world):
        await trio.sleep(60)
        world.since += 10
        world.change("")
        await trio.sleep(60)
    assert len(world.sent) == 2


async def test_a_change_is_sent_soon_and_the_report_without_one_is_not(autojump_clock: Any) -> None:
    world = World()
    async with reporting(world):
        await trio.sleep(600)
        assert world.versions == ["1.0.0"]
        world.change("1.0.0")
        await trio.sleep(10)
        assert world.versions == ["1.0.0"]
        changed = trio.current_time()
        world.change("1.1.0")
        await trio.sleep(10)
        assert world.versions == ["1.0.0", "1.1.0"]
        assert world.times[-1] - changed == pytest.approx(GATHER)


async def test_many_changes_are_gathered_and_the_last_is_not_lost(autojump_clock: Any) -> None:
    world = World()
    async with reporting(world):
        for number in range(300):
            world.change(f"1.0.{number}")
            await trio.sleep(0.1)
        await trio.sleep(SHORTEST + GATHER)
    assert world.versions[-1] == "1.0.299"
    assert len(world.sent) <= 30 / SHORTEST + 2
    assert min(gaps(world.times)) >= SHORTEST


async def test_an_outcome_during_an_outage_is_sent_until_it_is_accepted(autojump_clock: Any, even: None) -> None:
    world = World(*[refusing(ErrorKind.UNAVAILABLE)] * 20)
    outcome = UpdateOutcome("1.0.0", "1.1.0", "a" * 64, UpdateResult.ROLLED_BACK, "it did not serve", 1.0, 2.0)
    world.report = AgentReport(0.0, ProgramReport(), ProgramReport(history=(outcome,)))
    with capture_logs() as log:
        async with reporting(world):
            await trio.sleep(2 * PERIOD)
    assert len(world.sent) == 22  # and once more after a period
    assert all(report.server.history == (outcome,) for _, _, report in world.sent)
    assert max(gaps(world.times[:21])) <= MAX_DELAY
    assert gaps(world.times[:5]) == pytest.approx([2.5, 4.0, 7.0, 13.0])
    assert [entry["event"] for entry in log] == [
        "the report of the agent cannot be sent; it is sent when the cloud can be reached",
        "the cloud receives the report of the agent again",
    ]


async def test_a_report_is_sent_again_as_soon_as_the_cloud_is_reached(autojump_clock: Any) -> None:
    world = World(*[refusing(ErrorKind.UNAVAILABLE)] * 15)
    async with reporting(world):
        await trio.sleep(1200)
        world.errors.clear()
        before = len(world.sent)
        world.address.contact.mark_reached()
        await trio.sleep(GATHER + 0.1)
        assert len(world.sent) == before + 1


@pytest.mark.parametrize(
    "kind",
    [
        *(ErrorKind.INVALID, ErrorKind.NOT_FOUND, ErrorKind.UNAUTHENTICATED, ErrorKind.PERMISSION),
        ErrorKind.UNSUPPORTED,
    ],
)
async def test_a_cloud_that_refuses_is_asked_rarely_and_logged_once(autojump_clock: Any, kind: ErrorKind) -> None:
    world = World(*[refusing(kind)] * 1000)
    with capture_logs() as log:
        async with reporting(world):
            for number in range(40):  # neither changes nor contact to the cloud make it ask more often
                await trio.sleep(REFUSED / 10)
                world.change(f"1.0.{number}")
                world.address.contact.mark_reached()
    assert 4 <= len(world.sent) <= 6
    assert [entry["event"] for entry in log] == [module._EVENTS["refused"]]


async def test_a_cloud_that_does_not_answer_is_given_up_after_a_limit(autojump_clock: Any) -> None:
    world = World()
    world.silent = True
    with capture_logs() as log:
        async with reporting(world):
            await trio.sleep(300)
            world.silent = False
            await trio.sleep(MAX_DELAY)
    assert log[0]["reason"] == "no answer within 60 s"
    assert len(world.sent) == 1


async def test_a_report_that_cannot_be_encoded_does_not_end_the_agent(autojump_clock: Any) -> None:
    world = World()
    many = tuple(WaitReport("x" * 400, float(number)) for number in range(400))
    world.report = AgentReport(0.0, ProgramReport(), ProgramReport(waiting_for=many))
    with capture_logs() as log:
        async with reporting(world):
            await trio.sleep(60)
            assert world.sent == []
            world.report = AgentReport(0.0, ProgramReport(), ProgramReport())
            await trio.sleep(2 * REFUSED)
    assert len(world.sent) == 1
    assert "cannot be shortened" in log[0]["reason"]


async def test_long_and_odd_texts_do_not_keep_a_report_from_being_sent(autojump_clock: Any) -> None:
    world = World()
    problem = ProblemReport("a" * 5000, "it is \ud800 wrong", "r" * MAX_BYTES)
    world.report = AgentReport(0.0, ProgramReport(), ProgramReport(target="9" * 5000), problems=(problem,))
    async with reporting(world):
        await trio.sleep(10)
    ((_, _, report),) = world.sent
    assert (len(report.server.target), report.problems[0].message) == (300, "it is ? wrong")
    assert (len(report.problems[0].path), len(report.problems[0].remedy)) == (500, 500)


async def test_the_key_for_proofs_is_that_of_the_last_answer(autojump_clock: Any) -> None:
    world, asked = World(), trio.Event()
    asked.set()
    async with reporting(world, asked):
        await trio.sleep(GATHER + 0.1)
        assert world.keys == []  # an older cloud
        world.key = "a" * 64
        world.change("1.0.1")
        await trio.sleep(100)
        assert world.keys == ["a" * 64]
