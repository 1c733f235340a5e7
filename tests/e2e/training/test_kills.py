"""Kill clouds, processes around programs, and programs: no job is lost or runs twice at once. See kills.py for more."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.e2e.training.engine import isolates  # noqa: F401 - a fixture
from tests.e2e.training.kills import Kills
from tests.postgresql import QUICK, cluster

KILLS: Final = 8
KILLS_OF_REPLICAS: Final = 3
SEED: Final = 18
SEED_OF_REPLICAS: Final = 4

pytestmark = pytest.mark.usefixtures("isolates")


async def test_replicas_lose_no_job(tmp_path: Path) -> None:
    with cluster(*QUICK) as server:
        kills = Kills(tmp_path, SEED_OF_REPLICAS, print, server.url(), replicas=2)
        await kills.run(KILLS_OF_REPLICAS)
    assert kills.wrong == []
    assert kills.killed["cloud"] >= 1
    assert kills.states["COMPLETED"] >= 3


async def test_no_job_is_lost_or_run_twice(tmp_path: Path) -> None:
    kills = Kills(tmp_path, SEED, print)
    await kills.run(KILLS)
    assert kills.wrong == []
    assert sum(kills.killed.values()) == KILLS
    assert kills.killed["cloud"] >= 1
    assert kills.states["COMPLETED"] >= 3
