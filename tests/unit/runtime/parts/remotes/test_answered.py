"""Time limits of calls to a remote exclude time in which this machine was suspended."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from runtime.parts.remotes.client import answered
from schema.errors import ErrorKind, MachineError


async def test_a_remote_is_not_lost_because_this_machine_was_suspended(
    mock_clock: MockClock, nursery: trio.Nursery
) -> None:
    answers, said = [trio.Event(), trio.Event()], list[str]()

    async def question() -> str:
        for answer in answers:  # two questions, as in `look`
            await answer.wait()
            await trio.lowlevel.checkpoint()
        return "here"

    async def ask() -> None:
        said.append(await answered(question, 5.0))

    nursery.start_soon(ask)
    await wait_all_tasks_blocked()
    answers[0].set()
    mock_clock.jump(3600)
    await wait_all_tasks_blocked()
    answers[1].set()
    await wait_all_tasks_blocked()
    assert said == ["here"]


async def test_a_remote_that_does_not_answer_is_unavailable(autojump_clock: MockClock) -> None:
    with pytest.raises(MachineError, match="no answer within 5 s") as caught:
        await answered(trio.sleep_forever, 5.0)
    assert caught.value.kind is ErrorKind.UNAVAILABLE
