"""One motion at a time, and pursuits: which command wins while an older one is still ending."""

from __future__ import annotations

from typing import Any

import pytest
import structlog
import trio
from trio.testing import MockClock

from hal.sim.ticks import ticks
from models.common.control_loop import ControlLoop, Goal
from models.common.motion import HALT_TIME, ExclusiveMotion, run_all, run_shielded
from schema.errors import ErrorKind, MachineError


async def test_the_newest_of_several_waiting_commands_wins(autojump_clock: MockClock) -> None:
    for _ in range(20):
        motion = ExclusiveMotion()
        begun: list[str] = []

        async def slow_halt() -> None:
            await trio.sleep(0.5)

        async def move(name: str, motion: ExclusiveMotion = motion, begun: list[str] = begun) -> None:
            try:
                async with motion.begin(slow_halt):
                    begun.append(name)
                    await trio.sleep(10)
            except MachineError as error:
                assert error.kind is ErrorKind.CANCELLED  # noqa: PT017 - some of them are overtaken, some are not

        async with trio.open_nursery() as nursery:
            for name in ("first", "second", "third", "newest"):
                nursery.start_soon(move, name)
                await trio.testing.wait_all_tasks_blocked()
        assert begun == ["first", "newest"]


async def test_coming_to_rest_is_shielded_and_bounded(autojump_clock: MockClock) -> None:
    begin = trio.current_time()
    with trio.CancelScope() as scope:
        scope.cancel()
        await run_shielded(trio.sleep_forever)
    assert trio.current_time() - begin == HALT_TIME


async def test_every_call_is_made_whatever_becomes_of_the_others(autojump_clock: MockClock) -> None:
    done: list[int] = []

    async def call(number: int) -> None:
        await trio.sleep(number)
        if number in (1, 3):
            raise MachineError(f"failure {number}")
        done.append(number)

    with pytest.raises(MachineError, match="failure 1") as caught:
        await run_all(*(lambda number=number: call(number) for number in range(5)))
    assert done == [0, 2, 4]
    assert caught.value.__notes__ == ["failure 3"]


class Body:
    """Record what a pursuit does."""

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.begins = self.rests = 0
        self.fails = False
        self.rest_takes = 0.0
        self.pursuit = ControlLoop(
            ticks=ticks, begin=self.begin, step=self.step, rest=self.rest, log=structlog.get_logger()
        )

    async def begin(self) -> None:
        self.begins += 1

    async def step(self, goal: Goal, beats: int) -> bool:
        await trio.lowlevel.checkpoint()
        if self.fails:
            raise MachineError("broken")
        self.steps.append(goal.speed)
        return goal.position is not None and len(self.steps) >= goal.position

    async def rest(self) -> None:
        self.rests += 1
        await trio.sleep(self.rest_takes)


@pytest.fixture
async def body(nursery: trio.Nursery) -> Body:
    created = Body()
    nursery.start_soon(created.pursuit.run)
    return created


async def test_a_goal_is_reached_then_it_rests(body: Any, autojump_clock: MockClock) -> None:
    goal = Goal(1.0, 0.01, position=5)
    body.pursuit.pursue(goal)
    await body.pursuit.wait(goal)
    assert (len(body.steps), body.begins, body.rests) == (5, 1, 1)
    assert body.pursuit.goal is None
    await trio.sleep(10)
    assert len(body.steps) == 5, "no beat without a goal"


async def test_a_newer_goal_needs_no_rest_between(body: Any, autojump_clock: MockClock) -> None:
    old = Goal(1.0, 0.01)
    body.pursuit.pursue(old)
    await trio.sleep(0.055)
    new = Goal(2.0, 0.02, position=8)  # with another period
    body.pursuit.pursue(new)
    with pytest.raises(MachineError, match="has replaced"):
        await body.pursuit.wait(old)
    await body.pursuit.wait(new)
    assert body.steps == [1.0] * 5 + [2.0] * 3
    assert (body.begins, body.rests) == (1, 1)


async def test_a_goal_set_during_the_stop_is_pursued(body: Any, autojump_clock: MockClock) -> None:
    body.rest_takes = 0.5
    first = Goal(1.0, 0.01, position=1)
    body.pursuit.pursue(first)
    await trio.sleep(0.1)
    second = Goal(2.0, 0.01, position=3)
    body.pursuit.pursue(second)
    await body.pursuit.wait(second)
    assert body.steps == [1.0, 2.0, 2.0]
    assert body.begins == 2


async def test_stop_returns_once_stopped_and_before_newer_calls(body: Any, autojump_clock: MockClock) -> None:
    body.rest_takes = 0.5
    body.pursuit.pursue(Goal(1.0, 0.01))
    await trio.sleep(0.1)
    begin = trio.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(body.pursuit.stop)
        await trio.sleep(0.1)
        body.pursuit.pursue(Goal(2.0, 0.01))
    assert trio.current_time() - begin == pytest.approx(0.5)
    await trio.sleep(0.1)
    assert body.steps[-1] == 2.0


async def test_a_failure_ends_the_goal_and_the_loop_lives(body: Any, autojump_clock: MockClock) -> None:
    body.fails = True
    goal = Goal(1.0, 0.01)
    body.pursuit.pursue(goal)
    with pytest.raises(MachineError, match="broken"):
        await body.pursuit.wait(goal)
    assert body.rests == 1
    body.fails = False
    again = Goal(1.0, 0.01, position=2)
    body.pursuit.pursue(again)
    await body.pursuit.wait(again)


async def test_a_cancelled_call_leaves_nothing_moving(body: Any, autojump_clock: MockClock) -> None:
    goal = Goal(1.0, 0.01)
    body.pursuit.pursue(goal)
    with trio.move_on_after(0.1):
        await body.pursuit.wait(goal)
    assert body.pursuit.goal is None
    assert body.rests == 1


async def test_a_cancelled_nursery_stops_the_motor(autojump_clock: MockClock) -> None:
    created = Body()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(created.pursuit.run)
        goal = Goal(1.0, 0.01)
        created.pursuit.pursue(goal)
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    assert created.rests == 1
    assert goal.error is not None
