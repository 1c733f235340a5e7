"""Attacks on SQL queries: each layer of their confinement holds by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from cloud.domain.queries import query_process
from cloud.domain.queries.bson import encode
from cloud.domain.queries.query import CopiedData, Material, Sealed
from cloud.domain.queries.query_process import Bounds, QueryProcesses
from cloud.domain.queries.view import COPIES, RECENT, SOURCES, Needs
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.domain.queries.attacks import (
    AGGREGATIONS,
    COSTS,
    FILES,
    QUOTED,
    SECRET,
    SETTINGS,
    STATEMENTS,
    WRITES,
)

pytest.importorskip("_duckdb", reason="SQL needs the extra `data`")

SOURCE: Final = '"1","org","home","m","rover","p","main","sensor","s","Readings","{}","[]"\n'


class Place:
    """Files of the query's organization and of others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = {name: str(folder / file) for name, file in FILES_OF.items()} | {"folder": str(folder)}
        parquet = pytest.importorskip("pyarrow.parquet", reason="files need the extra `data`")
        arrow = pytest.importorskip("pyarrow")
        keys = [("source", 1), ("requested", 2), ("received", 3), ("synced", 4), ("number", 5)]
        for name, text in (("own", "mine"), ("other", SECRET)):
            fields = [arrow.field(key, arrow.int64(), metadata={b"PARQUET:field_id": str(n)}) for key, n in keys]
            fields.append(arrow.field("data", arrow.string(), metadata={b"PARQUET:field_id": "6"}))
            data = [*([1] for _ in keys), [json.dumps({"x": text})]]
            parquet.write_table(arrow.table(data, schema=arrow.schema(fields)), self.names[name])
        Path(self.names["secret"]).write_text(f"a,b\n{SECRET},1\n")
        self.before = sorted(folder.iterdir())

    async def gather(self, folder: Path) -> Material:
        (folder / RECENT).write_text('1\t0\t0\t2\t{"x":"recent"}\n')
        (folder / SOURCES).write_text(SOURCE)
        (folder / COPIES).mkdir()
        numbers = {"source": 1, "requested": 2, "received": 3, "synced": 4, "number": 5, "data": 6}
        return Material(Sealed((), numbers, [(self.names["own"], 1, 0, 0, True)]), self.copy)

    async def copy(self, needs: Needs) -> CopiedData:
        return CopiedData(100)


FILES_OF: Final = {"secret": "secret.csv", "own": "own.parquet", "other": "other.parquet"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "files").mkdir()
    return Place(tmp_path / "files")


async def test_attacks_are_refused(place: Place, tmp_path: Path) -> None:
    every = [text.format(**place.names) for text in (*FILES[::7], *WRITES[::7], *SETTINGS[::7])]  # all: see below
    every += [text.replace("{secret}", place.names["secret"]) for text in STATEMENTS]
    answers = await _asked(QueryProcesses(tmp_path / "scratch"), place, every)
    assert [text[:200] for text, answer in answers.items() if not isinstance(answer, MachineError)] == []
    assert [(text[:200], answer) for text, answer in answers.items() if answer.kind is not ErrorKind.INVALID] == []
    for text, answer in answers.items():
        assert SECRET not in f"{answer} {answer.remedy}", text
        assert str(tmp_path / "scratch") not in str(answer), text
    assert sorted(place.folder.iterdir()) == place.before


async def test_aggregations_do_not_leave_either(place: Place, tmp_path: Path) -> None:
    def encoded(stages: list[dict[str, Any]]) -> tuple[bytes, ...]:
        text = json.dumps(stages)
        for name, path in place.names.items():
            text = text.replace(f"{{{name}}}", path.replace(".", "_"))  # a name has no dot
        return tuple(map(encode, json.loads(text)))

    refused, quoted = [encoded(each) for each in AGGREGATIONS], [encoded(each) for each in QUOTED]
    answers = await _asked(QueryProcesses(tmp_path / "scratch"), place, [*refused, *quoted])
    for stages in refused:
        assert isinstance(answers[stages], MachineError), stages
        assert answers[stages].kind is ErrorKind.INVALID
        assert str(answers[stages]).startswith("stage ")
    for stages in quoted:
        assert not isinstance(answers[stages], MachineError), (stages, answers[stages])
        assert SECRET.encode() not in b"".join(answers[stages].rows)
    assert sorted(place.folder.iterdir()) == place.before


async def test_queries_that_cost_too_much_are_ended(place: Place, tmp_path: Path) -> None:
    bounds = Bounds(cpu=1, wall=5.0, memory=640 << 20, engine=64 << 20, spill=32 << 20)
    answers = await _asked(QueryProcesses(tmp_path / "scratch", bounds), place, [text.format() for text in COSTS])
    assert [text for text, answer in answers.items() if not isinstance(answer, MachineError)] == []
    assert {answer.kind for answer in answers.values()} <= {ErrorKind.EXHAUSTED, ErrorKind.INVALID}
    assert [text for text, answer in answers.items() if not answer.remedy] == []
    assert list((tmp_path / "scratch").iterdir()) == []


async def _asked(queries: QueryProcesses, place: Place, texts: Sequence[Any]) -> dict[Any, Any]:
    """Return rows or the error for each statement."""
    answers: dict[Any, Any] = {}

    async def ask(organization: str, some: Sequence[Any]) -> None:
        for text in some:
            try:
                answers[text] = await queries.execute(organization, text, place.gather)
            except MachineError as error:
                answers[text] = error

    async with queries.opened(), trio.open_nursery() as nursery:
        for part in range(2):
            nursery.start_soon(ask, str(part), texts[part::2])
    assert len(answers) == len(texts)
    return answers


CONFINED: Final = """
import json, os, sys
import _duckdb
from cloud.domain.queries import confinement, query_child
settings, attacks = json.loads(sys.stdin.read())
os.open  # what the checks below use is imported before
import ctypes, resource, signal, socket, subprocess, threading
if settings["kernel"] == "namespace":
    confinement.landlock_version = lambda: 0
if settings["kernel"]:
    limits = {"cpu": 20, "memory": 1 << 30, "written": 1 << 30, "descriptors": 100}
    confinement.confine([path for path, _, _ in settings["files"]], settings["folder"], **limits)
"""

EXECUTED: Final = (
    CONFINED
    + """
database = query_child.opened(_duckdb, settings)
outcomes = []
for text in attacks:
    try:
        query_child.checked(query_child._parsed(database, text))
        check = "passed"
    except query_child.Invalid as error:
        check = "refused"
    try:
        outcomes.append((text, check, repr(database.execute(text).fetchmany(100))))
    except Exception as error:
        outcomes.append((text, check, "refused: " + str(error)))
print(json.dumps(outcomes))
sys.stdout.flush()
os._exit(0)
"""
)
HARMLESS: Final = ("SET VARIABLE", "RESET")
"""Beginnings of statements that change nothing outside of the query."""


@pytest.mark.parametrize("kernel", ["landlock", "namespace", ""])
def test_the_check_of_statements_and_the_settings_of_duckdb_hold_by_themselves(
    place: Place, tmp_path: Path, kernel: str
) -> None:
    """With each means of the kernel, and by DuckDB alone."""
    attacks = [text.format(**place.names) for text in (*FILES, *WRITES, *SETTINGS)]
    outcomes = json.loads(_confined(EXECUTED, place, tmp_path, attacks, kernel=kernel))
    assert [text for text, _, _ in outcomes] == attacks
    assert [text for text, check, _ in outcomes if check != "refused"] == []
    for text, _, outcome in outcomes:
        assert SECRET not in outcome, text
        assert "root:" not in outcome, text
        changes = text.startswith(("SET ", "RESET", "INSTALL", "LOAD", "ATTACH", "COPY", "EXPORT", "IMPORT"))
        assert not changes or text.startswith(HARMLESS) or "refused" in outcome, text
    assert sorted(place.folder.iterdir()) == place.before


WITHOUT_DUCKDB: Final = (
    CONFINED
    + """
libc = ctypes.CDLL(None, use_errno=True)
def system_call(number, *arguments):
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")
attempts = {
    "read": lambda: open(attacks["secret"]).read(),
    "read other": lambda: open(attacks["other"], "rb").read(),
    "list": lambda: os.listdir(attacks["folder"]),
    "list root": lambda: os.listdir("/"),
    "write own": lambda: open(attacks["own"], "ab"),
    "write": lambda: open(attacks["folder"] + "/made", "w"),
    "remove": lambda: os.unlink(attacks["secret"]),
    "link": lambda: os.symlink(attacks["secret"], settings["folder"] + "/link"),
    "hard link": lambda: os.link(attacks["secret"], settings["folder"] + "/link"),
    "rename": lambda: os.rename(attacks["secret"], settings["folder"] + "/moved"),
    "permissions": lambda: os.chmod(attacks["own"], 0o777),
    "environment": lambda: open("/proc/self/environ").read(),
    "memory": lambda: open("/proc/self/mem", "rb"),
    "parent": lambda: open(f"/proc/{os.getppid()}/environ").read(),
    "socket": lambda: socket.socket(),
    "unix": lambda: socket.socket(socket.AF_UNIX),
    "pair": lambda: socket.socketpair(),
    "fork": lambda: os.fork(),
    "execute": lambda: os.execv("/bin/true", ["true"]),
    "run": lambda: subprocess.run(["/bin/true"]),
    "thread": lambda: threading.Thread(target=print).start(),
    "kill": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "pipe": lambda: os.pipe(),
    "memory file": lambda: os.memfd_create("x"),
    "raise limit": lambda: resource.setrlimit(resource.RLIMIT_CPU, (100, 100)),
    "namespace": lambda: system_call(272, 0x10000000),
    "ptrace": lambda: system_call(101, 16, os.getppid(), 0, 0),
    "io_uring": lambda: system_call(425, 1, 0),
    "process_vm_readv": lambda: system_call(310, os.getppid(), 0, 0, 0, 0, 0),
    "user": lambda: os.setuid(1),
    "chroot": lambda: os.chroot(settings["folder"]),
    "mount": lambda: system_call(165, 0, 0, 0, 0, 0),
}
outcomes = {}
for name, attempt in attempts.items():
    try:
        outcomes[name] = repr(attempt())
    except (OSError, RuntimeError, ValueError) as error:
        outcomes[name] = None
open(attacks["own"], "rb").close()
with open(settings["folder"] + "/spill", "w") as file:
    file.write("allowed")
print(json.dumps([outcomes, sorted(os.listdir(settings["folder"]))]))
sys.stdout.flush()
os._exit(0)
"""
)


@pytest.mark.parametrize("kernel", ["landlock", "namespace"])
def test_the_kernel_holds_without_duckdb(place: Place, tmp_path: Path, kernel: str) -> None:
    outcomes, left = json.loads(_confined(WITHOUT_DUCKDB, place, tmp_path, place.names, kernel=kernel))
    seen = {name: outcome for name, outcome in outcomes.items() if outcome is not None}
    if kernel == "namespace":  # a root folder of its own: its names are those on the way to what may be read
        assert seen.pop("list") == "['own.parquet']"
        assert seen.pop("list root") == f"['{place.folder.parts[1]}']"
    assert seen == {}
    assert left == [COPIES, "spill"]
    assert sorted(place.folder.iterdir()) == place.before


def _confined(program: str, place: Place, tmp_path: Path, attacks: object, *, kernel: str) -> str:
    folder = tmp_path / "scratch"
    (folder / COPIES / "x").mkdir(parents=True)
    settings: dict[str, Any] = {"files": [(place.names["own"], 0, 0)], "folder": str(folder), "kernel": kernel}
    settings |= {"engine": 64 << 20, "spill": 32 << 20}
    start = f"import sys; sys.path += [{query_process._ROOT!r}, {query_process._engine()!r}]\n"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + program],
        input=json.dumps([settings, attacks]),
        capture_output=True,
        text=True,
        env={"SECRET": SECRET},
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert os.access(place.names["secret"], os.R_OK)
    return done.stdout
