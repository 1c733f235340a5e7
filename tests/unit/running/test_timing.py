"""The list of slow tests, and the totals of rooms."""

from __future__ import annotations

from pathlib import Path

from tests.timing import SLOWEST, summary

CASE = '<testcase classname="{}" name="{}" time="{}"/>'


def test_the_slowest_tests_and_the_seconds_of_each_room(tmp_path: Path) -> None:
    cases = [CASE.format("tests.unit.a.test_x", f"test_{number}", number) for number in range(20)]
    (tmp_path / "one.xml").write_text(f"<testsuite>{''.join(cases)}</testsuite>")
    more = CASE.format("tests.unit.ab.deep.test_y.TestModel", "runTest", 100.25)
    (tmp_path / "two.xml").write_text(f"<testsuite>{more}{CASE.format('tests.hil.test_z', 'test_z', 300)}</testsuite>")
    rooms = ["unit/a", "unit/ab", "unit/quick", "hil/test_z.py"]
    reports = [tmp_path / name for name in ("one.xml", "two.xml", "none.xml")]
    lines = summary(reports, rooms).splitlines()
    slowest = lines[2 : 2 + SLOWEST]
    assert slowest[:3] == [
        "  300.0 s  tests/hil/test_z.py::test_z",
        "  100.2 s  tests/unit/ab/deep/test_y.py::TestModel::runTest",
        "   19.0 s  tests/unit/a/test_x.py::test_19",
    ]
    assert lines[2 + SLOWEST :] == [
        "",
        "seconds by room:",
        "  300.0 s  hil/test_z.py",
        "  190.0 s  unit/a",
        "  100.2 s  unit/ab",
    ]
