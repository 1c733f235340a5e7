"""The local engine with programs that do what they should not: each ends with a clear reason, and reaches nothing."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import trio

from cloud.values.limits import TRAINING_ARGUMENTS
from training.engine import lock
from training.engine.calls import DENIED, MACHINES
from training.engine.local import ROOT, LocalEngine, inspected, user_of
from training.engine.port import CLOUD, MIB, Bounds, Order, Outcome
from training.jobs.events import Event, Log, Progress

SCRIPT: Final = Path(__file__).with_name("script.py")
SMALL: Final = Bounds(
    memory=512 * MIB,
    cpu=20,
    wall=30.0,
    disk=64 * MIB,
    files=500,
    processes=10,
    lines=300,
    rate=10_000,
    grace=2.0,
)


class Ran:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.printed = trio.Event()

    async def sink(self, events: Sequence[Event]) -> None:
        self.events += events
        self.printed.set()

    @property
    def log(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Log)]


def order_of(folder: Path, do: str, path: object = "", *, bounds: Bounds = SMALL) -> Order:
    program = folder.parent / "program" / "model"
    program.mkdir(parents=True, exist_ok=True)
    shutil.copy(SCRIPT, program / "training.py")
    folder.mkdir(exist_ok=True)
    order = Order(
        folder.name,
        folder,
        "model.training",
        (f"--model_output_directory={folder / 'output'}", f"--do={do}", f"--path={path}"),
        program=program.parent,
        bounds=bounds,
    )
    order.dataset.mkdir(exist_ok=True)
    (order.dataset / "dataset.jsonl").write_text("{}\n")
    return order


async def run(order: Order) -> tuple[Outcome, Ran]:
    ran = Ran()
    return await LocalEngine(python=sys.executable).run(order, ran.sink), ran


@pytest.fixture(scope="module")
def isolates(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip tests where programs cannot be isolated."""
    if reason := trio.run(LocalEngine(python=sys.executable).probe, tmp_path_factory.mktemp("probe") / "p"):
        pytest.skip(reason)


pytestmark = pytest.mark.usefixtures("isolates")


async def test_a_program_that_ends_well(tmp_path: Path) -> None:
    order = order_of(tmp_path / "job", "train")
    outcome, ran = await run(order)
    assert outcome == Outcome()
    assert ran.events == [Log("training"), Progress(1, 1)]
    assert (order.output / "model.onnx").read_bytes() == b"model"


@pytest.mark.parametrize(
    ("do", "bounds", "reason"),
    [
        ("fail", {}, "status 1"),
        ("memory", {}, "more memory than its limit of 512 MiB"),
        ("reserve", {"address_space": 1024 * MIB}, "more memory than its limit of 512 MiB"),
        ("together", {}, "used more than 512 MiB together"),
        ("processor", {"cpu": 1}, "processor time of 1 s"),
        ("hang", {"wall": 2.0, "grace": 0.5}, "longer than 2 s"),
        ("fork", {}, "more than 10 processes"),
        ("threads", {}, "more than 10 processes"),
        ("requirement", {}, "needs not_installed, which its interpreter does not have"),
        ("full", {}, "disk of the computer that runs the job is full"),
        ("disk", {}, "wrote more than 64 MiB"),
        ("file", {}, "larger than the limit of 64 MiB"),
        ("files", {}, "more than 500 files"),
        ("flood", {}, "printed more than 300 lines"),
    ],
)
async def test_each_misuse_ends_with_a_reason(tmp_path: Path, do: str, bounds: dict[str, Any], reason: str) -> None:
    order = order_of(tmp_path / "job", do)
    order = Order(**{**_fields(order), "bounds": Bounds(**{**_fields(SMALL), **bounds})})
    outcome, ran = await run(order)
    assert reason in outcome.reason, (outcome, ran.log[-3:])
    assert len(ran.log) <= 300
    if do == "fork":
        assert "children, then" in ran.log[-1]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m,mode=755", "small", folder]
    mounted = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


async def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    outcome, ran = await run(order_of(small_disk / "job", "disk"))
    assert outcome == Outcome("the disk of the computer that runs the job is full")
    assert "No space left on device" in ran.log[-1]


def _fields(record: Any) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__dataclass_fields__}


@pytest.mark.parametrize("limit", [Bounds().address_space, None])
async def test_reserved_address_space_is_not_memory(tmp_path: Path, limit: int | None) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "reserve", bounds=replace(SMALL, address_space=limit)))
    assert (outcome, ran.log) == (Outcome(), ["reserved"])


@pytest.mark.parametrize(
    "text", ["😀" * TRAINING_ARGUMENTS.value, "--do=fail", "$(id) `id` ; 'a' \"b\"\n%s\t{}", " ", "", "\u202e\x1b[31m"]
)
async def test_arguments_arrive_as_they_were_submitted(tmp_path: Path, text: str) -> None:
    order = order_of(tmp_path / "job", "argument", text)
    outcome, _ = await run(order)
    assert outcome == Outcome()
    assert (order.output / "argument").read_text() == text


async def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "endless"))
    assert outcome == Outcome()
    assert [len(line) for line in ran.log] == [4000]


async def test_output_is_slowed_down_to_the_rate(tmp_path: Path) -> None:
    order = order_of(tmp_path / "job", "flood", bounds=Bounds(wall=3.0, rate=100, lines=10_000, grace=0.5))
    outcome, ran = await run(order)
    assert "longer than 3 s" in outcome.reason
    assert 100 <= len(ran.log) <= 400 + 100


async def test_nothing_of_a_program_outlives_it(tmp_path: Path) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "daemon"))
    assert outcome == Outcome()
    assert ran.log == ["daemon"]
    assert _processes("daemon") == []


def _processes(word: str) -> list[int]:
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if f"print('{word}'".encode() in (entry / "cmdline").read_bytes():
                    processes.append(int(entry.name))
            except OSError:
                continue
    return processes


async def test_a_cancelled_program_writes_a_checkpoint_and_continues(tmp_path: Path) -> None:
    order = order_of(tmp_path / "job", "resume")
    ran = Ran()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(LocalEngine(python=sys.executable).run, order, ran.sink)
        await ran.printed.wait()
        nursery.cancel_scope.cancel()
    assert ran.log == ["start 0"]
    assert (order.checkpoints / "count").read_text() == "1"
    outcome, ran = await run(order)
    assert outcome == Outcome()
    assert ran.log == ["start 1"]


async def test_a_program_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    order, ran = order_of(tmp_path / "job", "hang", bounds=Bounds(grace=0.5)), Ran()
    with trio.fail_after(15):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(LocalEngine(python=sys.executable).run, order, ran.sink)
            await ran.printed.wait()
            nursery.cancel_scope.cancel()


DYING: Final = """
import dataclasses, os, sys, trio
from pathlib import Path
from training.engine import local, lock
from training.engine.local import LocalEngine
from tests.e2e.training.test_engine import order_of
folder, isolate = Path(sys.argv[1]), sys.argv[2] == "isolated"
local.SILENCE, local.LIFE = float(sys.argv[3]), 0.2
async def sink(events):
    print(*[event.message for event in events], flush=True)
order = dataclasses.replace(order_of(folder / "job", "hang"), lock=lock.path_of(folder, "engine"))
if not isolate:
    code = "import signal, time as t; signal.signal(15, 1); print('hanging'); t.sleep(3); print('still'); t.sleep(1000)"
    order = dataclasses.replace(order, program=None, module="timeit", arguments=("-n1", "-r1", code, f"#{folder}"))
lock.hold(folder, "engine")
trio.run(LocalEngine(isolate=isolate, python=sys.executable).run, order, sink)
"""


@pytest.mark.parametrize("confined", ["isolated", "limited"])
def test_a_program_dies_with_its_engine(tmp_path: Path, confined: str) -> None:
    with _engine(tmp_path, confined) as engine:
        assert len(_of_job(tmp_path)) >= 2
        engine.kill()
        end = time.monotonic() + 10
        while not lock.ended(tmp_path) and time.monotonic() < end:
            time.sleep(0.001)
        assert lock.ended(tmp_path) == {"engine"}
        assert _of_job(tmp_path) == []  # a worker that takes over the job relies on the lock


@pytest.mark.parametrize("confined", ["isolated", "limited"])
def test_the_lock_is_held_as_long_as_a_program_runs(tmp_path: Path, confined: str) -> None:
    """Also if the process around it was stopped in the moment in which its engine died."""
    with _engine(tmp_path, confined) as engine:
        watcher = min(_of_job(tmp_path))
        os.kill(watcher, signal.SIGSTOP)
        engine.kill()
        engine.wait()
        assert lock.ended(tmp_path) == frozenset()
        assert len(_of_job(tmp_path)) >= 2
        os.kill(watcher, signal.SIGCONT)
        end = time.monotonic() + 10
        while lock.ended(tmp_path) != {"engine"} and time.monotonic() < end:
            time.sleep(0.01)  # a process that ends releases its memory, which names it here, before its files
        assert _of_job(tmp_path) == []
        assert lock.ended(tmp_path) == {"engine"}


@pytest.mark.parametrize("confined", ["isolated", "limited"])
def test_a_program_ends_when_its_engine_falls_silent(tmp_path: Path, confined: str) -> None:
    """A stopped engine renews no lease, so another worker may start the job."""
    with _engine(tmp_path, confined, silence=1.5) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "still\n"  # 3 s later: the engine gave signs of life
        os.kill(engine.pid, signal.SIGSTOP)
        end = time.monotonic() + 20
        while _of_job(tmp_path) and time.monotonic() < end:
            time.sleep(0.05)
        assert _of_job(tmp_path) == []


@contextmanager
def _engine(folder: Path, confined: str, silence: float = 45.0) -> Iterator[subprocess.Popen[str]]:
    """Run an engine with a program that ignores SIGTERM."""
    words = [sys.executable, "-c", DYING, str(folder), confined, str(silence)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "hanging\n"
        try:
            yield engine
        finally:
            engine.kill()


def _of_job(folder: Path) -> list[int]:
    processes = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in command and b"LocalEngine" not in command:
                processes.append(int(entry.name))
    return processes


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
    assert (outcome, sorted(filter(None, ran.log))) == (Outcome(), ["a process", "a thread"])


async def test_the_temporary_folders_are_its_own(tmp_path: Path) -> None:
    for path in (Path("/tmp/of-a-job"), Path("/dev/shm/of-a-job")):
        outcome, ran = await run(order_of(tmp_path / "job", "write", path))
        assert (outcome, ran.log) == (Outcome(), ["written"])
        assert not path.exists()


async def test_files_are_read_only_even_for_their_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.engine.local.user_of", lambda job: os.geteuid())
    for path in (tmp_path / "job" / "dataset" / "dataset.jsonl", tmp_path / "program" / "new", "/usr/new", "/new"):
        outcome, ran = await run(order_of(tmp_path / "job", "write", path))
        assert outcome.reason
        assert "Read-only file system" in ran.log[-1]


async def test_a_program_sees_only_its_own_files_and_processes(tmp_path: Path) -> None:
    outcome, ran = await run(order_of(tmp_path / "job", "listing", tmp_path))
    assert (outcome, ran.log) == (Outcome(), ["job program"])
    outcome, ran = await run(order_of(tmp_path / "job", "listing", tmp_path / "job"))
    assert (outcome, ran.log) == (Outcome(), ["checkpoints dataset output tmp"])
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


async def test_foreign_programs_are_refused_without_isolation(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="need isolation"):
        await LocalEngine(isolate=False, python=sys.executable).run(order_of(tmp_path / "job", "train"), Ran().sink)


@pytest.mark.parametrize("isolate", [True, False])
async def test_programs_of_this_project(tmp_path: Path, isolate: bool) -> None:
    """They run without isolation, too, from the packages of this project, and without other processes left."""
    for module, arguments, reason in (
        ("this", (), ""),
        ("training.trainers.missing", (), "status 1"),
        ("timeit", ("-n1", "-r1", "import time; time.sleep(1000)"), "longer than 2 s"),
        ("timeit", ("-n1", "-r1", "import training.jobs.events, schema.errors"), ""),
        ("timeit", ("-n1", "-r1", "bytearray(2**30)"), "more memory than its limit of 512 MiB"),
    ):
        bounds = Bounds(memory=512 * MIB, wall=2.0, grace=0.5)
        order, ran = Order("job", tmp_path / "job", module, arguments, bounds=bounds), Ran()
        os.makedirs(order.dataset, exist_ok=True)
        outcome = await LocalEngine(isolate=isolate).run(order, ran.sink)
        assert reason in outcome.reason, (outcome, ran.log)
        assert bool(reason) == bool(outcome.reason), (outcome, ran.log)
        assert _of_job(tmp_path) == []


async def test_the_interpreter(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="cannot be run"):
        await inspected(str(tmp_path / "python"))
    assert json.loads(json.dumps([str(path) for path in (await inspected(sys.executable)).folders]))


def test_users_of_jobs_differ() -> None:
    users = [user_of(f"job {number}") for number in range(1000)]
    assert len(set(users)) > 990
    assert min(users) >= 1_500_000_000


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
    for name in ("sandbox.py", "calls.py"):
        shutil.copy(ROOT / "training" / "engine" / name, engine / name)
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
    assert output.splitlines() == ["65534 ['job']", "False", "False", read_only, read_only, "True"]
    assert (job / "output" / "model").stat().st_uid == ORDINARY_USER
