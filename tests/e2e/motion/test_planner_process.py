"""The process of the planner: it answers, repeats itself, is killed when its caller leaves, and survives nothing."""

from __future__ import annotations

import signal
from importlib.util import find_spec
from pathlib import Path

import msgspec
import psutil
import pytest
import trio

from models.planner import process
from models.planner.child import EXTRA
from models.planner.problem import MAX_SOLIDS, Constraints
from models.planner.process import ProcessPlanner
from schema.errors import ErrorKind, MachineError
from tests.unit.models.planner.scenes import TABLE, ball, box, problem, turned

LOW = box("wall", (500, 40, 350), (-560, -300, 175))
INSTALLED = all(find_spec(name) is not None for name in EXTRA)
needs_extra = pytest.mark.skipif(not INSTALLED, reason="needs the extra `motion`")


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "planner" in " ".join(child.cmdline())]


async def test_the_direct_way_needs_no_extra() -> None:
    trajectory = await ProcessPlanner()(problem(goal_values=turned(0.8)))
    assert trajectory.method == "straight"
    assert not children()


async def test_a_line_is_planned() -> None:
    whole = problem()
    goal = list(whole.mechanism.output(turned(0.0)))
    goal[3] += 100
    trajectory = await ProcessPlanner()(problem(goal=tuple(goal), constraints=Constraints(line=1.0, rotation=0.05)))
    assert trajectory.method == "line"


@needs_extra
async def test_a_search_is_repeatable() -> None:
    whole = problem(LOW, goal_values=turned(1.2), seed=3)
    first, second = await ProcessPlanner()(whole), await ProcessPlanner()(whole)
    assert first.method == "search"
    assert first.points == second.points


@pytest.mark.skipif(INSTALLED, reason="the extra `motion` is installed")
async def test_without_the_extra_the_error_names_it() -> None:
    with pytest.raises(MachineError, match=r"machine-runtime\[motion\]"):
        await ProcessPlanner()(problem(LOW, goal_values=turned(1.2)))


async def test_an_explanation_crosses_the_pipe() -> None:
    with pytest.raises(MachineError, match="ball") as caught:
        await ProcessPlanner()(problem(ball("ball", 130, (-500, -133, 300)), goal_values=turned(1.2)))
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert caught.value.remedy


def replaced(monkeypatch: pytest.MonkeyPatch, folder: Path, program: str) -> None:
    """Let processes run another program."""
    package = folder / "models" / "planner"
    package.mkdir(parents=True)
    (package / "child.py").write_text(f"import os, sys, time\ndef main(cpu): {program}\n")
    monkeypatch.setattr(process, "_paths", lambda: (str(folder),))


async def test_a_caller_that_leaves_kills_the_process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    replaced(monkeypatch, tmp_path, "time.sleep(1000)")
    with trio.move_on_after(1.0) as scope:
        await ProcessPlanner()(problem(goal_values=turned(0.8)))
    assert scope.cancelled_caught
    assert not children()


@pytest.mark.parametrize(
    ("number", "match"), [(signal.SIGSEGV, "SIGSEGV"), (signal.SIGABRT, "SIGABRT"), (signal.SIGKILL, "takes longer")]
)
async def test_a_crash_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: signal.Signals, match: str
) -> None:
    replaced(monkeypatch, tmp_path, f"os.kill(os.getpid(), {int(number)})")
    with pytest.raises(MachineError, match=match):
        await ProcessPlanner()(problem(goal_values=turned(0.8)))
    assert not children()


async def test_a_request_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process.msgspec.msgpack, "encode", lambda _: b"\xc1")
    with pytest.raises(MachineError, match="ended unexpectedly"):
        await ProcessPlanner()(problem(goal_values=turned(0.8)))


async def test_too_much_is_refused_before_a_process_starts() -> None:
    many = msgspec.structs.replace(problem(), solids=[TABLE] * (MAX_SOLIDS + 1))
    for whole, match in ((many, "1001 shapes"), (problem(seconds=1e9), "1e\\+09 s"), (problem(seconds=0.0), "0 s")):
        with pytest.raises(MachineError, match=match):
            await ProcessPlanner()(whole)
    assert not children()
