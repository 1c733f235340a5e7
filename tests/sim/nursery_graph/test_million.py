"""Run the simulation with a small budget; `python -m tests.sim.nursery_graph.million` runs the full million."""

from __future__ import annotations

import pytest

from tests.sim.nursery_graph.million import simulate


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_thousands_of_events_with_faults(seed: int) -> None:
    counts = simulate(events=8_000, seed=seed, size=25, world_events=3_000)
    assert counts["events"] >= 8_000
    assert {"crash", "refuse", "hang", "deaf", "breaks", "returns", "sick", "apply", "storm", "retry"} <= counts.keys()
