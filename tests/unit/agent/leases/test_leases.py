"""Leases: files that programs write, calls, and what is wrong with them."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from agent.leases import files, leases
from agent.leases.lease import LONGEST, MAX_BYTES, MAX_NOTE, LeaseContent, encode, parse
from agent.leases.leases import GRACE, MAX_PROBLEMS, Leases
from schema.errors import ErrorKind, MachineError

HOUR = 3600.0


async def run_now(function: Callable[[], Any]) -> Any:
    await trio.lowlevel.checkpoint()
    return function()


class World:
    """Leases in a folder. The clock begins at that of the kernel, because it sets the times of files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now, self.boot = time.time(), 1000.0
        self.leases = Leases(folder, run_now, lambda: self.now, lambda: self.boot)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def lease(self, name: str, seconds: float, note: str = "") -> Path:
        return self.write(name, f"{self.now + seconds:.3f}\n{note}\n")

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.boot += seconds

    async def held(self) -> dict[str, float]:
        """Return the seconds that are left, by name."""
        return {lease.name: round(lease.until - self.now) for lease in await self.leases.current()}

    @property
    def problems(self) -> list[str]:
        return [str(problem).removeprefix(f"{self.folder}/") for problem in self.leases.problems]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_a_file_holds_until_its_end_and_the_end_needs_no_event(world: World) -> None:
    world.lease("flash", 600, "writes the firmware")
    (lease,) = await world.leases.current()
    assert (lease.name, lease.note) == ("flash", "writes the firmware")
    world.wait(599)
    assert await world.held() == {"flash": 1}
    world.wait(2)
    assert await world.held() == {}
    assert world.problems == []


async def test_a_file_that_is_written_again_renews_the_lease(world: World) -> None:
    world.lease("flash", 60)
    assert await world.held() == {"flash": 60}
    world.lease("flash", 120)
    assert await world.held() == {"flash": 120}
    world.lease("other", 30)
    assert await world.held() == {"flash": 120, "other": 30}


async def test_a_file_that_is_written_twice_within_a_tick_of_the_kernel_counts(world: World) -> None:
    path = world.lease("flash", 60)
    status = path.stat()
    before = files.LeaseFile("flash", (status.st_ino, 1, 1, status.st_size), world.now, parse(path.read_bytes()))
    world.leases._entries["flash"] = leases._Entry(before, world.boot + 60)
    after = before._replace(content=LeaseContent(world.now + 90))

    def read(folder: Path) -> files.LeaseFiles:
        return files.LeaseFiles((after,))

    world.leases._run = lambda function: run_now(lambda: read(world.folder))
    assert await world.held() == {"flash": 90}


async def test_a_file_that_is_deleted_ends_the_lease(world: World) -> None:
    world.lease("flash", 60).unlink()
    assert await world.held() == {}


async def test_a_stale_file_is_a_problem_and_does_not_hold(world: World) -> None:
    world.lease("flash", 60)
    await world.held()
    world.wait(60 + GRACE + 1)
    (problem,) = world.problems
    assert problem.startswith("flash: the lease is over, and its file still exists")
    assert "delete the file" in problem
    assert await world.held() == {}


async def test_a_lease_that_is_too_long_counts_for_a_day_and_is_a_problem(world: World) -> None:
    world.lease("flash", 48 * HOUR)
    assert await world.held() == {"flash": LONGEST}
    assert world.problems == [
        "flash: the lease is too long, and counts for 24 hours: write an earlier end, and renew the lease in time"
    ]
    world.wait(LONGEST + 1)
    assert await world.held() == {}


async def test_a_restart_of_the_agent_does_not_prolong_a_lease_that_is_too_long(world: World, tmp_path: Path) -> None:
    world.lease("flash", 48 * HOUR)
    world.wait(23 * HOUR)
    assert await world.held() == {"flash": round(LONGEST - 23 * HOUR)}


@pytest.mark.parametrize("jump", [-2 * 365 * 24 * HOUR, 2 * 365 * 24 * HOUR])
async def test_a_clock_that_is_set_changes_no_lease(world: World, jump: float) -> None:
    world.lease("flash", 600)
    assert await world.held() == {"flash": 600}
    world.now += jump
    world.wait(100)
    assert await world.held() == {"flash": 500}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "it is empty"),
        ("soon\n", "its first line is 'soon'"),
        ("-5", "its first line is '-5'"),
        ("1e9", "its first line is '1e9'"),
        ("nan", "its first line is 'nan'"),
        ("9" * 13, "its first line is"),
        ("\n1764111111", "it is empty"),
        (b"\xff\xfe\x00", "its first line is"),
        ("1764111111\n" + "x" * MAX_BYTES, "its first line is"),
    ],
)
async def test_a_malformed_file_does_not_hold_and_is_a_problem(world: World, content: str | bytes, text: str) -> None:
    world.write("flash", content)
    world.lease("other", 60)
    assert await world.held() == {"other": 60}
    (problem,) = world.problems
    assert problem.startswith(f"flash: is not a lease: {text}")
    assert "write the end of the lease in seconds since 1970" in problem
    assert len(problem) < 250


async def test_files_that_are_not_leases_neither_hold_nor_block(world: World, tmp_path: Path) -> None:
    os.mkfifo(world.folder / "pipe")
    (world.folder / "folder").mkdir()
    pipe = os.open(world.folder / "pipe", os.O_RDWR)
    os.write(pipe, f"{world.now + 60}\n".encode())
    secret = tmp_path.parent / f"{tmp_path.name}-secret"
    secret.write_text(f"{world.now + 60}")
    (world.folder / "link").symlink_to(secret)
    world.lease("with space", 60)
    world.lease(os.fsdecode(b"\xff"), 60)
    world.lease(".hidden", 60)
    world.lease("flash.part", 60)
    assert await world.held() == {}
    os.close(pipe)
    assert [problem.partition(":")[0] for problem in world.problems] == [
        "folder",
        "link",
        "pipe",
        "with space",
        "\ufffd",
    ]


async def test_files_and_problems_are_limited(world: World) -> None:
    for number in range(files.MAX_FILES + 5):
        world.write(f"wrong-{number}", "")
    assert await world.held() == {}
    assert len(world.problems) == MAX_PROBLEMS + 2
    assert f"and {files.MAX_FILES - MAX_PROBLEMS} further leases have problems" in world.problems[-2]
    assert f"more than {files.MAX_FILES} files" in world.problems[-1]


async def test_a_lease_can_be_taken_and_released_by_call(world: World) -> None:
    changes: list[None] = []
    world.leases.on_change = lambda: changes.append(None)
    held = await world.leases.take("flash", 600, "two\nlines " + "x" * 500)
    assert round(held.until - world.now) == 600
    path = world.folder / "flash"
    content = parse(path.read_bytes())
    assert held.until <= content.end <= held.until + 1
    assert (len(content.note), content.note[:9]) == (MAX_NOTE, "two lines")
    assert await world.held() == {"flash": round(content.end - world.now)}
    await world.leases.release("flash")
    assert await world.held() == {}
    assert len(changes) == 2
    with pytest.raises(MachineError, match="there is no lease 'flash'") as raised:
        await world.leases.release("flash")
    assert raised.value.kind is ErrorKind.NOT_FOUND


@pytest.mark.parametrize(
    ("name", "seconds", "text"),
    [
        ("../etc/passwd", 60, "is not a name of a lease"),
        ("", 60, "is not a name of a lease"),
        (".x", 60, "is not a name of a lease"),
        ("x.part", 60, "is not a name of a lease"),
        ("x" * 65, 60, "is not a name of a lease"),
        ("flash", LONGEST + 1, "take it for 1 s to 24 h"),
        ("flash", 0, "take it for 1 s to 24 h"),
        ("flash", float("nan"), "take it for 1 s to 24 h"),
    ],
)
async def test_a_call_with_a_wrong_name_or_time_is_refused(world: World, name: str, seconds: float, text: str) -> None:
    with pytest.raises(MachineError, match=text) as raised:
        await world.leases.take(name, seconds)
    assert raised.value.kind is ErrorKind.INVALID
    assert list(world.folder.iterdir()) == []


async def test_a_call_that_cannot_be_stored_is_refused(world: World) -> None:
    (world.folder / "flash").mkdir()
    with pytest.raises(MachineError, match="flash: Is a directory"):
        await world.leases.take("flash", 60)


async def test_if_the_folder_cannot_be_read_the_leases_from_before_count(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.lease("flash", 60)
    await world.held()

    def fail(folder: Path) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(files, "read", fail)
    assert await world.held() == {"flash": 60}
    assert "programs cannot hold off maintenance: Permission denied" in world.problems[0]


async def test_a_folder_that_is_missing_has_no_leases(tmp_path: Path) -> None:
    world = World(tmp_path / "none")
    assert await world.held() == {}
    assert world.problems == []


def test_the_content_is_a_line_with_the_end_and_one_with_a_note() -> None:
    assert encode(LeaseContent(1764111111.5)) == b"1764111112\n"
    assert encode(LeaseContent(1764111111, "a\nb")) == b"1764111111\na b\n"
    assert parse(b"1764111111.25 \nwrites\x07 it\nmore") == LeaseContent(1764111111.25, "writes it")


def test_the_folder_belongs_to_the_agent_and_only_a_group_may_share_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run" / "leases"
    files.prepare(folder, "no-such-group")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    folder.chmod(0o777)
    files.prepare(folder, "no-such-group")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    if os.geteuid() == 0:
        files.prepare(folder, "daemon")
        status = folder.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o1775, 0)
        assert status.st_gid != 0
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(OSError, match=r"symbolic links|Not a directory"):
        files.prepare(folder)


async def test_changes_of_files_are_noticed_and_a_deleted_folder_is_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "SETTLE", 0.0)
    folder = tmp_path / "leases"
    watched = Leases(folder, run_now)
    changed = trio.Event()

    def notice() -> None:
        nonlocal changed
        changed.set()
        changed = trio.Event()

    watched.on_change = notice
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            await nursery.start(watched.run)
            event = changed
            part = folder / ".flash"
            part.write_text(f"{time.time() + 60}")
            part.rename(folder / "flash")
            await event.wait()
            assert [lease.name for lease in await watched.current()] == ["flash"]
            event = changed
            (folder / "flash").unlink()
            await event.wait()
            assert await watched.current() == []
            folder.rmdir()
            while not folder.exists():
                await changed.wait()
            event = changed
            (folder / "other").write_text(f"{time.time() + 60}")
            while not await watched.current():
                await changed.wait()
            nursery.cancel_scope.cancel()


async def test_a_folder_that_is_replaced_is_a_problem_until_it_can_be_created_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "SETTLE", 0.0)
    monkeypatch.setattr(leases, "RETRY", 0.1)
    folder = tmp_path / "leases"
    watched = Leases(folder, run_now)
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            await nursery.start(watched.run)
            await trio.testing.wait_all_tasks_blocked()
            folder.rename(tmp_path / "elsewhere")
            folder.write_text("")
            while not watched.problems:
                await trio.testing.wait_all_tasks_blocked(0.01)
            assert "programs cannot hold off maintenance" in str(watched.problems[0])
            folder.unlink()
            while watched.problems:
                await trio.testing.wait_all_tasks_blocked(0.01)
            assert folder.is_dir()
            nursery.cancel_scope.cancel()


async def test_a_folder_that_cannot_be_created_is_a_problem_and_does_not_stop_the_agent(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    watched = Leases(tmp_path / "run" / "leases", run_now)
    async with trio.open_nursery() as nursery:
        with trio.fail_after(10):
            await nursery.start(watched.run)
        assert "programs cannot hold off maintenance" in str(watched.problems[0])
        assert await watched.current() == []
        nursery.cancel_scope.cancel()
