"""`-log-file` of a real machine-server: rotated by another program, on a full disk, after a restart."""

from __future__ import annotations

import json
import re
import resource
import stat
from pathlib import Path

import pytest

from tests.e2e.logs.support import printed, say
from tests.e2e.server.process import server

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\t(DEBUG|INFO|WARN|ERROR)\t\S+\t\S*\t.*|\t.*|\(\d+ messages .*\)"
)


def read(path: Path) -> str:
    return path.read_text()


@pytest.mark.slow
async def test_lines_are_written_to_a_new_file_after_rotation(tmp_path: Path) -> None:
    file = tmp_path / "machine.log"
    async with server(tmp_path, {}, "-log-file", str(file), "-disable-mdns", running=True) as first:
        await say(first, "first")
        assert "\tfirst\n" in read(file)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        file.rename(tmp_path / "machine.log.old")
        await say(first, "second")
        assert "second" not in read(tmp_path / "machine.log.old")
        assert "\tsecond\n" in read(file)
        file.unlink()
        await say(first, "third")
        assert "\tthird\n" in read(file)
        assert first.log() == ""  # no output on standard output
        assert await first.stop() == 0
    events = [line.split("\t") for line in read(file).splitlines() if "\trdk.activity\t" in line]
    assert events[-1][4] == "server shutdown"
    assert json.loads(events[-1][5])["reason"] == "received SIGTERM"
    assert all(LINE.fullmatch(line) for line in read(file).splitlines())
    async with server(tmp_path, {}, "-log-file", str(file), "-disable-mdns", running=True):
        pass
    assert "\tthird\n" in read(file)  # the file is appended to
    assert read(file).count("server startup") == 1


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
sys.argv[0] = "machine-server"
from runtime.server.cli import main
sys.exit(main())
"""


@pytest.mark.slow
async def test_a_full_disk_does_not_stop_the_server_and_is_logged_once(tmp_path: Path) -> None:
    """The limit of the file's size simulates a full disk; another process raises it, which simulates freed space."""
    file = tmp_path / "machine.log"
    document = {"disable_log_deduplication": True}
    async with server(
        tmp_path, document, "-log-file", str(file), "-disable-mdns", program=LIMITED, running=True
    ) as first:
        for number in range(100):
            await say(first, f"line {number} {'x' * 100}")
        assert file.stat().st_size == 6000
        assert len(await printed(first, "--text", "cannot be written", "--level", "error")) == 1
        resource.prlimit(first.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await say(first, "there is room again")
        text = read(file)
        assert "\tthere is room again\n" in text
        assert re.search(r"\n\(\d+ messages are missing here: ", text)
        assert "can be written again" in text
        assert await first.stop() == 0
    assert all(LINE.fullmatch(line) for line in read(file).splitlines() if "line " not in line)
