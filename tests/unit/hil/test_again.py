"""What is run once more after a run of the rig's tests."""

from __future__ import annotations

from pathlib import Path

from tests.hil.__main__ import failed

REPORT = """<testsuites><testsuite>
<testcase classname="tests.hil.test_chips" name="test_good"/>
<testcase classname="tests.hil.test_chips" name="test_bad[a-1]"><failure message="no"/></testcase>
<testcase classname="tests.hil.test_udev" name="test_torn"><failure/></testcase>
<testcase classname="tests.hil.test_udev" name="test_torn"><error/></testcase>
<testcase classname="tests.hil.test_udev" name="test_skipped"><skipped/></testcase>
</testsuite></testsuites>"""


def test_failures_and_errors_each_once(tmp_path: Path) -> None:
    report = tmp_path / "junit.xml"
    report.write_text(REPORT)
    assert failed(report) == ["tests/hil/test_chips.py::test_bad[a-1]", "tests/hil/test_udev.py::test_torn"]
