"""Output of a module's processes in the log: nothing is lost, and progress is shown while it is made."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import trio
import trio.testing
from structlog.testing import capture_logs

from runtime.programs.output import Output


async def test_long_lines_and_progress_are_logged_as_they_come(autojump_clock: trio.testing.MockClock) -> None:
    send, stdout = trio.testing.memory_stream_one_way_pair()
    silent, stderr = trio.testing.memory_stream_one_way_pair()
    output = Output("module")
    with capture_logs() as entries:
        async with trio.open_nursery() as nursery:
            output.follow(nursery, cast(Any, SimpleNamespace(stdout=stdout, stderr=stderr)))
            await send.send_all(b"\r 10 %\r 20 %\r")
            await trio.testing.wait_all_tasks_blocked()
            assert [entry["event"].strip() for entry in entries] == ["10 %", "20 %"], "before the end of the line"
            await send.send_all(b" 100 %\n" + b"A" * 100_000 + b"\nlast")
            for end in (send, silent):
                await end.aclose()
            await output.ended()
    texts = [entry["event"] for entry in entries]
    assert [text[:6].strip() for text in texts] == ["10 %", "20 %", "100 %", "AAAAAA", "last"]
    assert len(texts[3]) > 10_000
    assert {entry["log_level"] for entry in entries} == {"info"}
    assert output.last_output().endswith("last")
