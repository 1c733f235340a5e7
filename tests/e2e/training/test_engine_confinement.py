"""The local engine: a program reaches nothing but its own files, and no system calls that it does not need."""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
import trio

from tests.e2e.training.engine import SMALL, Ran, isolates, order_of, processes_of, run  # noqa: F401 - a fixture
from training.engine.calls import DENIED, MACHINES
from training.engine.local import ROOT
from training.engine.port import CLOUD, RunOutcome

pytestmark = pytest.mark.usefixtures("isolates")


def attempts(tmp_path: Path) -> list[tuple[str, object]]:
    """Return what a program tries and must not be able to do."""
    secret = tmp_path / "secret"
    secret.write_text("of the cloud")
    (tmp_path / "other" / "dataset").mkdir(parents=True)
    (tmp_path / "other" / "dataset" / "picture.png").write_text("of another organization")
    return [
        ("read", secret),
        ("read", tmp_path / "other" / "dataset" / "picture.png"),
        ("read", tmp_path / "job" / "output" / ".." / ".." / "secret"),
        ("read", f"/proc/{os.getpid()}/environ"),
        ("read", f"/proc/{os.getpid()}/root{secret}"),
        ("read", f"/proc/1/root{secret}"),
        ("read", f"/.old{secret}"),
        ("read", "/etc/shadow"),
        ("read", "/dev/mem"),
        ("read", ROOT / "cloud" / "__init__.py"),
        ("listing", tmp_path / "other"),
        ("write", tmp_path / "job" / "dataset" / "dataset.jsonl"),
        ("write", ROOT / "training" / "new.py"),
        ("write", "/usr/new"),
        ("write", "/new"),
        ("write", "/proc/sysrq-trigger"),
        ("write", "/proc/sys/kernel/core_pattern"),
        ("kill", os.getpid()),
        ("trace", os.getppid()),
        ("mount", ""),
        ("root", ""),
        ("chroot", ""),
        ("device", ""),
    ]


async def test_a_program_reads_and_writes_only_its_own_folders(tmp_path: Path) -> None:
    done = []
    for do, path in attempts(tmp_path):
        outcome, ran = await run(order_of(tmp_path / "job", do, path))
        assert not [line for line in ran.log if "No module" in line or "confined" in line], ran.log
        if not outcome.reason:
            done.append((do, path, ran.log))
    assert done == []


@pytest.mark.skipif(platform.machine() not in MACHINES, reason="this processor has no table of system calls")
async def test_system_calls_are_refused(tmp_path: Path) -> None:
    column = MACHINES[platform.machine()]
    numbers = {name: each[column] for name, each in DENIED.items()}
    outcome, ran = await run(order_of(tmp_path / "job", "calls", json.dumps(numbers)))
    assert (outcome, sorted(filter(None, ran.log))) == (RunOutcome(), ["a process", "a thread"])


async def test_the_temporary_folders_are_its_own(tmp_path: Path) -> None:
    for path in (Path("/tmp/of-a-job"), Path("/dev/shm/of-a-job")):
        outcome, ran = await run(order_of(tmp_path / "job", "write", path))
        assert (outcome, ran.log) == (RunOutcome(), ["written"])
        assert not path.exists()


async def test_files_are_read_only_even_for_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.engine.local.user_of", lambda job: os.geteuid())
    for path in (tmp_path / "job" / "dataset" / "dataset.jsonl", tmp_path / "program" / "new", "/usr/new", "/new"):
        outcome, ran = await run(order_of(tmp_path / "job", "write", path))
        assert outcome.reason
        assert "Read-only file system" in ran.log[-1]


async def test_a_program_sees_only_its_own_files_and_processes(tmp_path: Path) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "listing", tmp_path))
    assert (outcome, ran.log) == (RunOutcome(), ["job program"])
    outcome, ran = await run(order_of(tmp_path / "job", "listing", tmp_path / "job"))
    assert (outcome, ran.log) == (RunOutcome(), ["checkpoints dataset output tmp"])
    outcome, ran = await run(order_of(tmp_path / "job", "listing", "/proc"))
    assert [int(name) for name in ran.log[0].split() if name.isdigit()] == [1, 2]
    outcome, ran = await run(order_of(tmp_path / "job", "listing", "/"))
    assert ".old" not in ran.log[0].split()
    assert "proc" in ran.log[0].split()
    outcome, ran = await run(order_of(tmp_path / "job", "listing", "/sys"))
    assert "FileNotFoundError" in ran.log[-1]


async def test_a_program_has_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        outcome, ran = await run(order_of(tmp_path / "job", "connect", f"127.0.0.1:{server.getsockname()[1]}"))
    assert outcome.reason
    assert "Network is unreachable" in ran.log[-1]


async def test_the_network_of_a_program_is_what_the_engine_serves(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = server.getsockname()[1]
        cases = {f"127.0.0.1:{CLOUD[1]}": "", f"127.0.0.1:{here}": "refused", "192.0.2.1:80": "unreachable"}
        for path, reason in cases.items():
            served: list[bytes] = []

            async def connect(stream: trio.abc.Stream, served: list[bytes] = served) -> None:
                async with stream:
                    served.append(bytes(await stream.receive_some()))
                raise ValueError("this ends no other connection and not the program")

            outcome, ran = await run(replace(order_of(tmp_path / "job", "connect", path), connect=connect))
            assert bool(outcome.reason) == bool(reason)
            assert reason in ran.log[-1]
            assert served == ([] if reason else [b"hello"])


FOREIGN: Final = (
    *(f"support/foreign/{path.stem}" for path in sorted((ROOT / "support" / "foreign").glob("*.py"))),
    "support/__init__",
)
DOORS: Final = ("schema/doors", "schema/__init__")
STARTING: Final = "import sys; sys.path.insert(0, sys.argv.pop(1)); from training.engine.sandbox import main; main()"
ORDINARY: Final = """
import os
print(os.getuid(), sorted(os.listdir(FOLDER)))
for path in (f"{FOLDER}/secret", "/etc/shadow"):
    print(os.path.exists(path))
for path in (f"{FOLDER}/job/dataset/new", "/usr/new"):
    try:
        open(path, "w")
    except OSError as error:
        print(error.strerror)
open(f"{FOLDER}/job/output/model", "w").close()
print(open(f"{FOLDER}/job/checkpoints/step").read())
held = []
try:
    while True:
        held.append(open(f"{FOLDER}/job/checkpoints/{len(held)}", "wb", 0))
        os.unlink(f"{FOLDER}/job/checkpoints/{len(held) - 1}")
        held[-1].write(bytes(2**20))
except OSError as error:
    print(len(held), error.strerror)
os.mkdir(f"{FOLDER}/job/output/closed")
os.chmod(f"{FOLDER}/job/output/closed", 0)
print(os.system("mount -t tmpfs none /mnt 2>/dev/null") != 0)
"""
ORDINARY_USER: Final = 65534  # has no files and runs nothing
PYTHON: Final = "/usr/bin/python3"  # of the system: the one of the tests may be in the home folder of root


@pytest.mark.skipif(os.geteuid() != 0 or not os.path.exists(PYTHON), reason="only root can be another user")
def test_an_ordinary_user_isolates_programs_too() -> None:
    """The sandbox with a user namespace, as a cloud that does not run as root uses it."""
    with TemporaryDirectory() as folder:  # that of a test can be entered by root only
        os.chown(folder, ORDINARY_USER, ORDINARY_USER)
        _check_as_ordinary_user(Path(folder))


def _check_as_ordinary_user(tmp_path: Path) -> None:
    job = tmp_path / "job"
    writable = [job / "output", job / "checkpoints", job / "tmp"]
    for folder in (*writable, job / "dataset", job / "root", tmp_path / "program"):
        folder.mkdir(parents=True)
    (tmp_path / "secret").touch()
    engine = tmp_path / "program" / "training" / "engine"
    engine.mkdir(parents=True)
    (tmp_path / "program" / "support" / "foreign").mkdir(parents=True)
    (tmp_path / "program" / "schema").mkdir()
    for name in ("training/engine/sandbox", "training/engine/calls", "training/engine/disk", *FOREIGN, *DOORS):
        shutil.copy(ROOT / f"{name}.py", tmp_path / "program" / f"{name}.py")
    (job / "checkpoints" / "step").write_text("7")
    plan = {
        "isolate": True,
        "group": None,
        "online": False,
        "user": None,
        "root": str(job / "root"),
        "folder": str(job / "dataset"),
        "temporary": str(job / "tmp"),
        "readable": [str(job / "dataset")],
        "writable": [str(folder) for folder in writable],
        "disk": {
            "at": str(job / "tmp"),
            "size": 8 * 2**20,
            "entries": 100,
            "output": str(job / "output"),
            "checkpoints": str(job / "checkpoints"),
            "temporary": str(job / "tmp"),
            "seconds": 60.0,
        },
        "uncounted": False,
        "grace": 1.0,
        "limits": {"RLIMIT_CORE": 0},
        "lock": None,
        "silence": 45.0,
        "network": None,
        "environment": {"PATH": "/usr/bin:/bin"},
        "command": [PYTHON, "-c", f"FOLDER = {str(tmp_path)!r}\n{ORDINARY}"],
    }
    (job / "plan.json").write_text(json.dumps(plan))
    for path in tmp_path.rglob("*"):
        os.chown(path, ORDINARY_USER, ORDINARY_USER)
    process = subprocess.Popen(
        [PYTHON, "-I", "-S", "-c", STARTING, str(tmp_path / "program"), str(job / "plan.json")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        user=ORDINARY_USER,
        group=ORDINARY_USER,
        extra_groups=[],
        start_new_session=True,
    )
    with process:
        assert process.stdout is not None
        output = process.stdout.read()
    if "cannot be confined" in output:
        pytest.skip(output)
    read_only = "Read-only file system"
    full = "9 No space left on device"
    assert output.splitlines() == ["65534 ['job']", "False", "False", read_only, read_only, "7", full, "True"]
    assert (job / "output" / "model").stat().st_uid == ORDINARY_USER
    assert (job / "output" / "closed").stat().st_mode & 0o777 == 0o700
    assert sorted(os.listdir(job / "tmp")) == []
