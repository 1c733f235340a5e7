"""Jobs in virtual time: alone, and on a machine in memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest
import trio
from trio.testing import MockClock

from command.machine.facts import jobs_of, more_of, standing
from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Extra
from runtime.parts.jobs import nodes
from runtime.parts.jobs.clock import VirtualClock
from runtime.parts.jobs.job import RECORDED_RUNS, History, JobRunner
from runtime.parts.jobs.schedule import Continuous, Every, Schedule, parse_schedule
from runtime.server.memory import MemoryMachine, open_machine
from schema.errors import MachineError
from schema.names import Model

ROBOT = "viam.robot.v1.RobotService"
START = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)


async def ran(
    schedule: Schedule, seconds: float, work: Callable[[], Awaitable[object]]
) -> tuple[list[float], History, list[MachineError | None]]:
    """Run a job for `seconds`; return the times at which it began, its history and the reported outcomes."""
    began: list[float] = []
    messages: list[MachineError | None] = []
    history = History()

    async def call() -> None:
        began.append(trio.current_time())
        await work()

    with trio.move_on_after(seconds):
        await JobRunner(schedule, call, history, VirtualClock(START), messages.append).run()
    return began, history, messages


async def quick() -> None:
    await trio.lowlevel.checkpoint()


async def test_every_so_often_without_drift(autojump_clock: MockClock) -> None:
    async def slow() -> None:
        await trio.sleep(3)

    began, history, _ = await ran(Every(10), 10_005, slow)
    assert began == [10.0 * i for i in range(1, 1001)]
    assert len(history.succeeded) == RECORDED_RUNS
    assert history.succeeded[-1] == START + timedelta(seconds=10_000)


async def test_a_run_that_takes_too_long_is_followed_by_one_not_by_all_that_were_missed(
    autojump_clock: MockClock,
) -> None:
    durations = iter([35.0])

    async def slow_once() -> None:
        await trio.sleep(next(durations, 0.0))

    began, _, _ = await ran(Every(10), 75, slow_once)
    assert began == [10, 45, 45, 55, 65], "the one that waited, then by the beat of when it could run again"


async def test_cron_skips_the_times_that_come_while_it_runs(autojump_clock: MockClock) -> None:
    async def long_run() -> None:
        await trio.sleep(150)

    began, history, _ = await ran(parse_schedule("* * * * *", ""), 700, long_run)
    assert began == [60, 240, 420, 600]
    assert history.next_run is None
    assert not history.running, "it was cancelled"


async def test_cron_over_weeks(autojump_clock: MockClock) -> None:
    began, history, _ = await ran(parse_schedule("30 7 * * sun", ""), 28 * 86400, quick)
    assert [START + timedelta(seconds=t) for t in began] == [
        datetime(2026, 11, 22, 7, 30, tzinfo=UTC) + timedelta(weeks=w) for w in range(4)
    ]
    assert history.next_run == datetime(2026, 12, 20, 7, 30, tzinfo=UTC)


BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 28, 15, 23, tzinfo=BERLIN)


@pytest.mark.parametrize(
    ("boot", "schedule", "runs", "first"),
    [
        (datetime(1970, 1, 1, 1, 0), "0 8 * * *", 1, datetime(2026, 11, 29, 8, 0)),
        (datetime(2026, 11, 28, 6, 50), "0 8 * * *", 1, datetime(2026, 11, 29, 8, 0)),
        (datetime(2031, 5, 1, 1, 0), "0 8 * * *", 1, datetime(2026, 11, 29, 8, 0)),
        (datetime(2031, 5, 1, 1, 0), "* * * * *", 1439, datetime(2026, 11, 28, 15, 24)),
        (datetime(2026, 11, 28, 13, 0), "0 14 * * *", 2, datetime(2026, 11, 28, 15, 24)),  # like cron: up to 3 h
        (datetime(2026, 11, 29, 9, 0), "*/10 * * * *", 144, datetime(2026, 11, 28, 15, 30)),
    ],
)
async def test_a_clock_that_is_corrected_after_the_start_neither_runs_a_job_nor_silences_it(
    autojump_clock: MockClock, boot: datetime, schedule: str, runs: int, first: datetime
) -> None:
    clock, began, history = VirtualClock(boot.replace(tzinfo=BERLIN)), [], History()

    async def call() -> None:
        began.append(clock.now())

    async with trio.open_nursery() as nursery:
        runner = JobRunner(parse_schedule(schedule, ""), call, history, clock, lambda error: None)
        nursery.start_soon(runner.run)
        await trio.sleep(40)
        began.clear()  # with `* * * * *`, a minute may have begun
        clock.set(NOW)
        assert history.next_run is not None
        await trio.sleep(86400 - 30)
        nursery.cancel_scope.cancel()
    assert len(began) == runs
    assert began[0] == first.replace(tzinfo=BERLIN)


async def test_the_next_run_is_shown_by_the_new_clock_at_once(autojump_clock: MockClock) -> None:
    clock, history = VirtualClock(datetime(2031, 5, 1, tzinfo=BERLIN)), History()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(JobRunner(parse_schedule("0 8 * * *", ""), quick, history, clock, lambda error: None).run)
        await trio.sleep(40)
        clock.set(NOW)
        assert history.next_run == datetime(2026, 11, 29, 8, 0, tzinfo=BERLIN), "before the job has noticed"
        await trio.sleep(90)
        assert history.next_run == datetime(2026, 11, 29, 8, 0, tzinfo=BERLIN)
        nursery.start_soon(JobRunner(Every(3600), quick, every := History(), clock, lambda error: None).run)
        await trio.sleep(60)
        clock.set(NOW)
        assert every.next_run == NOW + timedelta(seconds=3540)
        nursery.cancel_scope.cancel()


async def test_a_step_of_a_second_repeats_nothing(autojump_clock: MockClock) -> None:
    clock, began = VirtualClock(START), []

    async def call() -> None:
        began.append(round(trio.current_time()))

    async with trio.open_nursery() as nursery:
        for schedule in ("* * * * *", "1 6 * * *", "*/30 * * * * *"):
            runner = JobRunner(parse_schedule(schedule, ""), call, History(), clock, lambda error: None)
            nursery.start_soon(runner.run)
        await trio.sleep(60.5)
        assert sorted(began) == [30, 60, 60, 60]
        clock.set(clock.now() - timedelta(seconds=2))
        await trio.sleep(50)
        assert sorted(began) == [30, 60, 60, 60]
        await trio.sleep(20)
        assert sorted(began) == [30, 60, 60, 60, 122, 122]
        await trio.sleep(51)
        assert clock.now() == START + timedelta(seconds=179.5)
        assert sorted(began)[6:] == [152]
        clock.set(clock.now() + timedelta(seconds=2))
        await trio.sleep(0.1)
        assert sorted(began)[7:] == [182, 182], "a step over the beginning of a minute loses none"
        nursery.cancel_scope.cancel()


async def test_times_that_were_skipped_during_a_run_are_made_up_for_once(autojump_clock: MockClock) -> None:
    clock, began = VirtualClock(datetime(2026, 3, 29, 1, 0, tzinfo=BERLIN)), []

    async def call() -> None:
        began.append(clock.now().strftime("%H:%M"))
        await trio.sleep(20 * 60 + 10)

    async with trio.open_nursery() as nursery:
        runner = JobRunner(parse_schedule("50 1,2 * * *", ""), call, History(), clock, lambda error: None)
        nursery.start_soon(runner.run)
        await trio.sleep(6 * 3600)
        nursery.cancel_scope.cancel()
    assert began == ["01:50", "03:11"], "02:50 did not exist"


async def test_continuous_goes_on_and_backs_off_while_it_fails(autojump_clock: MockClock) -> None:
    results = iter([True, True, False, False, False, True])

    async def work() -> None:
        await trio.sleep(1)
        if not next(results, True):
            raise MachineError("not today")

    began, history, messages = await ran(Continuous(), 11, work)
    assert began[:7] == [0, 1, 2, 3.5, 5.5, 8.5, 9.5]
    assert history.last_error == "not today"
    assert len(history.failed) == 3
    assert [error is None for error in messages[:6]] == [True, True, False, False, False, True]


class Counter(Sensor):
    """Count the readings and record the commands."""

    reads: ClassVar[list[float]] = []
    commands: ClassVar[list[Any]] = []

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Any]:
        self.reads.append(trio.current_time())
        return {"reads": len(self.reads)}

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        self.commands.append(dict(command))
        return {}


def machine(*jobs: dict[str, Any]) -> tuple[dict[str, Any], Registry]:
    Counter.reads, Counter.commands = [], []
    registry = Registry({})
    registry.add(Counter.API, Model.parse("counter"), Counter)
    sensor = {"name": "count", "api": "rdk:component:sensor", "model": "counter"}
    return {"components": [sensor], "jobs": list(jobs)}, registry


def job(**more: Any) -> dict[str, Any]:
    return {"name": "look", "schedule": "10s", "resource": "count", "method": "GetReadings", **more}


async def statuses(memory: MemoryMachine) -> dict[str, Any]:
    answer = await memory.client().call("viam.robot.v1.RobotService", "", "get_machine_status")
    return {status["job_name"]: status for status in answer["job_statuses"]}


async def test_jobs_of_a_machine_call_like_clients_and_are_in_its_status(autojump_clock: MockClock) -> None:
    document, registry = machine(
        job(), job(name="tell", schedule="25s", method="DoCommand", command={"say": "hello", "times": 2})
    )
    async with open_machine(document, registry=registry) as memory:
        await memory.graph.settled()
        await trio.sleep(51)
        assert Counter.reads == [10, 20, 30, 40, 50]
        assert Counter.commands == [{"say": "hello", "times": 2}] * 2
        result = await statuses(memory)
        assert len(result["look"]["recent_successful_runs"]) == 5
        assert not result["look"]["recent_failed_runs"]
        status = memory.machine.status().jobs
        assert [item.name for item in status] == ["look", "tell"]
        document["jobs"] = [job(schedule="1s")]
        memory.write(document)
        await trio.sleep(5.5)
        assert len(Counter.reads) == 10, "at once, with the new schedule"
        assert set(await statuses(memory)) == {"look"}
        document["jobs"] = []
        memory.write(document)
        await trio.sleep(5)
        assert len(Counter.reads) == 10
        assert await statuses(memory) == {}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"resource": "counts"}, "no resource 'counts' is configured: did you mean 'count'?"),
        ({"method": "GetReading"}, "jobs.0.method: rdk:component:sensor has no method 'GetReading': did you mean"),
    ],
)
async def test_an_invalid_job_reports_why_and_stops_no_other(
    autojump_clock: MockClock, entry: dict[str, Any], words: str
) -> None:
    document, registry = machine(job(**entry), job(name="good"))
    async with open_machine(document, registry=registry) as memory:
        await memory.graph.settled()
        await trio.sleep(21)
        assert Counter.reads == [10, 20]
        bad = memory.machine.status().jobs[0]
        assert len(bad.failed) == 2
        assert words in bad.last_error


async def test_wrong_cron_fields_are_the_reason_of_the_jobs_node(autojump_clock: MockClock) -> None:
    document, registry = machine(job(schedule="0 25 * * *"), job(name="good"))
    async with open_machine(document, registry=registry) as memory:
        await memory.graph.settled()
        await trio.sleep(11)
        node = memory.graph.snapshot().nodes[f"{nodes.PREFIX}look"]
        assert node.state.value == "unhealthy"
        assert "jobs.0.schedule: '0 25 * * *' is not a cron schedule: bad hour" in node.reason
        assert Counter.reads == [10]


async def test_a_job_by_duration_tells_when_it_runs_next(autojump_clock: MockClock) -> None:
    document, models = machine(job(schedule="10s"))
    async with open_machine(document, registry=models) as memory:
        await trio.sleep(12)
        (status,) = memory.machine.status().jobs
        assert status.next_run is not None
        reply, metadata = await memory.client().call_with_metadata(ROBOT, "", "get_machine_status")
        (shown,) = jobs_of(reply, more_of(metadata))
        assert (shown.name, shown.next_run, shown.succeeded) == (status.name, status.next_run, status.succeeded[-1])


async def test_a_machine_shows_that_its_clock_was_set(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock(datetime(2031, 5, 1, tzinfo=BERLIN))
    monkeypatch.setattr(nodes, "SystemClock", lambda: clock)
    document, models = machine(job(schedule="* * * * *"))
    async with open_machine(document, registry=models) as memory:
        await trio.sleep(70)
        assert len(Counter.reads) == 1
        clock.set(NOW)
        await trio.sleep(100)
        assert len(Counter.reads) == 2
        reply, metadata = await memory.client().call_with_metadata(ROBOT, "", "get_machine_status")
        (shown,) = jobs_of(reply, more_of(metadata))
        assert shown.succeeded is not None
        assert shown.succeeded.year == 2026, "the last run, although one of 2031 is in the list"
        assert standing(more_of(metadata)) == [
            "the clock was set back by 4 years, to 2026-11-28 15:23:00+01:00; jobs follow it"
        ]
