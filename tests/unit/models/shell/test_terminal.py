"""Shells through the complete call path: terminals, commands, window sizes, and no process outlives its call."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from engine.planning.reconfigure import plan
from engine.registry import Registry
from models import BUILTIN
from models.shell.request import DEFAULT_SIZE, ShellRequest, read_request, read_size
from models.shell.terminal import SILENCE_LIMIT, TRAILING_OUTPUT_LIMIT, on_pipes
from rpc.api.client import ApiClient
from runtime.server.memory import open_machine
from schema.document.machine import decode_document
from schema.errors import ErrorKind, MachineError

SHELL = "rdk:service:shell"


@asynccontextmanager
async def shell(folder: Path, **attributes: Any) -> AsyncIterator[ApiClient]:
    entry = {"api": SHELL, "attributes": {"program": "/bin/bash", "directory": str(folder), **attributes}}
    try:
        with trio.fail_after(30):
            async with open_machine({"services": [entry]}) as memory:
                await memory.machine.lifecycle.running.wait()
                yield memory.client()
    except ExceptionGroup as group:
        raise group.exceptions[0] from None


class Typed:
    """Items that a person types, in the order of typing."""

    def __init__(self, *items: object) -> None:
        self.send, self.receive = trio.open_memory_channel[object](100)
        for item in items:
            self.send.send_nowait(item)

    def end(self) -> Typed:
        self.send.close()
        return self


async def until(stream: AsyncIterator[Mapping[str, Any]], text: str) -> str:
    """Read the output up to and including `text`."""
    said = ""
    while text not in said:
        said += (await anext(stream))["data_out"]
    return said


async def run(client: ApiClient, extra: Mapping[str, Any] | None, typed: Typed) -> Sequence[Mapping[str, Any]]:
    return [item async for item in client.stream(SHELL, "builtin", "shell", data_in=typed.receive, extra=extra)]


def out(replies: Sequence[Mapping[str, Any]], key: str = "data_out") -> str:
    return "".join(reply[key] for reply in replies)


LONG = f"sleep 1000{os.getpid()}"
"""A command line that identifies its processes anywhere: what a shell leaves behind loses its parent."""


def sleeping() -> int:
    """Return the number of running LONG processes."""
    count = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            count += process.cmdline() == LONG.split() and process.status() != psutil.STATUS_ZOMBIE
    return count


async def test_a_shell_on_a_terminal(tmp_path: Path) -> None:
    async with shell(tmp_path, env={"GREETING": "höllo"}) as client:
        replies = await run(client, None, Typed("tty; echo $GREETING; echo ended=$TERM; pwd; exit\n"))
    said = out(replies)
    assert "/dev/pts/" in said
    assert "höllo" in said
    assert "ended=xterm-256color" in said
    assert str(tmp_path) in said
    assert replies[-1]["eof"] is True
    assert not any(reply["eof"] for reply in replies[:-1])


async def test_the_terminal_controls_the_shell(tmp_path: Path) -> None:
    """Ctrl-C reaches only the program in the foreground: job control works."""
    async with shell(tmp_path) as client:
        typed = Typed(f"{LONG}\n")
        async with aclosing(client.stream(SHELL, "builtin", "shell", data_in=typed.receive)) as replies:
            await until(replies, "sleep")
            while not sleeping():  # noqa: ASYNC110 - no event reports the start of a process
                await trio.sleep(0.01)
            typed.send.send_nowait("\x03")
            typed.send.send_nowait("echo interrupted=$?\n")
            assert "job control" not in await until(replies, "interrupted=130")


async def test_the_window_changes(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        typed = Typed("stty size\n")
        extra = {"rows": 30, "cols": 100, "term": "vt100"}
        async with aclosing(client.stream(SHELL, "builtin", "shell", data_in=typed.receive, extra=extra)) as replies:
            await until(replies, "30 100")
            typed.send.send_nowait({"message": "window-change", "rows": 50, "cols": 200})
            typed.send.send_nowait({"message": "something else", "rows": 1, "cols": 1})
            typed.send.send_nowait("stty size; echo $TERM\n")
            assert "50 200" in await until(replies, "\nvt100")
            typed.send.send_nowait({"message": "window-change", "rows": 0, "cols": 200})
            with pytest.raises(MachineError, match=r"extra.rows is 0.*, not a whole number from 1 to 65535") as refused:
                await until(replies, "never")
            assert refused.value.kind is ErrorKind.INVALID


async def test_the_end_of_what_is_typed_ends_the_shell(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        typed = Typed("PS1='ready'$((2+3))\n")
        async with aclosing(client.stream(SHELL, "builtin", "shell", data_in=typed.receive)) as replies:
            await until(replies, "ready5")
            typed.end()
            assert "exit" in out([reply async for reply in replies])


async def test_a_command_has_no_terminal(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        extra = {"command": "tty; echo to-err >&2; cat", "environment": {"A": "b"}, "directory": "."}
        replies = await run(client, extra, Typed("typed").end())
    assert out(replies) == "not a tty\ntyped"
    assert out(replies, "data_err") == "to-err\n"


async def test_a_status_other_than_zero_is_an_error_after_the_output(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        stream = client.stream(SHELL, "builtin", "shell", data_in=Typed().receive, extra={"command": "echo a; exit 3"})
        said = [await anext(stream)]
        while not said[-1]["eof"]:
            said.append(await anext(stream))
        with pytest.raises(MachineError, match="the command exited with status 3") as failed:
            await anext(stream)
        assert failed.value.kind is ErrorKind.PRECONDITION
        assert out(said) == "a\n"
        assert said[-1]["eof"]
        with pytest.raises(MachineError, match="was terminated by SIGTERM"):
            await run(client, {"command": "kill $$"}, Typed())


async def test_characters_that_come_in_pieces(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        command = r"printf '\303'; sleep 0.1; printf '\244\377'"
        assert out(await run(client, {"command": command}, Typed().end())) == "ä\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("extra", [None, {"command": f"{LONG} & nohup {LONG}"}])
async def test_nothing_outlives_its_call(tmp_path: Path, extra: Mapping[str, Any] | None) -> None:
    before, children = os.listdir("/proc/self/fd"), set(psutil.Process().children(recursive=True))
    async with shell(tmp_path) as client:
        typed = Typed() if extra else Typed(f"{LONG} & nohup {LONG} & (trap '' HUP TERM; {LONG})\n")
        async with aclosing(client.stream(SHELL, "builtin", "shell", data_in=typed.receive, extra=extra)) as replies:
            expected = 2 if extra else 3
            async with trio.open_nursery() as nursery:

                async def read() -> None:
                    async for _ in replies:
                        pass

                nursery.start_soon(read)
                while sleeping() < expected:  # noqa: ASYNC110
                    await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
    assert not sleeping()
    assert not set(psutil.Process().children(recursive=True)) - children
    assert len(os.listdir("/proc/self/fd")) <= len(before)


async def test_jobs_that_were_left_running_end_with_the_shell(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        await run(client, None, Typed(f"nohup {LONG} >/dev/null & exit\n"))
        await run(client, {"command": f"nohup {LONG} &"}, Typed())
    assert not sleeping()


async def test_much_output_waits_for_its_reader(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        command = "head -c 20000000 /dev/zero | tr '\\0' x; echo end"
        stream = client.stream(SHELL, "builtin", "shell", data_in=Typed().receive, extra={"command": command})
        count = 0
        async with aclosing(stream) as replies:
            async for reply in replies:
                count += len(reply["data_out"])
        assert count == 20_000_004


async def test_the_last_words_wait_for_their_reader() -> None:
    """No output is lost when the program ended long before its reader reads again."""
    size, count = 90_000, 0  # more than is in transit at once, less than that plus the pipe's capacity
    argv = ["/bin/sh", "-c", f"head -c {size} /dev/zero"]
    async with aclosing(on_pipes(argv, ShellRequest(directory="/"), {"PATH": os.defpath}, Typed().receive)) as replies:
        async for reply in replies:
            if count == 0:
                await trio.sleep(SILENCE_LIMIT + 0.3)
            count += len(reply.data_out)
    assert count == size


async def test_a_daemon_that_never_stops_talking_ends_with_the_call(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        said = out(await run(client, {"command": "setsid yes & sleep 0.2"}, Typed().end()))
    assert len(said) > TRAILING_OUTPUT_LIMIT


async def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    async with shell(tmp_path) as client:
        with pytest.raises(MachineError, match=f"{tmp_path}/none does not exist"):
            await run(client, {"directory": "none"}, Typed())


def test_refused_in_an_untrusted_environment() -> None:
    document = decode_document(b'{"services": [{"api": "rdk:service:shell"}]}').document
    assert document is not None
    expected = plan(document, Registry(BUILTIN), trusted=False).resources["rdk:service:shell/builtin"]
    assert "-untrusted-env refuses" in str(expected.fault)
    assert plan(document, Registry(BUILTIN)).resources["rdk:service:shell/builtin"].fault is None


def test_a_program_is_named_from_the_root() -> None:
    document = decode_document(
        b'{"services": [{"api": "rdk:service:shell", "attributes": {"program": "zsh"}}]}'
    ).document
    assert document is not None
    fault = plan(document, Registry(BUILTIN)).resources["rdk:service:shell/builtin"].fault
    assert "program is 'zsh': write a path from the root" in str(fault)


@pytest.mark.parametrize(
    ("extra", "request_"),
    [
        (None, ShellRequest()),
        ({"command": "ls", "cols": 80.0, "rows": 25.0}, ShellRequest(command="ls", size=(25, 80))),
        ({"term": "", "directory": "/", "environment": {"A": ""}}, ShellRequest(directory="/", environment={"A": ""})),
    ],
)
def test_requests(extra: Mapping[str, Any] | None, request_: ShellRequest) -> None:
    assert read_request(extra) == request_
    assert ShellRequest().size == DEFAULT_SIZE


@pytest.mark.parametrize(
    "extra",
    [
        {"command": 5},
        {"command": "a\0b"},
        {"environment": ["A=b"]},
        {"environment": {"A=": "b"}},
        {"environment": {"": "b"}},
        {"environment": {"A": 1}},
        {"cols": 80},
        {"cols": 80, "rows": 70000},
        {"cols": 80, "rows": 1.5},
        {"cols": True, "rows": 1},
        {"cols": "80", "rows": 24},
    ],
)
def test_impossible_requests(extra: Mapping[str, Any]) -> None:
    with pytest.raises(MachineError, match="extra") as refused:
        read_request(extra)
    assert refused.value.kind is ErrorKind.INVALID


def test_a_message_without_a_size() -> None:
    assert read_size({"message": "hello"}) is None
