"""Outputs observed from outside: every level is reported, and outputs left open are forced to their safe level."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from trio.testing import MockClock

from hal.errors import Fault, HalError
from hal.ports.digital import DigitalOutput, Line, OutputSettings
from hal.sim import World
from rig.artefacts import Journal
from rig.outputs import Outputs, WatchedSim
from rig.run import Run
from rig.session import TestState

LINE = Line("chip", 4)


@pytest.fixture
def levels_seen() -> list[tuple[str, float]]:
    return []


@pytest.fixture
def outputs(levels_seen: list[tuple[str, float]]) -> Outputs:
    return Outputs(lambda name, level, at=None: levels_seen.append((name, level)))


async def test_levels_are_recorded_from_opening_to_closing(
    outputs: Outputs, levels_seen: list[tuple[str, float]], autojump_clock: MockClock
) -> None:
    hardware = WatchedSim(World(), outputs)
    async with hardware.digital_output(LINE, OutputSettings(safe=True)) as output:
        output.write(False)
        assert not output.read()
    async with hardware.pwm(LINE) as wave:
        wave.set_wave(0.5, 100.0)
        assert wave.wave() == (0.5, 100.0)
    assert [level for name, level in levels_seen if name == "chip line 4"] == [1, 0, 1, 0, 0.5, 0]
    assert outputs.unsafe() == []
    assert [state.level for state in hardware.lines.outputs()] == [False]


async def test_an_error_of_its_user_is_not_a_fault_of_the_output(outputs: Outputs, autojump_clock: MockClock) -> None:
    hardware = WatchedSim(World(), outputs)
    with pytest.raises(HalError):
        async with hardware.digital_output(LINE, OutputSettings()):
            raise HalError("of the driver", Fault.BUS)
    assert outputs.unsafe() == []


async def test_open_outputs_are_forced_once(
    outputs: Outputs, levels_seen: list[tuple[str, float]], autojump_clock: MockClock
) -> None:
    hardware = WatchedSim(World(), outputs)
    digital, wave = hardware.digital_output(LINE, OutputSettings(safe=True)), hardware.pwm(Line("chip", 5))
    (await digital.__aenter__()).write(False)
    (await wave.__aenter__()).set_wave(0.7, 100.0)
    assert outputs.unsafe() == [
        "chip line 4 was still driven; it has been forced to its safe level",
        "chip line 5 was still driven; it has been forced to its safe level",
    ]
    assert [state.level == state.safe for state in hardware.lines.outputs()] == [True, True]
    assert levels_seen[-2:] == [("chip line 4", True), ("chip line 5", 0.0)]
    assert outputs.unsafe() == []
    await digital.__aexit__(None, None, None)
    await wave.__aexit__(None, None, None)


async def test_outputs_open_after_the_event_loop_are_forced(
    outputs: Outputs, tmp_path: Path, autojump_clock: MockClock
) -> None:
    hardware = WatchedSim(World(), outputs)
    digital = hardware.digital_output(LINE, OutputSettings())
    (await digital.__aenter__()).write(True)
    run, journal = Run(virtual=True, limit=0), Journal(tmp_path / "journal.txt")
    state = TestState("sim", 0, tmp_path, tmp_path, {}, run, journal, {}, outputs=[outputs])
    state.finish()
    journal.close()
    [text] = run.wrong
    assert text == "chip line 4 was still driven; it has been forced to its safe level"
    assert (tmp_path / "journal.txt").read_text() == f"-- UNSAFE: {text}\n"
    await digital.__aexit__(None, None, None)


async def test_outputs_that_cannot_be_forced_are_reported(outputs: Outputs, autojump_clock: MockClock) -> None:
    hardware = WatchedSim(World(), outputs)
    digital = hardware.digital_output(LINE, OutputSettings())
    await digital.__aenter__()
    hardware.lines.unplug("chip")
    [text] = outputs.unsafe()
    assert text.startswith(
        "chip line 4 is still driven and could not be forced to its safe level: chip line 4: No such"
    )
    await digital.__aexit__(None, None, None)


async def test_a_failed_close_is_reported(outputs: Outputs, autojump_clock: MockClock) -> None:
    class Stuck:
        def read(self) -> bool:
            return True

        def write(self, high: bool) -> None:
            pass

    @asynccontextmanager
    async def stuck() -> AsyncIterator[DigitalOutput]:
        yield Stuck()
        raise HalError("chip line 4 could not be driven", Fault.BUS)

    with pytest.raises(HalError):
        async with outputs.digital(LINE, OutputSettings(), stuck()):
            pass
    [text] = outputs.unsafe()
    assert text.startswith("chip line 4 could not be set to its safe level: chip line 4 could not be driven")
