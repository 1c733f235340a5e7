"""The texts of the units, and the state of a unit."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from agent.configure.forwarding import OWN
from agent.layout import AGENT, SERVER, Layout
from agent.supervise.state import ServerExit, ServerProcess, died
from agent.supervise.systemd import SystemdBackend, parse
from agent.supervise.units import agent_unit, environment_file, files_of, server_environment, server_unit
from schema.agent.reading import read_settings
from schema.errors import MachineError

CREDENTIALS = Path("/etc/machine.json")


def keys(text: str) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            result.setdefault(key, []).append(value)
    return result


def test_the_unit_of_machine_server() -> None:
    unit = keys(server_unit(Layout(), CREDENTIALS))
    assert unit["ExecStart"] == ['/opt/machine/bin/machine-launch machine-server -config "/etc/machine.json"']
    assert (unit["Restart"], unit["RestartSec"]) == (["always"], ["5"])
    assert not {"RestartSteps", "RestartMaxDelaySec"} & unit.keys(), "unknown to systemd before 254"
    assert unit["StartLimitIntervalSec"] == ["0"]
    assert (unit["MemoryMax"], unit["TasksMax"], unit["OOMPolicy"]) == (["80%"], ["4096"], ["continue"])
    assert unit["EnvironmentFile"] == ["-/opt/machine/state/machine-server.env"]
    # Nothing may couple it to the agent, whose end must not end it.
    assert not {"BindsTo", "PartOf", "Requires", "Requisite"} & unit.keys()
    assert "machine-agent" not in "".join(value for values in unit.values() for value in values)


def test_the_unit_of_machine_agent() -> None:
    unit = keys(agent_unit(Layout(), CREDENTIALS, Path("/etc/machine-defaults.json")))
    assert unit["Type"] == ["notify"]
    assert (unit["Restart"], unit["RestartSec"], unit["WatchdogSec"]) == (["always"], ["5"], ["120"])


def test_the_journal_names_the_programs_and_nothing_of_them_is_forwarded() -> None:
    texts = {SERVER: server_unit(Layout(), CREDENTIALS), AGENT: agent_unit(Layout(), CREDENTIALS, CREDENTIALS)}
    for program, text in texts.items():
        assert keys(text)["SyslogIdentifier"] == [program]
        assert program in OWN


def test_paths_are_escaped() -> None:
    text = server_unit(Layout(Path("/opt/my $machine%s")), CREDENTIALS)
    assert 'ExecStart="/opt/my $$machine%%s/bin/machine-launch" machine-server' in text
    with pytest.raises(ValueError, match="cannot be written into a unit"):
        server_unit(Layout(Path("/opt/a'b")), CREDENTIALS)


def test_variables_of_the_settings_cannot_replace_those_of_the_agent() -> None:
    variables = server_environment(Layout(), {"MACHINE_ROOT": "/tmp", "A": "1"})
    assert (variables["MACHINE_ROOT"], variables["A"]) == ("/opt/machine", "1")
    assert variables["VIAM_AGENT_HANDLES_NEEDS_RESTART_CHECKING"] == "true"


def test_the_file_of_the_environment_holds_every_value() -> None:
    values = {"A": "plain", "B": "a \"b\" 'c' \\ $HOME `x` # ;", "C": "line\nbreak", "D": ""}
    words = shlex.split(environment_file(values).replace("\\$", "$").replace("\\`", "`"))
    assert dict(word.split("=", 1) for word in words) == values
    with pytest.raises(ValueError, match="cannot be stored"):
        environment_file({"A=B": "x"})


@given(st.dictionaries(st.text("AZaz_09-= é\n\0", max_size=4), st.text(max_size=20), max_size=3))
def test_every_environment_that_the_settings_accept_can_be_stored(variables: dict[str, str]) -> None:
    settings, problems = read_settings(None, {"advanced_settings": {"viam_server_env": variables}})
    accepted = settings.advanced_settings.viam_server_env
    assert accepted == ({} if problems else variables)
    words = shlex.split(environment_file(accepted).replace("\\$", "$").replace("\\`", "`"))
    assert dict(word.split("=", 1) for word in words) == accepted


def test_a_variable_with_which_no_shell_script_can_run_is_refused() -> None:
    settings, (problem,) = read_settings(None, {"advanced_settings": {"viam_server_env": {"OPTIND": "x"}}})
    assert settings.advanced_settings.viam_server_env == {}
    assert problem.path == "agent.advanced_settings.viam_server_env"
    assert "not OPTIND" in problem.remedy + problem.reason


@pytest.mark.parametrize(("status", "memory", "reason"), [
    (0, False, "exit code 0"), (-9, False, "killed by SIGKILL"), (-9, True, "killed by SIGKILL (out of memory)"),
    (-99, False, "killed by signal 99")])  # fmt: skip
def test_reasons(status: int, memory: bool, reason: str) -> None:
    assert died(status, out_of_memory=memory) == reason


def shown(pid: int, last: int, began: int, ended: int = 0, code: int = 0, status: int = 0, result: str = "success",
          state: str = "active") -> str:  # fmt: skip
    return (
        f"ActiveState={state}\nMainPID={pid}\nExecMainPID={last}\nExecMainStartTimestampMonotonic={began}000000\n"
        f"ExecMainExitTimestampMonotonic={ended}000000\nExecMainCode={code}\nExecMainStatus={status}\nResult={result}\n"
    )


@pytest.mark.parametrize(("code", "status", "result", "reason"), [
    (1, 3, "exit-code", "exit code 3"), (2, 11, "signal", "killed by SIGSEGV"),
    (2, 9, "oom-kill", "killed by SIGKILL (out of memory)"), (2, 9, "timeout", "killed by SIGKILL (timeout)"),
])  # fmt: skip
def test_the_end_of_a_unit(code: int, status: int, result: str, reason: str) -> None:
    unit = parse(shown(0, 7, 5, 8, code, status, result, "activating"))
    assert (unit.pid, unit.last_pid, unit.began, unit.ended, unit.reason) == (0, 7, 5.0, 8.0, reason)
    assert parse("").pid == 0


class Control:
    """systemctl, with the states that it shows one after the other."""

    def __init__(self, *states: str) -> None:
        self.states = list(states)
        self.calls: list[tuple[str, ...]] = []

    async def __call__(self, *arguments: str, limit: float = 0.0) -> str:
        self.calls.append(arguments)
        if arguments[0] != "show":
            return ""
        if (state := self.states.pop(0)) == "fails":
            raise MachineError("systemctl fails")
        return state


async def run_now(function: Callable[[], Any]) -> Any:
    return function()


async def observed(tmp_path: Path, *states: str) -> list[ServerProcess | ServerExit]:
    """Return what is reported while the unit goes through the states."""
    control = Control(*states)
    backend = SystemdBackend(files_of(Layout(tmp_path, tmp_path)), tmp_path / "unit.d/pause.conf", run_now, control)
    events: list[ServerProcess | ServerExit] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(backend.run, events.append, events.append)
        while control.states:
            backend._notice()
            await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    return events


async def test_a_running_unit_is_adopted_and_its_ends_are_reported(tmp_path: Path) -> None:
    # Process ids that do not exist: their environment cannot be read.
    first, second = 2**22 + 1, 2**22 + 2
    events = await observed(
        tmp_path,
        shown(first, first, 5),
        shown(first, first, 5),
        "fails",
        shown(0, first, 5, 9, 1, 3, "exit-code", "activating"),
        shown(second, second, 14),
        shown(0, second, 14, 20, 2, 9, "oom-kill", "failed"),
    )
    assert [type(event) for event in events] == [ServerProcess, ServerExit, ServerProcess, ServerExit]
    assert events[0].pid == first  # type: ignore[union-attr]
    assert events[1].reason == "exit code 3"  # type: ignore[union-attr]
    assert events[1].ran == 4.0  # type: ignore[union-attr]
    assert events[3].reason == "killed by SIGKILL (out of memory)"  # type: ignore[union-attr]


async def test_an_end_that_was_missed_is_reported_without_its_reason(tmp_path: Path) -> None:
    first, second = 2**22 + 1, 2**22 + 2
    events = await observed(tmp_path, shown(first, first, 5), shown(second, second, 14))
    assert [type(event) for event in events] == [ServerProcess, ServerExit, ServerProcess]
    assert "could not be observed" in events[1].reason  # type: ignore[union-attr]


async def test_a_process_that_was_never_seen_running_is_reported_as_ended(tmp_path: Path) -> None:
    first, second, third = 2**22 + 1, 2**22 + 2, 2**22 + 3
    events = await observed(
        tmp_path,
        shown(0, first, 5, 6, 1, 3, "exit-code", "activating"),  # before the agent
        shown(0, first, 5, 6, 1, 3, "exit-code", "activating"),
        shown(0, second, 11, 12, 1, 4, "exit-code", "activating"),
        shown(0, second, 11, 12, 1, 4, "exit-code", "activating"),
        shown(0, third, 17, 18, 1, 0, "success", "inactive"),  # stopped on request
    )
    assert [(type(event), event.reason, event.ran) for event in events if isinstance(event, ServerExit)] == [
        (ServerExit, "exit code 4", 1.0)
    ]
    assert len(events) == 1


async def test_secrets_are_readable_only_by_root_and_flags_appear(tmp_path: Path) -> None:
    files = files_of(Layout(tmp_path, tmp_path))
    backend = SystemdBackend(files, tmp_path / "pause.conf", run_now, Control())
    await backend.configure({"TOKEN": "secret"}, disabled=True)
    assert files.environment.stat().st_mode & 0o777 == 0o600
    assert files.environment.read_text() == 'TOKEN="secret"\n'
    assert files.disabled.exists()
    await backend.configure({}, disabled=False)
    assert not files.disabled.exists()
    await backend.wait_at_boot(True)
    await backend.allow()
    assert files.waits.exists()
    assert files.allowed.exists()
