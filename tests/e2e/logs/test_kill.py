"""kill -9 while an outbox and a cached configuration are written: all appended records and saved documents survive."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import trio

from tests.e2e.logs import victim
from tests.e2e.logs.victim import check, judge

KILLS = 25


@pytest.mark.slow
async def test_no_acknowledged_reading_is_lost(tmp_path: Path) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    progress, result = [], None
    for _ in range(KILLS):
        process = await trio.lowlevel.open_process(
            [sys.executable, "-m", victim.__name__, str(tmp_path)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        said = b""
        expected = chance.randrange(1, 4000)  # bytes of its output: anywhere in its work
        with trio.fail_after(30):
            while len(said) < expected:
                data = await process.stdout.receive_some()
                assert data, "it ended by itself"
                said += data
            process.send_signal(signal.SIGKILL)
            async for data in process.stdout:
                said += data
            assert await process.wait() == -signal.SIGKILL
        before, result = result, await check(tmp_path)
        judge(result, said.decode(), before, power=False)
        progress.append((result["last"], result["cached"][0] if result["cached"] else 0))
    print(progress)
    assert progress[-1][0] > progress[0][0]
    assert progress[-1][1] > progress[0][1]
    leftovers = {path.name for path in tmp_path.iterdir()}  # noqa: ASYNC240
    assert leftovers <= {"outbox", "cached_cloud_config_part.json", "cached_cloud_config_part.json.part"}
