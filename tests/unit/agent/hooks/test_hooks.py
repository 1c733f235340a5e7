"""Hooks as processes: what they get, how they end, and which files are refused."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
import trio

from agent.hooks import moments, run
from agent.hooks.moments import LIMITS, MAX_TEXT, HookAnswer, HookedChange, HookMoment, environment
from agent.hooks.run import MAX_LINES, WAITING, HookRunner
from support.files.watched import follow_files

CHANGE = HookedChange("machine-server", "1.0.0", "1.1.0")
MOMENT = HookMoment.BEFORE_SWITCH


async def run_now(function: Callable[[], Any]) -> Any:
    await trio.lowlevel.checkpoint()
    return function()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "hooks"
    path.mkdir()
    return path


def write(folder: Path, moment: HookMoment, script: str, mode: int = 0o755) -> Path:
    path = folder / moment.value
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(mode)
    return path


async def before(folder: Path, moment: HookMoment = MOMENT) -> HookAnswer:
    with trio.fail_after(30):
        return await HookRunner(folder, run_now).before(moment, CHANGE)


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if its status was not read yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


async def appears(path: Path) -> None:
    """Wait until a file exists."""
    exists = trio.Event()
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow_files, [path], lambda: path.exists() and exists.set(), lambda *_: None)
            await exists.wait()
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[HookRunner]:
    async with trio.open_nursery() as nursery:
        hooks = HookRunner(folder, run_now)
        await nursery.start(hooks.run)
        yield hooks
        nursery.cancel_scope.cancel()


async def test_without_a_hook_nothing_refuses(folder: Path) -> None:
    assert await before(folder) == HookAnswer(False)
    assert await before(folder / "missing") == HookAnswer(False)


async def test_a_hook_that_succeeds_does_not_refuse(folder: Path) -> None:
    write(folder, MOMENT, "echo fine")
    assert await before(folder) == HookAnswer(True)


async def test_exit_code_and_last_line_are_the_reason(folder: Path) -> None:
    write(folder, MOMENT, "echo first; echo 'the arm holds\ta load' >&2; echo; exit 3")
    assert await before(folder) == HookAnswer(
        True, "the hook before-switch ended with exit code 3: the arm holds a load"
    )
    write(folder, MOMENT, "kill -9 $$")
    assert (await before(folder)).refusal == "the hook before-switch was ended by signal 9"
    write(folder, MOMENT, "printf 'no line feed'; exit 1")
    assert (await before(folder)).refusal.endswith("exit code 1: no line feed")


async def test_the_environment_is_minimal_and_no_descriptor_is_open(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MACHINE_SECRET", "secret")
    with (folder / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        write(folder, MOMENT, f"/usr/bin/env >{folder}/env; ls -l /proc/$$/fd >{folder}/fds; pwd >{folder}/cwd; cat")
        assert await before(folder) == HookAnswer(True)
    variables = dict(line.split("=", 1) for line in (folder / "env").read_text().splitlines())
    for name in ("PWD", "_", "OLDPWD", "SHLVL"):  # of the shell
        variables.pop(name, None)
    assert variables == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "MACHINE_HOOK": "before-switch",
        "MACHINE_PROGRAM": "machine-server",
        "MACHINE_VERSION_FROM": "1.0.0",
        "MACHINE_VERSION_TO": "1.1.0",
        "MACHINE_TIME_LIMIT": "300",
    }
    assert str(folder / "open") not in (folder / "fds").read_text()
    assert (folder / "cwd").read_text() == "/\n"


def test_result_and_reason_are_given_after_and_bounded() -> None:
    variables = environment(HookMoment.AFTER_UPDATE, CHANGE, "rolled_back", "no\0 " + "x" * 1000)
    assert (variables["MACHINE_RESULT"], len(variables["MACHINE_REASON"])) == ("rolled_back", 500)
    assert "\0" not in variables["MACHINE_REASON"]


async def test_a_hook_that_takes_too_long_is_killed_with_what_it_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moments, "LIMITS", {**LIMITS, MOMENT: 0.5})
    monkeypatch.setattr(run, "LIMITS", moments.LIMITS)
    monkeypatch.setattr(run, "GRACE", 0.2)
    write(
        folder,
        MOMENT,
        f"trap '' TERM\n(trap '' TERM; sleep 60; echo late >{folder}/late) &\necho $! >{folder}/pid; wait",
    )
    begun = time.monotonic()
    assert await before(folder) == HookAnswer(True, "the hook before-switch did not end within 0.5 s")
    assert time.monotonic() - begun < 10
    assert has_ended(int((folder / "pid").read_text()))


async def test_processes_that_a_hook_starts_end_with_it(folder: Path) -> None:
    write(folder, MOMENT, f"sleep 60 & echo $! >{folder}/pid; echo done; exit 4")
    begun = time.monotonic()
    assert (await before(folder)).refusal.endswith("exit code 4: done")
    assert time.monotonic() - begun < 10
    assert has_ended(int((folder / "pid").read_text()))


async def test_the_output_is_bounded(folder: Path) -> None:
    write(folder, MOMENT, f"yes | head -n {MAX_LINES + 50}; head -c 9000000 /dev/zero | tr '\\0' x; echo; exit 1")
    with structlog.testing.capture_logs() as entries:
        answer = await before(folder)
    assert answer.refusal.endswith("x" * MAX_TEXT)
    lines = [entry["line"] for entry in entries if entry["event"] == "a hook writes"]
    assert len(lines) == MAX_LINES
    assert max(map(len, lines)) <= MAX_TEXT
    assert entries[-1]["event"] == "further lines of a hook are not logged"


async def test_a_file_that_cannot_be_executed_refuses(folder: Path) -> None:
    (path := folder / MOMENT.value).write_bytes(b"\x7fnonsense")
    path.chmod(0o755)
    assert (await before(folder)).refusal == "the hook before-switch cannot be run: Exec format error"


async def refused(folder: Path, text: str) -> None:
    """Check that the hook does not run, and that its refusal and its problem say why."""
    answer = await before(folder)
    assert answer.refusal.startswith("the hook before-switch is not run: ")
    assert text in answer.refusal
    assert not (folder / "ran").exists()
    async with running(folder) as hooks:
        assert [text in str(problem) for problem in hooks.problems] == [True]


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
async def test_a_hook_that_others_can_change_is_refused(folder: Path, mode: int) -> None:
    path = write(folder, MOMENT, f"echo >{folder}/ran", mode)
    await refused(
        folder, f"{path}: can be changed by other users, who could then change what the agent runs: run `chmod"
    )


@pytest.mark.parametrize("levels", [0, 1])
async def test_a_hook_in_a_folder_that_others_can_change_is_refused(folder: Path, levels: int) -> None:
    write(folder, MOMENT, f"echo >{folder}/ran")
    parent = (folder, *folder.parents)[levels]
    parent.chmod(0o775)
    await refused(folder, f"{parent}: can be changed by other users")
    parent.chmod(0o755 | stat.S_ISVTX | 0o022)  # as /tmp: users cannot replace the files of others there
    assert await before(folder) == HookAnswer(True)


async def test_a_hook_that_is_not_executable_is_refused(folder: Path) -> None:
    write(folder, MOMENT, f"echo >{folder}/ran", 0o644)
    await refused(folder, "is not executable: run `chmod +x")


async def test_a_link_is_refused(folder: Path) -> None:
    program = folder / "program.sh"
    write(folder, MOMENT, f"echo >{folder}/ran").rename(program)
    (folder / MOMENT.value).symlink_to(program)
    await refused(folder, "is a link, and hooks are not run through links")


@pytest.mark.skipif(os.geteuid() != 0, reason="changing the owner needs root")
@pytest.mark.parametrize("levels", [0, 1, 2])
async def test_a_hook_of_another_user_is_refused(folder: Path, levels: int) -> None:
    path = write(folder, MOMENT, f"echo >{folder}/ran")
    part = (path, *path.parents)[levels]
    os.chown(part, 1234, 0)
    await refused(folder, f"{part}: belongs to user 1234")


async def test_a_folder_with_the_name_of_a_hook_is_refused(folder: Path) -> None:
    (folder / MOMENT.value).mkdir()
    await refused(folder, "is not a file")


async def test_unknown_names_are_problems_and_disabled_hooks_are_not(folder: Path) -> None:
    for name in ("before-swich", "before-switch.off", "before-switch~", "README.md", ".hidden"):
        (folder / name).write_text("")
    async with running(folder) as hooks:
        assert [str(problem) for problem in hooks.problems] == [
            f"{folder}/before-swich: is not a hook: did you mean 'before-switch'?"
        ]


async def test_hooks_after_something_run_in_order_and_a_failure_is_only_logged(folder: Path) -> None:
    write(folder, HookMoment.AFTER_SWITCH, f"sleep 0.2; echo $MACHINE_HOOK >>{folder}/log.txt; exit 1")
    write(
        folder,
        HookMoment.AFTER_UPDATE,
        f"echo $MACHINE_HOOK $MACHINE_RESULT >>{folder}/log.txt; mv {folder}/log.txt {folder}/end.txt",
    )
    async with running(folder) as hooks:
        hooks.after(HookMoment.AFTER_SWITCH, CHANGE)
        hooks.after(HookMoment.AFTER_ROLLBACK, CHANGE)  # there is none
        hooks.after(HookMoment.AFTER_UPDATE, CHANGE, "updated")
        await appears(folder / "end.txt")
    assert (folder / "end.txt").read_text() == "after-switch\nafter-update updated\n"


async def test_hooks_after_something_never_wait(folder: Path) -> None:
    hooks = HookRunner(folder, run_now)
    with structlog.testing.capture_logs() as entries:
        for _ in range(WAITING + 1):
            hooks.after(HookMoment.AFTER_UPDATE, CHANGE, "updated")
    assert [entry["event"] for entry in entries] == ["a hook is not run, because too many wait"]


async def test_changes_of_files_are_noticed_even_of_a_folder_that_does_not_exist_yet(tmp_path: Path) -> None:
    folder = tmp_path / "etc" / "hooks"
    async with running(folder) as hooks:
        await trio.testing.wait_all_tasks_blocked()
        before, changed = hooks.revision, hooks.changed()
        folder.mkdir(parents=True)
        write(folder, MOMENT, "true", 0o600)
        with trio.fail_after(30):
            await changed()
            while not hooks.problems:
                with trio.move_on_after(0.05):  # the check follows the change
                    await hooks.changed()()
        assert hooks.revision > before


async def test_a_cancelled_hook_is_ended(folder: Path) -> None:
    write(folder, MOMENT, f"echo $$ >{folder}/pid.tmp; mv {folder}/pid.tmp {folder}/pid; sleep 60")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(before, folder)
        await appears(folder / "pid")
        nursery.cancel_scope.cancel()
    assert has_ended(int((folder / "pid").read_text()))
