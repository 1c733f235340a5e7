"""The shell service of a real server: the `machine` command, the published stub, and processes left afterwards."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.exceptions import StreamTerminatedError
from viam.gen.service.shell.v1.shell_grpc import ShellServiceStub
from viam.gen.service.shell.v1.shell_pb2 import (
    CopyFilesToMachineRequest,
    CopyFilesToMachineRequestMetadata,
    FileData,
    ShellRequest,
)

from tests.e2e.harness import Server

MACHINE = str(Path(sys.executable).with_name("machine"))
LIMIT = 60.0  # seconds


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    home = tmp_path / "far"
    home.mkdir()
    entry = {
        "api": "rdk:service:shell",
        "name": "sh",
        "attributes": {"program": "/bin/bash", "directory": str(home), "env": {"HISTFILE": "", "PS1": "> "}},
    }
    with Server({"services": [entry]}, tmp_path, "-allow-open-shell") as opened:
        yield opened.wait_running()


LONG = f"sleep 1000{os.getpid()}"
"""A command line unique to this run: programs that a shell leaves behind have lost their parent."""


def children(server: Server) -> list[psutil.Process]:
    """Return the server's child processes, and every process that runs LONG."""
    assert server.process is not None
    results = []
    with suppress(psutil.NoSuchProcess):
        results = psutil.Process(server.process.pid).children(recursive=True)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.cmdline() == LONG.split() and process.status() != psutil.STATUS_ZOMBIE:
                results.append(process)
    return results


def gone(server: Server) -> bool:
    """Wait until all processes of the server have ended; they end after the client. Return whether they did."""
    end = time.monotonic() + LIMIT
    while children(server) and time.monotonic() < end:
        time.sleep(0.05)
    return not children(server)


def machine(server: Server, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [MACHINE, words[0], "--address", server.address, *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, input=text if text is not None else "")


def test_commands_and_their_status(server: Server) -> None:
    done = machine(server, "shell", "echo out; echo err >&2; pwd")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"out\n{server.folder / 'far'}\n", "err\n")
    assert machine(server, "shell", "exit", "7").returncode == 7
    assert machine(server, "shell", "tr a-z A-Z", text="hello\n").stdout == "HELLO\n"
    assert machine(server, "shell", text="echo from a script\nexit 3\n").stdout == "from a script\n"
    assert machine(server, "shell", "--service", "other", "true").returncode == 1
    assert gone(server)


def test_a_terminal(server: Server) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [MACHINE, "shell", "--address", server.address], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    said = b""

    def until(expected: bytes) -> None:
        nonlocal said
        end = time.monotonic() + LIMIT
        while expected not in said:
            assert select.select([master], [], [], max(0.0, end - time.monotonic()))[0], said
            said += os.read(master, 4096)

    try:
        until(b"far")
        os.write(master, b"echo ready=$((1+1))\r")
        until(b"ready=2")
        os.write(master, b"echo size=$(stty size)=$((6*7)); " + LONG.encode() + b"\r")
        until(b"=42")
        end = time.monotonic() + LIMIT
        while not any(child.name() == "sleep" for child in children(server)) and time.monotonic() < end:
            time.sleep(0.05)
        os.write(master, b"\x03")  # sent to the remote program, not to the local command
        os.write(master, b"echo still=$((6*8))\r")
        until(b"still=48")
        os.write(master, b"exit\r")
        assert process.wait(LIMIT) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert gone(server)


def test_processes_of_a_vanished_client_are_ended(server: Server) -> None:
    process = subprocess.Popen(
        [MACHINE, "shell", "--address", server.address, f"nohup {LONG} & {LONG}"], stdin=subprocess.PIPE
    )
    end = time.monotonic() + LIMIT
    while len(children(server)) < 5 and time.monotonic() < end:
        time.sleep(0.05)
    assert children(server)
    process.kill()
    process.wait()
    assert process.stdin is not None
    process.stdin.close()
    assert gone(server)


def test_a_stopping_server_ends_its_shells(server: Server) -> None:
    process = subprocess.Popen(
        [MACHINE, "shell", "--address", server.address, LONG], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    end = time.monotonic() + LIMIT
    while not children(server) and time.monotonic() < end:
        time.sleep(0.05)
    left = children(server)
    assert server.stop() == 0
    assert not any(item.is_running() for item in left)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode in (1, 3)
    assert b"Traceback" not in errors


def test_files_are_copied_both_ways(server: Server, tmp_path: Path) -> None:
    near, far = tmp_path / "near", tmp_path / "far"
    (near / "site" / "css").mkdir(parents=True)
    data = os.urandom(3_000_000)
    (near / "site" / "index.html").write_bytes(data)
    (near / "site" / "css" / "a.css").write_text("a {}")
    (near / "site" / "css" / "a.css").chmod(0o640)
    assert machine(server, "cp", str(near / "site"), ":").returncode == 1  # a directory requires -r
    assert machine(server, "cp", "-rp", str(near / "site"), ":").returncode == 0
    assert (far / "site" / "index.html").read_bytes() == data
    assert (far / "site" / "css" / "a.css").stat().st_mode & 0o777 == 0o640
    back = tmp_path / "back"
    assert machine(server, "cp", "-r", ":site", str(back)).returncode == 0
    assert (back / "index.html").read_bytes() == data
    assert (back / "css" / "a.css").read_text() == "a {}"
    assert machine(server, "cp", ":site/index.html", ":site/css/a.css", str(tmp_path / "near")).returncode == 0
    assert (near / "a.css").read_text() == "a {}"
    done = machine(server, "cp", ":none", str(near))
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    assert machine(server, "cp", "a", "b").returncode == 2


def test_shells_are_off_by_default_and_refused_in_an_untrusted_environment(tmp_path: Path) -> None:
    with Server({}, tmp_path, "-allow-open-shell") as server:
        server.wait_running()
        done = machine(server, "shell", "true")
        assert done.returncode == 1
        assert "to the services of its configuration" in done.stderr
    with Server(
        {"services": [{"api": "rdk:service:shell"}]}, tmp_path, "-untrusted-env", "-allow-open-shell"
    ) as server:
        server.wait_running()
        assert "which -untrusted-env refuses" in machine(server, "shell", "true").stderr
        assert "-untrusted-env refuses" in server.command("resources").stdout


def test_the_published_stub(server: Server, tmp_path: Path) -> None:
    async def script() -> None:
        channel = Channel("127.0.0.1", server.port)
        try:
            stub = ShellServiceStub(channel)
            assert "33 101" in await resized(stub)
            async with stub.CopyFilesToMachine.open() as copies:
                metadata = CopyFilesToMachineRequestMetadata(name="sh", source_type=1, destination="x")
                await copies.send_message(CopyFilesToMachineRequest(metadata=metadata))
                await copies.send_message(CopyFilesToMachineRequest(file_data=FileData(name="x", size=2, data=b"ab")))
                await copies.send_message(CopyFilesToMachineRequest(file_data=FileData(eof=True)))
                acknowledged = await copies.recv_message()
                assert acknowledged is not None
                assert acknowledged.ack_last_file
                await copies.end()
            assert (tmp_path / "far" / "x").read_bytes() == b"ab"
            with pytest.raises((GRPCError, StreamTerminatedError)):  # grpclib may notice the end of the stream first
                await climb(stub)
            assert not (tmp_path / "y").exists()
        finally:
            channel.close()

    asyncio.run(asyncio.wait_for(script(), LIMIT))
    assert gone(server)


async def resized(stub: ShellServiceStub) -> str:
    """Return what a terminal prints after its window is resized."""
    said = ""
    # grpclib drops undelivered messages when a server ends a call before its client does
    with suppress(StreamTerminatedError):
        async with stub.Shell.open() as stream:
            await stream.send_message(ShellRequest(name="sh", data_in="stty size\n"))
            resize = ShellRequest(name="sh")
            resize.extra.update({"message": "window-change", "cols": 101, "rows": 33})
            await stream.send_message(resize)
            await stream.send_message(ShellRequest(name="sh", data_in="stty size; sleep 0.3; exit\n"))
            async for message in stream:
                said += message.data_out
    return said


async def climb(stub: ShellServiceStub) -> None:
    """Send a file with a path outside its destination."""
    async with stub.CopyFilesToMachine.open() as copies:
        metadata = CopyFilesToMachineRequestMetadata(name="sh", source_type=3, destination=".")
        await copies.send_message(CopyFilesToMachineRequest(metadata=metadata))
        await copies.send_message(CopyFilesToMachineRequest(file_data=FileData(name="../y", data=b"ab")))
        await copies.recv_message()


def test_operations_are_listed_and_cancelled(server: Server) -> None:
    process = subprocess.Popen(
        [MACHINE, "shell", "--address", server.address, LONG],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end = time.monotonic() + LIMIT
    while not children(server) and time.monotonic() < end:
        time.sleep(0.05)
    listed = machine(server, "operations").stdout
    line = next(line for line in listed.splitlines() if "ShellService/Shell" in line)
    assert machine(server, "cancel", line.split()[0][:8]).returncode == 0
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 1
    assert "was cancelled" in errors
    assert gone(server)
    assert "no call is in progress" in machine(server, "operations").stdout
    assert "no call 'x' is in progress" in machine(server, "cancel", "x").stderr


def test_ctrl_c_ends_a_command(server: Server) -> None:
    process = subprocess.Popen(
        [MACHINE, "shell", "--address", server.address, LONG], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    )
    end = time.monotonic() + LIMIT
    while not children(server) and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert gone(server)
