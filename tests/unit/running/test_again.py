"""What is run once more, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.again import FEW, failed, once_more

REPORT = """<testsuites><testsuite>
<testcase classname="tests.hil.test_chips" name="test_good"/>
<testcase classname="tests.hil.test_chips" name="test_bad[a-1]"><failure message="no"/></testcase>
<testcase classname="tests.hil.test_udev" name="test_torn"><failure/></testcase>
<testcase classname="tests.hil.test_udev" name="test_torn"><error/></testcase>
<testcase classname="tests.sim.test_walk.TestModel" name="runTest"><failure/></testcase>
<testcase classname="tests.hil.test_udev" name="test_skipped"><skipped/></testcase>
</testsuite></testsuites>"""


def test_failures_and_errors_each_once(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text(REPORT)
    assert failed(report) == [
        "tests/hil/test_chips.py::test_bad[a-1]",
        "tests/hil/test_udev.py::test_torn",
        "tests/sim/test_walk.py::TestModel::runTest",
    ]


@pytest.mark.parametrize(("text", "status"), [("pass", 0), ("assert 1 == 2", 1)])
def test_what_passes_by_itself_wavered(
    text: str, status: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_late.py").write_text(f"def test_it(): {text}\n")
    report = tmp_path / "junit.xml"
    report.write_text(
        '<testsuite><testcase classname="tests.test_late" name="test_it"><failure/></testcase></testsuite>'
    )
    assert once_more(report, tmp_path) == status
    printed = capfd.readouterr().out
    assert "tests/test_late.py::test_it" in printed
    assert printed.splitlines()[-1] == f"wavered: {'none' if status else 'tests/test_late.py::test_it'}"


def test_only_what_passed_the_second_time_wavered(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_two.py").write_text("def test_late(): pass\ndef test_bad(): assert 1 == 2\n")
    cases = "".join(
        f'<testcase classname="test_two" name="{name}"><failure/></testcase>' for name in ("test_late", "test_bad")
    )
    report = tmp_path / "junit.xml"
    report.write_text(f"<testsuite>{cases}</testsuite>")
    assert once_more(report, tmp_path) == 1
    assert capfd.readouterr().out.splitlines()[-1] == "wavered: test_two.py::test_late"


@pytest.mark.parametrize(("files", "status"), [(1, 0), (2, 1)])
def test_many_failures_are_run_again_only_if_they_are_of_one_file(files: int, status: int, tmp_path: Path) -> None:
    for file in range(files):
        (tmp_path / f"test_{file}.py").write_text("".join(f"def test_{n}(): pass\n" for n in range(FEW + 1)))
    cases = "".join(
        f'<testcase classname="test_{n % files}" name="test_{n}"><failure/></testcase>' for n in range(FEW + 1)
    )
    report = tmp_path / "junit.xml"
    report.write_text(f"<testsuite>{cases}</testsuite>")
    assert once_more(report, tmp_path) == status
