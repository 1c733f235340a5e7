"""A few of the power cuts of `python -m tests.hil.agent_cuts`, whose 200 take an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hil.agent.cuts import cut_power
from tests.hil.rig.kinds import why_not_uml
from tests.scope import RIG, on_demand

CUTS = 3
SEED = 15


@pytest.fixture
def share(_source: str) -> Path:
    return Path(_source)


@on_demand(75, RIG)
async def test_updates_survive_power_cuts(share: Path, tmp_path: Path) -> None:
    if reason := why_not_uml():
        pytest.skip(f"machine-agent is tested in User-Mode Linux: {reason}")
    result = await cut_power(share, tmp_path, CUTS, SEED, print)
    print(result.table())
    assert not result.wrong
    assert len(result.cuts) == CUTS
