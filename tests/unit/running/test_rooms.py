"""`python -m tests`: the distribution of tests, and the evaluation of their results."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import pytest
import trio

from tests import __main__ as running
from tests.__main__ import (
    APART,
    HERE,
    LONG,
    ROOT,
    SECONDS,
    TOGETHER,
    USUAL,
    Run,
    carry_out,
    compile_sources,
    counts_of,
    main,
    merge,
    rooms,
    runs,
    said,
)

GOOD = "def test_a(): pass\ndef test_b(): pass\n"
BAD = "import pytest\ndef test_c(): assert 1 == 2\ndef test_d(): pytest.skip('no hammer here')\n"


def test_every_test_is_in_exactly_one_run() -> None:
    files = {path.relative_to(HERE) for path in HERE.rglob("test_*.py")}
    files = {path for path in files if path.parts[0] not in APART and "fixtures" not in path.parts}
    folders = [Path(folder) for run in runs(rooms()) for folder in run.folders]
    assert {file: sum(folder in file.parents for folder in folders) for file in files} == dict.fromkeys(files, 1)


def test_long_rooms_are_alone_and_what_takes_longest_begins_first() -> None:
    long = [room for room, seconds in SECONDS.items() if seconds > LONG]
    results = [*(f"unit/{number:02}" for number in range(50)), *reversed(SECONDS)]
    every = runs(results)
    assert sorted(folder for run in every for folder in run.folders) == sorted(results)
    totals = [sum(SECONDS.get(folder, USUAL) for folder in run.folders) for run in every]
    assert totals == sorted(totals, reverse=True)
    assert all(len(run.folders) == 1 for run in every if set(run.folders) & set(long))
    rest = [total for run, total in zip(every, totals, strict=True) if run.name.startswith("rest-")]
    assert max(rest) <= TOGETHER
    assert max(rest) - min(rest) <= USUAL
    assert len({run.name for run in every}) == len(every)


def test_every_long_room_exists() -> None:
    assert set(SECONDS) - set(rooms()) == set()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("good", GOOD), ("bad", BAD)):
        folder = tmp_path / "tests" / "unit" / name
        folder.mkdir(parents=True)
        (folder / f"test_{name}.py").write_text(text)
    monkeypatch.setattr(running, "ROOT", tmp_path)
    monkeypatch.setattr(running, "OUTPUT", tmp_path / "build")
    (tmp_path / "build").mkdir()
    return tmp_path


async def test_results_of_all_rooms_are_one_and_one_failure_is_a_failure(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running, "rooms", lambda: ["unit/bad", "unit/good"])
    monkeypatch.setattr(running, "SECONDS", {"unit/bad": LONG + 1, "unit/good": LONG + 1})
    assert await main(["-q"]) == 1
    printed = capsys.readouterr().out
    assert "1 failed, 2 passed, 1 skipped in" in printed
    assert printed.splitlines()[-1] == "failed: unit/bad, see build/unit-bad.log"
    table = printed.partition("slowest tests:")[2]
    assert re.search(r" s  tests/unit/bad/test_bad.py::test_c\n", table)
    assert "no hammer here" in printed
    assert "assert 1 == 2" in printed
    assert printed.count("failed: unit/bad") == 1
    cases = {case.get("name") for case in ElementTree.parse(place / "build/junit.xml").iter("testcase")}
    assert cases == {"test_a", "test_b", "test_c", "test_d"}

    monkeypatch.setattr(running, "rooms", lambda: ["unit/bad"])
    assert await main(["-q", "-k", "nonesuch"]) == 1, "no test at all"
    assert "failed:" not in capsys.readouterr().out, "a room without tests is not a failure"


async def test_the_end_of_each_run_is_announced(place: Path) -> None:
    every = [Run(f"good-{number}", ("unit/good",)) for number in range(2)]
    statuses = []

    def ended() -> None:
        statuses.append([run.status for run in every])

    turns = trio.CapacityLimiter(1)
    assert await running.carry_out_all(every, ["-q"], turns, place / "build" / "all.xml", ended) == 0
    assert statuses == [[0, None], [0, 0]]


async def test_a_run_that_dies_is_a_failure(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "tests/unit/bad/test_bad.py").write_text("import os\nos._exit(7)\n")
    run = Run("dead", ("unit/bad",))
    await carry_out(run, [], trio.CapacityLimiter(1))
    assert (run.status, run.good, run.counts) == (7, False, Counter())
    assert "status 7" in capsys.readouterr().out


async def test_a_run_that_waits_for_ever_is_killed(place: Path) -> None:
    (place / "tests/unit/bad/test_bad.py").write_text("import threading\nthreading.Event().wait()\n")
    run = Run("stuck", ("unit/bad",), limit=1.0)
    await carry_out(run, [], trio.CapacityLimiter(1))
    assert (run.status, run.good) == (running.TIMED_OUT, False)


def test_a_report_that_is_not_there_counts_nothing(tmp_path: Path) -> None:
    assert counts_of(tmp_path / "none.xml") == Counter()
    (tmp_path / "half.xml").write_text("<testsuites><testsuite")
    merge([tmp_path / "half.xml", tmp_path / "none.xml"], tmp_path / "all.xml")
    assert list(ElementTree.parse(tmp_path / "all.xml").iter("testcase")) == []


def test_success_is_reported_in_one_line(place: Path) -> None:
    run = Run("good", ("unit/good",), status=0, seconds=3)
    run.log.write_text("...\nSKIPPED [1] x.py:1: no hammer\n=== 2 passed in 1.0s ===\n")
    assert said(run).splitlines() == [
        "==> unit/good (3 s, status 0)",
        "SKIPPED [1] x.py:1: no hammer",
        "=== 2 passed in 1.0s ===",
    ]


def test_packages_are_compiled_where_writing_bytecode_is_off(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    (place / "shop" / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/goods.py"):
        (place / "shop" / name).write_text("")
    compile_sources()
    names = sorted(path.name.partition(".")[0] for path in place.rglob("*.pyc"))
    assert names == ["__init__", "goods"]


@pytest.mark.parametrize("runner", ["tests", "tests.hil"])
def test_tests_that_run_in_the_background_may_be_interrupted(runner: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import signal\ndef test_it(): signal.raise_signal(signal.SIGINT)\n")
    program = (
        "import runpy, subprocess, sys, trio\n"
        f"words = [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', {str(tmp_path)!r}]\n"
        "trio.run = lambda *_: subprocess.run(words).returncode\n"
        f"sys.argv[1:] = words[3:]\nrunpy.run_module('{runner}', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, "MACHINE_HIL_DIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == pytest.ExitCode.INTERRUPTED, done.stdout + done.stderr
    assert "KeyboardInterrupt" in done.stdout


SECOND = """
from pathlib import Path
def test_passes_the_second_time():
    before = Path("ran").exists()
    Path("ran").touch()
    assert before
"""


async def test_a_failed_test_is_not_run_a_second_time(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "tests/unit/bad/test_bad.py").write_text(SECOND)
    monkeypatch.setattr(running, "rooms", lambda: ["unit/bad", "unit/good"])
    assert await main(["-q"]) == 1
