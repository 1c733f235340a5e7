"""Copying files to and from a machine: destinations, attributes, refusals, and no half-written files."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from models.shell.receive import _parts
from rpc.api.client import ApiClient
from runtime.server.memory import open_machine
from schema.errors import ErrorKind, MachineError

SHELL = "rdk:service:shell"
WHEN = datetime(2020, 2, 3, 4, 5, 6, tzinfo=UTC)
FILE, DIRECTORY, SEVERAL = 1, 2, 3

Piece = Mapping[str, Any]


def whole(name: str, data: bytes = b"", **more: Any) -> list[Piece]:
    return [{"name": name, "size": len(data), **more}, {"data": data}, {"eof": True}]


def folder(name: str, **more: Any) -> list[Piece]:
    return [{"name": name, "is_dir": True, **more}, {"eof": True}]


@asynccontextmanager
async def shell(home: Path) -> AsyncIterator[ApiClient]:
    """Yield a client of a machine in memory; raise errors without their exception group."""
    try:
        async with open_machine({"services": [{"api": SHELL, "attributes": {"directory": str(home)}}]}) as memory:
            await memory.machine.lifecycle.running.wait()
            yield memory.client()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


async def copy_to(
    home: Path, destination: str, kind: int, pieces: Sequence[Piece], *, preserve: bool = False
) -> list[bool]:
    async with shell(home) as client:
        with trio.fail_after(30):
            stream = client.stream(
                SHELL,
                "builtin",
                "copy_files_to_machine",
                files=pieces,
                source_type=kind,
                destination=destination,
                preserve=preserve,
            )
            return [acknowledged async for acknowledged in stream]


async def copy_from(home: Path, paths: Sequence[str], *, acks: int = 1000, **options: Any) -> list[Mapping[str, Any]]:
    async with shell(home) as client:
        stream = client.stream(SHELL, "builtin", "copy_files_from_machine", paths=paths, acks=[True] * acks, **options)
        with trio.fail_after(30):
            return [item async for item in stream]


def files_of(replies: Sequence[Mapping[str, Any]]) -> dict[str, bytes | None]:
    """Return the content by name; None for a directory."""
    values: dict[str, bytes | None] = {}
    name = ""
    for reply in replies[1:]:
        piece = reply["file_data"]
        if piece["name"]:
            name = piece["name"]
            values[name] = None if piece["is_dir"] else b""
        elif not piece["eof"]:
            values[name] = (values[name] or b"") + piece["data"]
    return values


def tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in sorted(root.rglob("*"))
    }


# ---- to the machine


@pytest.mark.parametrize(
    ("destination", "kind", "pieces", "expected"),
    [
        ("new.txt", FILE, whole("a.txt", b"x"), {"new.txt": b"x"}),
        ("there", FILE, whole("a.txt", b"x"), {"there/a.txt": b"x"}),
        ("there/", FILE, whole("some/where/a.txt", b"x"), {"there/a.txt": b"x"}),
        ("there/old.txt", FILE, whole("a.txt", b"x"), {"there/old.txt": b"x"}),
        ("there", DIRECTORY, folder("d") + whole("d/a", b"1"), {"there/d": None, "there/d/a": b"1"}),
        ("other", DIRECTORY, folder("d") + whole("d/e/a", b"1"), {"other": None, "other/e": None, "other/e/a": b"1"}),
        ("there", SEVERAL, whole("a", b"1") + folder("d"), {"there/a": b"1", "there/d": None}),
        (".", SEVERAL, whole("a", b"1") + whole("there/b", b"2"), {"a": b"1", "there/b": b"2"}),
    ],
)  # fmt: skip
async def test_where_files_go(
    tmp_path: Path, destination: str, kind: int, pieces: Sequence[Piece], expected: Mapping[str, bytes | None]
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "old.txt").write_text("old")
    before = tree(tmp_path)
    acknowledged = await copy_to(tmp_path, destination, kind, pieces)
    assert acknowledged == [True] * sum(bool(piece.get("eof")) for piece in pieces)
    assert tree(tmp_path) == {**before, **expected}


async def test_modes_and_times_are_kept_on_demand(tmp_path: Path) -> None:
    pieces = [
        *folder("d", mode=0o500, mod_time=WHEN),
        *whole("d/run", b"#!", mode=0o4755, mod_time=WHEN),
    ]
    old = os.umask(0o077)
    try:
        await copy_to(tmp_path, "plain", DIRECTORY, pieces)
        await copy_to(tmp_path, "kept", DIRECTORY, pieces, preserve=True)
    finally:
        os.umask(old)
    plain, kept = tmp_path / "plain" / "run", tmp_path / "kept" / "run"
    assert stat.S_IMODE(plain.stat().st_mode) == 0o600
    assert plain.stat().st_mtime > WHEN.timestamp()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o755  # without the set-user-ID bit
    assert kept.stat().st_mtime == WHEN.timestamp()
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o500
    assert kept.parent.stat().st_mtime == WHEN.timestamp()
    kept.parent.chmod(0o700)


@pytest.mark.parametrize("name", ["../a", "/etc/a", "a/../../b", "a//b", "", ".", "a/.", "a\0b"])
async def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with pytest.raises(MachineError, match="is not a name below the destination") as refused:
        await copy_to(home, ".", SEVERAL, whole(name, b"x"))
    assert refused.value.kind is ErrorKind.INVALID
    assert tree(tmp_path) == {"home": None}


@given(st.text(alphabet="a./\\\0~", max_size=12))
def test_no_name_leads_out(name: str) -> None:
    try:
        parts = _parts(name, nested=True)
    except MachineError:
        return
    root = Path("/root/of/all")
    assert Path(os.path.normpath(root.joinpath(*parts))).is_relative_to(root)


async def test_links_below_the_destination_are_not_followed(tmp_path: Path) -> None:
    home, outside = tmp_path / "home", tmp_path / "outside"
    home.mkdir()
    outside.mkdir()
    (home / "link").symlink_to(outside)
    (outside / "file").write_text("old")
    (home / "file").symlink_to(outside / "file")
    with pytest.raises(MachineError, match="cannot be written"):
        await copy_to(home, ".", SEVERAL, whole("link/a", b"x"))
    await copy_to(home, ".", SEVERAL, whole("file", b"new"))
    assert tree(outside) == {"file": b"old"}
    assert not (home / "file").is_symlink()


async def test_a_link_that_is_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    await copy_to(tmp_path, "link", FILE, whole("a", b"new"))
    assert (tmp_path / "real").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("destination", "kind", "message"),
    [
        ("none", SEVERAL, "none is not a directory: use an existing directory for several files"),
        ("none/deep", FILE, "none is not a directory: create it first"),
        ("file", DIRECTORY, "file is a file, not a directory"),
    ],
)
async def test_impossible_destinations(tmp_path: Path, destination: str, kind: int, message: str) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(MachineError, match=message) as refused:
        await copy_to(tmp_path, destination, kind, whole("a", b"x"))
    assert refused.value.kind is ErrorKind.PRECONDITION
    assert tree(tmp_path) == {"file": b"old"}


async def test_a_directory_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(MachineError, match="a cannot be written: a directory of that name exists"):
        await copy_to(tmp_path, ".", SEVERAL, whole("a", b"x"))
    (tmp_path / "f").write_text("old")
    with pytest.raises(MachineError, match="f cannot be written: File exists"):
        await copy_to(tmp_path, ".", SEVERAL, folder("f"))


async def test_a_copy_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    pieces = [{"name": "a"}, {"data": b"x" * 100_000}]
    with pytest.raises(MachineError, match="ended before it was complete"):
        await copy_to(tmp_path, "a", FILE, pieces)
    assert tree(tmp_path) == {"a": b"old"}


async def test_a_call_that_vanishes_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    before = len(os.listdir("/proc/self/fd"))

    async def slowly() -> AsyncIterator[Piece]:
        yield {"name": "a"}
        yield {"data": b"x"}
        scope.cancel()
        await trio.sleep_forever()

    async with shell(tmp_path) as client:
        arguments = {"files": slowly(), "source_type": FILE, "destination": "a"}
        with trio.CancelScope() as scope:
            async for _ in client.stream(SHELL, "builtin", "copy_files_to_machine", **arguments):
                pass
    assert tree(tmp_path) == {"a": b"old"}
    assert len(os.listdir("/proc/self/fd")) <= before


# ---- from the machine


async def test_one_file(tmp_path: Path) -> None:
    data = os.urandom(200_000)
    (tmp_path / "a").write_bytes(data)
    replies = await copy_from(tmp_path, ["a"])
    assert replies[0]["metadata"]["source_type"] == "SINGLE_FILE"
    assert replies[1]["file_data"]["size"] == len(data)
    assert files_of(replies) == {"a": data}
    assert [reply["file_data"]["eof"] for reply in replies[1:]].count(True) == 1
    assert replies[1]["file_data"].get("mode") is None


async def test_a_directory_with_modes_and_times(tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "run").write_text("#!")
    (tmp_path / "d" / "e" / "run").chmod(0o750)
    (tmp_path / "d" / "empty").write_text("")
    os.utime(tmp_path / "d" / "e" / "run", (WHEN.timestamp(),) * 2)
    replies = await copy_from(tmp_path, ["d"], allow_recursion=True, preserve=True)
    assert replies[0]["metadata"]["source_type"] == "SINGLE_DIRECTORY"
    assert files_of(replies) == {"d": None, "d/e": None, "d/e/run": b"#!", "d/empty": b""}
    head = next(r["file_data"] for r in replies[1:] if r["file_data"]["name"] == "d/e/run")
    assert (head["mode"], head["mod_time"]) == (0o750, WHEN)


async def test_several_paths(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    replies = await copy_from(tmp_path, ["a", str(tmp_path / "b")])
    assert replies[0]["metadata"]["source_type"] == "MULTIPLE_FILES"
    assert files_of(replies) == {"a": b"1", "b": b"2"}


async def test_links_and_special_files(tmp_path: Path) -> None:
    d = tmp_path / "d"
    d.mkdir()
    (tmp_path / "outside").write_text("out")
    (d / "file").symlink_to(tmp_path / "outside")
    (d / "circle").symlink_to(d)
    (d / "nowhere").symlink_to(tmp_path / "none")
    os.mkfifo(d / "pipe")
    assert files_of(await copy_from(tmp_path, ["d"], allow_recursion=True)) == {"d": None, "d/file": b"out"}


@pytest.mark.parametrize(
    ("paths", "message", "kind"),
    [
        ([], "the request has no paths", ErrorKind.INVALID),
        (["none"], "none: No such file or directory", ErrorKind.NOT_FOUND),
        (["d"], "d is a directory: allow recursion", ErrorKind.PRECONDITION),
        (["pipe"], "pipe is neither a file nor a directory", ErrorKind.PRECONDITION),
        (["/"], "has no file name to send", ErrorKind.INVALID),
    ],
)
async def test_files_that_cannot_be_sent(tmp_path: Path, paths: Sequence[str], message: str, kind: ErrorKind) -> None:
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MachineError, match=message) as refused:
        await copy_from(tmp_path, paths)
    assert refused.value.kind is kind


async def test_each_file_waits_for_its_acknowledgement(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(name)
    assert files_of(await copy_from(tmp_path, ["a", "b", "c"], acks=1)) == {"a": b"a", "b": b"b"}
