"""A control loop through machine-server on real drivers, with concurrent calls, and the same loop as a plain script.

The lateness of beats depends on the load of the computer: the figures are printed, not checked.
"""

from __future__ import annotations

import json

import pytest

from bench.control_loop import show
from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Plant

RATE = 200  # beats a second
CALLS = 100  # per second, the limit of an emulated processor; `python -m bench.control_loop` makes 1,000 on a real one
SECONDS = 5


@pytest.mark.slow
async def test_a_control_loop_keeps_its_period_while_calls_are_served(guest: Guest, plant: Plant) -> None:
    adapter = await plant.i2c_adapter()
    await adapter.attach(0x48, "models.chips.lm75:Lm75Target")
    bank = await plant.gpio()
    words = ["--i2c", f"{adapter.bus}:0x48", "--gpio", f"{bank.chip}:4", "--rate", str(RATE), "--calls", str(CALLS)]
    begin = await guest.monotonic()
    done = await guest.run(
        ["python3", "-m", "bench.control_loop", *words, "--seconds", str(SECONDS), "--json"],
        limit=240,
        cwd="/tmp",
        fresh=True,
    )
    rows = json.loads(done.stdout)
    show(rows)
    _bare, _idle, busy = rows.values()
    assert busy["load"]["rate"] > 0
    for row in rows.values():
        assert row["beats"] + row["missed"] > RATE * SECONDS * 0.9  # the beat itself never drifts
    sets = [event for event in await bank.history(4, begin) if event["what"] == "set"]
    assert len(sets) >= sum(row["beats"] for row in rows.values())  # the kernel recorded the loops' writes to the line
