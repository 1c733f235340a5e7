"""The real launcher with the shells that devices have: what it starts, and that it never loops."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.launch.links import install_launcher, point, read
from agent.layout import AGENT, SERVER, Layout

A, B, C = "a" * 64, "b" * 64, "c" * 64
SHELLS = {"dash": ["dash"], "busybox": ["busybox", "sh"]}
SAY = '#!/bin/sh\necho "${MACHINE_RELEASE%%${MACHINE_RELEASE#?}} ${MACHINE_LAUNCH_FELL_BACK-} $*"\n'
LIMIT = 20.0
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # of the launcher
HOSTILE = {
    "IFS": "1/ \t", "ENV": "{folder}/env", "BASH_ENV": "{folder}/env", "PS4": "$(touch {folder}/ran)",
    "CDPATH": "/tmp", "PWD": "/nonexistent", "OLDPWD": "/", "HOME": "", "LC_ALL": "xx", "LINENO": "x", "PPID": "x",
    "LD_PRELOAD": "/nonexistent.so", "LD_LIBRARY_PATH": "/nonexistent", "PYTHONHOME": "/nonexistent",
    "PYTHONPATH": "{folder}", "POSIXLY_CORRECT": "1", "program": "x", "launch": "/x", "folder": "/x", "name": "back",
    "after": "run", "starts": "9", "link": "/x", "factory": "/x",
}  # fmt: skip
"""Variables that `viam_server_env` may contain, and that would change what a careless script does."""
CHANGED = {"IFS", "LINENO", "PPID", "PWD"}
"""Those that shells set themselves."""


@pytest.fixture(params=[name for name, command in SHELLS.items() if shutil.which(command[0])])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """Return the command of the shell, whose tools are those of busybox with busybox."""
    command = SHELLS[request.param]
    if command[0] == "busybox":
        (tmp_path / "bin").mkdir()
        for tool in ("sync", "mv", "sh", "sleep"):
            (tmp_path / "bin" / tool).symlink_to(str(shutil.which("busybox")))
    return command


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "opt with space", tmp_path / "run")
    for sha256 in (A, B, C):
        stage(layout, sha256)
    install_launcher(layout)
    tools = tmp_path / "bin"
    if tools.exists():
        layout.launcher.write_text(layout.launcher.read_text().replace(SYSTEM_PATH, str(tools)))
    return layout


def stage(layout: Layout, sha256: str, program: bytes | str = SAY) -> None:
    folder = layout.release(SERVER, sha256)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run").unlink(missing_ok=True)
    (folder / "run").write_bytes(program if isinstance(program, bytes) else program.encode())
    (folder / "run").chmod(0o755)


def launch(shell: list[str], layout: Layout, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    tools = layout.root.parent / "bin"
    return subprocess.run(
        [*shell, str(layout.launcher), *arguments],
        env={"PATH": f"{tools}:{os.environ['PATH']}" if tools.exists() else os.environ["PATH"],
             "MACHINE_ROOT": str(layout.root), **environment},
        capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip


def started(shell: list[str], layout: Layout) -> str:
    """Start machine-server once; return the first letter of the release, and `1` if the launcher fell back."""
    return launch(shell, layout, SERVER).stdout.strip()


def test_the_launcher_becomes_the_program_with_all_arguments(shell: list[str], layout: Layout) -> None:
    stage(layout, A, '#!/bin/sh\nprintf "%s|" "$$" "$MACHINE_RELEASE" "$0" "$@"\n')
    point(layout, SERVER, run=A, back=None, trial=False)
    command = [*shell, str(layout.launcher), SERVER, "-config", "/a b", "*", ""]
    environment = {**os.environ, "MACHINE_ROOT": str(layout.root)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        output = process.communicate(timeout=LIMIT)[0]
    # The path is that of the release, not of the link: the program keeps its files when the link changes.
    path = layout.release(SERVER, A).resolve() / "run"
    assert output == f"{process.pid}|{A}|{path}|-config|/a b|*||"


def test_a_trial_has_three_starts_before_the_rollback(shell: list[str], layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    assert [started(shell, layout) for _ in range(5)] == ["b", "b", "b", "a 1", "a 1"]
    assert read(layout, SERVER).starts == 4
    assert read(layout, SERVER).fell_back


def test_the_count_is_stored_before_the_program_runs(shell: list[str], layout: Layout) -> None:
    stage(layout, B, '#!/bin/sh\nread starts <"${0%/releases/*}/launch/machine-server/trial"; echo "$starts"\n')
    point(layout, SERVER, run=B, back=A, trial=True)
    assert [started(shell, layout) for _ in range(3)] == ["1", "2", "3"]


@pytest.mark.parametrize("text", ["", "x", "10", "-1", "08", " 1", "3", "4"])
def test_a_count_of_three_or_more_rolls_back(shell: list[str], layout: Layout, text: str) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    (layout.launch(SERVER) / "trial").write_text(text)
    assert started(shell, layout) == "a 1"


def test_a_start_that_cannot_be_counted_rolls_back(shell: list[str], layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    (layout.launch(SERVER) / "trial.part").mkdir()
    assert started(shell, layout) == "a 1"


BREAK: dict[str, Callable[[Layout], object]] = {
    "no link": lambda layout: (layout.launch(SERVER) / "run").unlink(),
    "dangling link": lambda layout: shutil.rmtree(layout.release(SERVER, B)),
    "no program": lambda layout: (layout.release(SERVER, B) / "run").unlink(),
    "a folder as program": lambda layout: (
        (layout.release(SERVER, B) / "run").unlink(), (layout.release(SERVER, B) / "run").mkdir()),
    "not executable": lambda layout: (layout.release(SERVER, B) / "run").chmod(0o644),
    "empty": lambda layout: stage(layout, B, b""),
    "interpreter is missing": lambda layout: stage(layout, B, "#!/nonexistent/python\n"),
}  # fmt: skip


@pytest.mark.parametrize("damage", BREAK)
@pytest.mark.parametrize("trial", [False, True])
def test_a_release_that_cannot_be_executed_rolls_back(
    shell: list[str], layout: Layout, damage: str, trial: bool
) -> None:
    point(layout, SERVER, run=B, back=A, trial=trial)
    BREAK[damage](layout)
    done = launch(shell, layout, SERVER, "x", "y z")
    assert done.stdout.strip() == "a 1 x y z", done.stderr
    assert str(layout.launch(SERVER) / "back") in done.stderr
    assert read(layout, SERVER).fell_back is trial


def test_a_program_for_another_processor_rolls_back(layout: Layout) -> None:
    """busybox takes such a file for a shell script; releases are checked for their platform before they are linked."""
    stage(layout, B, b"\x7fELF\2\1\1\0" + bytes(100))
    point(layout, SERVER, run=B, back=A, trial=True)
    assert started(["dash"], layout) == "a 1"


def test_the_factory_release_is_the_last_resort(shell: list[str], layout: Layout) -> None:
    (layout.releases(SERVER) / "factory").symlink_to(C)
    for sha256 in (A, B):
        stage(layout, sha256, "#!/nonexistent\n")
    point(layout, SERVER, run=B, back=A, trial=False)
    assert started(shell, layout) == "c 1"
    stage(layout, C, "#!/nonexistent\n")
    done = launch(shell, layout, SERVER)
    assert (done.returncode, done.stdout) == (78, "")
    assert "nothing to start: install machine-server again" in done.stderr


def test_variables_of_the_launcher_are_not_passed_on(shell: list[str], layout: Layout) -> None:
    point(layout, SERVER, run=A, back=None, trial=False)
    done = launch(shell, layout, SERVER, MACHINE_LAUNCH_FELL_BACK="1", MACHINE_RELEASE=B)
    assert done.stdout.split() == ["a"]


@pytest.mark.parametrize("path", ["", "/nonexistent", "{folder}", None])
def test_variables_of_the_settings_change_nothing_and_reach_the_program(
    shell: list[str], layout: Layout, tmp_path: Path, path: str | None
) -> None:
    for tool in ("sync", "mv", "sh", "printf", "env"):
        (tmp_path / tool).write_text(f"#!/bin/sh\n: >{tmp_path}/ran\nexit 1\n")
        (tmp_path / tool).chmod(0o755)
    (tmp_path / "env").write_text(f": >{tmp_path}/ran\nexit 1\n")
    program = f"#!{sys.executable} -ISs\nimport json, os\nprint(json.dumps(dict(os.environ)))\n"
    for sha256 in (A, B):
        stage(layout, sha256, program)
    point(layout, SERVER, run=B, back=A, trial=True)
    variables = {name: value.format(folder=tmp_path) for name, value in HOSTILE.items()}
    variables["PATH"] = (path or "").format(folder=tmp_path)
    if path is None:
        del variables["PATH"]
    command = [str(shutil.which(shell[0])), *shell[1:], str(layout.launcher), SERVER]
    for release, fell_back in ((B, None), (B, None), (B, None), (A, "1")):
        done = subprocess.run(
            command, env={**variables, "MACHINE_ROOT": str(layout.root)}, capture_output=True, text=True,
            timeout=LIMIT, check=False,
        )  # fmt: skip
        seen = json.loads(done.stdout)
        assert (seen["MACHINE_RELEASE"], seen.get("MACHINE_LAUNCH_FELL_BACK")) == (release, fell_back), done.stderr
        assert {name: seen.get(name) for name in variables.keys() - CHANGED} == {
            name: value for name, value in variables.items() if name not in CHANGED
        }
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("arguments", [(), ("",), ("../x",), ("-v",), (".",)])
def test_usage_errors(shell: list[str], layout: Layout, arguments: tuple[str, ...]) -> None:
    done = launch(shell, layout, *arguments)
    assert done.returncode == 64
    assert "usage: machine-launch PROGRAM" in done.stderr


def test_programs_do_not_share_their_trials(shell: list[str], layout: Layout) -> None:
    point(layout, SERVER, run=B, back=A, trial=True)
    assert launch(shell, layout, AGENT).returncode == 78
    assert read(layout, SERVER).starts == 0


class PowerCut(BaseException):
    """The power fails."""


CHANGES = {
    "switch": ((A, C, "none"), (B, A, True)),
    "switch repeated": ((B, A, "1"), (B, A, True)),
    "confirm": ((B, A, "1"), (B, A, False)),
    "roll back": ((B, A, "2"), (A, C, False)),
    "roll back after the launcher did": ((B, A, "4"), (A, None, False)),
    "roll back to an older release": ((B, A, "4"), (C, None, False)),
    "replace": ((A, C, "none"), (C, None, False)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_power_cut_between_any_two_operations(layout: Layout, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = CHANGES[change]
    operations = 0
    while True:  # stop before the first operation, then before the second one, and so on
        run, back, trial = before
        shutil.rmtree(layout.launch(SERVER), ignore_errors=True)
        point(layout, SERVER, run=run, back=back, trial=trial != "none")
        if trial != "none":
            (layout.launch(SERVER) / "trial").write_text(trial)
        finished = interrupted(layout, after, operations, monkeypatch)
        state = read(layout, SERVER)
        first = started(["dash"], layout).partition(" ")[0] * 64
        # A release of the state before or after is started, and a release on trial never without a count.
        assert first in {run, back, after[0], after[1]} - {None}, (operations, state)
        if first == B and "confirm" not in change:
            assert read(layout, SERVER).starts == state.starts + 1, (operations, state)
        point(layout, SERVER, run=after[0], back=after[1], trial=after[2])
        assert read(layout, SERVER)[:3] == after, operations
        if finished:
            break
        operations += 1
    assert operations >= 3


def interrupted(
    layout: Layout, after: tuple[str, str | None, bool], operations: int, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Change the links until the power fails after so many system calls; return whether the change was complete."""
    left = operations
    with monkeypatch.context() as patch:

        def counted(name: str) -> None:
            real = getattr(os, name)

            def call(*arguments: object, **options: object) -> object:
                nonlocal left
                if left == 0:
                    raise PowerCut
                left -= 1
                return real(*arguments, **options)

            patch.setattr(os, name, call)

        for name in ("symlink", "replace", "unlink", "open", "fsync", "fchmod"):
            counted(name)
        try:
            point(layout, SERVER, run=after[0], back=after[1], trial=after[2])
        except PowerCut:
            return False
        return True


HANGS = "#!/bin/sh\necho $$ ${MACHINE_RELEASE%%${MACHINE_RELEASE#?}}\nexec sleep 60\n"
"""A release that does nothing, as an agent whose update hangs while its watchdog is fed."""


def shorten_trial(layout: Layout, seconds: str) -> None:
    layout.launcher.write_text(layout.launcher.read_text().replace("_trial_seconds=2400", f"_trial_seconds={seconds}"))


def stage_agents(layout: Layout, *, program: str) -> None:
    for sha256 in (A, B):
        layout.release(AGENT, sha256).mkdir(parents=True)
        (layout.release(AGENT, sha256) / "run").write_text(program)
        (layout.release(AGENT, sha256) / "run").chmod(0o755)


def start_agent(shell: list[str], layout: Layout) -> subprocess.Popen[str]:
    tools = layout.root.parent / "bin"
    path = f"{tools}:{os.environ['PATH']}" if tools.exists() else os.environ["PATH"]
    return subprocess.Popen(
        [*shell, str(layout.launcher), AGENT],
        env={"PATH": path, "MACHINE_ROOT": str(layout.root)},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def test_an_agent_that_does_not_end_its_trial_is_killed_and_replaced(shell: list[str], layout: Layout) -> None:
    stage_agents(layout, program=HANGS)
    point(layout, AGENT, run=B, back=A, trial=True)
    shorten_trial(layout, "0.5")
    with start_agent(shell, layout) as process:
        assert process.wait(LIMIT) == -9
        assert process.stderr is not None
        assert "was not confirmed within 0.5 seconds" in process.stderr.read()
    assert read(layout, AGENT).fell_back
    with start_agent(shell, layout) as second:
        assert second.stdout is not None
        assert second.stdout.readline().split()[1] == "a"
        second.kill()


def test_a_confirmed_agent_and_one_that_is_not_on_trial_run_on(shell: list[str], layout: Layout) -> None:
    stage_agents(layout, program=HANGS)
    shorten_trial(layout, "1")
    point(layout, AGENT, run=B, back=A, trial=True)
    with start_agent(shell, layout) as process:
        assert process.stdout is not None
        process.stdout.readline()
        point(layout, AGENT, run=B, back=A, trial=False)  # confirmed
        judge = [pid for pid in processes_of(process.pid) if pid != process.pid]
        assert judge
        for pid in judge:
            wait_for_end(pid)
        assert process.poll() is None
        assert not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()  # no zombie
        process.kill()
    with start_agent(shell, layout) as later:
        assert later.stdout is not None
        later.stdout.readline()
        assert processes_of(later.pid) == [later.pid]
        later.kill()


def processes_of(session: int) -> list[int]:
    """Return the processes of a session that have not ended."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            processes.append(int(path.parent.name))
    return sorted(processes)


def wait_for_end(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([descriptor], [], [], LIMIT)
    os.close(descriptor)
