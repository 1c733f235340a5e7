"""Environments of scripts, made by uv from an index in a folder: installed once, and nothing else happens."""

from __future__ import annotations

import fcntl
import os
import sys
import tarfile
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from schema.errors import MachineError
from tests.e2e.training.engine import Ran, isolates  # noqa: F401 - a fixture
from tests.e2e.training.wheels import add_wheel, digest, url
from tests.processes import command_lines
from training.engine import lock
from training.engine.local import ROOT, LocalEngine
from training.engine.port import MIB, Order, RunOutcome
from training.environments.cache import Cache
from training.environments.environments import (
    LIMITS,
    Environment,
    Environments,
    EnvironmentSettings,
    redacted,
    uv_program,
)

pytestmark = [
    pytest.mark.usefixtures("isolates"),
    pytest.mark.skipif(not uv_program(), reason="uv is not installed"),
]
SCRIPT: Final = "import greeting\nprint(greeting.TEXT)\n"
INTERPRETER: Final = Path(sys.executable).resolve()
PASSWORD: Final = "PASSWORD-of-the-index"


def environments(folder: Path, *indexes: str, netrc: Path | None = None, **limits: Any) -> Environments:
    settings = EnvironmentSettings(
        folder / "environments", sys.executable, indexes, netrc, uv_program(), replace(LIMITS, **limits)
    )
    return Environments(LocalEngine(python=sys.executable), settings)


def job(folder: Path, files: Mapping[str, str], name: str = "job", script: str = SCRIPT) -> Order:
    order = Order(name, folder / name, "model.training", (), program=folder / name / "program")
    for path, text in {"model/training.py": script, **files}.items():
        target = folder / name / "program" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    order.dataset.mkdir(exist_ok=True)
    return order


async def run(maker: Environments, order: Order) -> tuple[RunOutcome, Environment, list[str]]:
    """Run a script in its environment as the runner does; return the outcome, the environment and the log."""
    ran = Ran()
    async with maker.of(order, ran.sink) as environment:
        order = replace(order, python=environment.python, environment=environment.variables)
        return await maker.engine.run(order, ran.sink), environment, ran.log


async def refused(maker: Environments, order: Order) -> tuple[str, list[str]]:
    ran = Ran()
    with pytest.raises(MachineError) as caught:
        async with maker.of(order, ran.sink):
            pass
    return str(caught.value), ran.log


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "index"
    add_wheel(folder, "greeting", "1.0", {"greeting.py": "from base import TEXT\n"}, ["base>=1"])
    add_wheel(folder, "base", "1.2", {"base.py": "TEXT = 'hello'\n"})
    return folder


async def test_requirements_are_installed_once(tmp_path: Path, index: Path) -> None:
    maker, results = environments(tmp_path, url(index)), dict[str, tuple[RunOutcome, Environment, list[str]]]()

    async def train(name: str) -> None:
        results[name] = await run(maker, job(tmp_path, {"requirements.txt": "greeting\n"}, name))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(train, "first")
        nursery.start_soon(train, "second")
    for outcome, environment, log in results.values():
        assert (outcome, log[-1]) == (RunOutcome(), "hello"), log
        assert environment.lock.startswith("base==1.2 --hash=sha256:")
        assert "resolved to base==1.2 greeting==1.0" in log
    logs = [line for _, _, log in results.values() for line in log]
    assert sum(line.startswith("made an environment") for line in logs) == 1
    assert sum(line.startswith("using the environment that was made before") for line in logs) == 1
    assert len(os.listdir(tmp_path / "environments")) == 1

    (index / "base" / "index.html").unlink()  # a lock needs no index if its environment exists
    lock = results["first"][1].lock
    outcome, environment, log = await run(maker, job(tmp_path, {"requirements.lock": lock}, "third"))
    assert (outcome, environment.lock, log[-1]) == (RunOutcome(), lock, "hello")
    assert log[0] == "the versions of packages are those of requirements.lock"


async def test_a_job_that_continues_keeps_its_versions(tmp_path: Path, index: Path) -> None:
    maker, order = environments(tmp_path, url(index)), job(tmp_path, {"requirements.txt": "greeting\n"})
    _, first, _ = await run(maker, order)
    add_wheel(index, "base", "1.3", {"base.py": "TEXT = 'new'\n"})
    outcome, again, log = await run(maker, order)
    assert (outcome, again, log[-1]) == (RunOutcome(), first, "hello")
    _, other, log = await run(maker, job(tmp_path, {"requirements.txt": "greeting\n"}, "other"))
    assert "base==1.3" in other.lock
    assert log[-1] == "new"


async def test_a_file_with_another_hash_is_not_installed(tmp_path: Path, index: Path) -> None:
    lock = f"base==1.2 --hash=sha256:{'0' * 64}\n"
    reason, _ = await refused(environments(tmp_path, url(index)), job(tmp_path, {"requirements.lock": lock}))
    assert "Hash mismatch for `base==1.2`" in reason
    assert os.listdir(tmp_path / "environments") == []


async def test_a_lock_has_all_packages(tmp_path: Path, index: Path) -> None:
    lock = f"greeting==1.0 --hash=sha256:{digest(index / 'greeting' / 'greeting-1.0-py3-none-any.whl')}\n"
    reason, _ = await refused(environments(tmp_path, url(index)), job(tmp_path, {"requirements.lock": lock}))
    assert "no trusted hash was provided for: `base`" in reason


async def test_signatures_in_the_links_of_an_index_are_not_shown(tmp_path: Path, index: Path) -> None:
    wheel = "base-1.2-py3-none-any.whl"
    async with protected(index) as elsewhere:
        (index / "base" / "index.html").write_text(f'<a href="{elsewhere}/{wheel}?signature={PASSWORD}">{wheel}</a>')
        order = job(tmp_path, {"requirements.txt": "greeting\n"})
        reason, log = await refused(environments(tmp_path, url(index)), order)
    assert f"{elsewhere}/{wheel}" in "".join([reason, *log])
    assert PASSWORD not in "".join([reason, *log])


async def test_no_code_of_packages_runs_outside(tmp_path: Path, index: Path) -> None:
    """Neither at the installation, nor when the environment is used again, although every start of Python runs it."""
    mark = f"open({str(tmp_path / 'escaped')!r}, 'w')"
    line = f"import os; print('started') or {mark}\n"
    outside = "../" * 30 + str(tmp_path / "escaped").lstrip("/")
    add_wheel(index, "start", "1", {"start.pth": line, "sitecustomize.py": line, outside: "x"})
    before, maker = digest(INTERPRETER), environments(tmp_path, url(index))
    for name in ("first", "second"):
        outcome, _, log = await run(maker, job(tmp_path, {"requirements.txt": "start\n"}, name, "print('end')"))
        assert (outcome, log[-1]) == (RunOutcome(), "end"), log
        assert "started" in log, "it runs inside"
        assert not (tmp_path / "escaped").exists()
    programs = {f"start-2.data/data/bin/{name}": "#!/bin/sh\necho replaced\n" for name in ("python", "python3.11")}
    add_wheel(index, "start", "2", programs)
    reason, _ = await refused(maker, job(tmp_path, {"requirements.txt": "start==2\n"}, "third"))
    assert "must not use the reserved name" in reason
    assert reason.endswith("correct requirements.txt")
    assert digest(INTERPRETER) == before


async def test_packages_without_wheels_are_not_built(tmp_path: Path, index: Path) -> None:
    (index / "source").mkdir()
    with tarfile.open(index / "source" / "source-1.0.tar.gz", "w:gz") as tar:
        setup = tmp_path / "setup.py"
        setup.write_text(f"open({str(tmp_path / 'built')!r}, 'w')")
        tar.add(setup, "source-1.0/setup.py")
    (index / "source" / "index.html").write_text('<a href="source-1.0.tar.gz">source-1.0.tar.gz</a>')
    maker = environments(tmp_path, url(index))
    reason, _ = await refused(maker, job(tmp_path, {"requirements.txt": "source\n"}))
    assert "could not be installed" in reason
    assert "source" in reason
    assert "building from source is disabled" in reason
    assert not (tmp_path / "built").exists()


async def test_requirements_of_packages_cannot_be_urls(tmp_path: Path, index: Path) -> None:
    wheel = add_wheel(tmp_path / "elsewhere", "evil", "1", {"evil.py": ""})
    add_wheel(index, "greeting", "1.0", {}, [f"evil @ {wheel.as_uri()}"])
    reason, _ = await refused(environments(tmp_path, url(index)), job(tmp_path, {"requirements.txt": "greeting\n"}))
    assert "URL" in reason


async def test_unknown_packages_are_refused(tmp_path: Path, index: Path) -> None:
    maker = environments(tmp_path, url(index))
    reason, log = await refused(maker, job(tmp_path, {"requirements.txt": "greeting\nnothing>=3\n"}))
    assert "nothing was not found in the package registry" in reason
    assert reason.endswith("correct requirements.txt")
    reason, _ = await refused(maker, job(tmp_path, {"requirements.txt": "-r /etc/passwd\n"}))
    assert "requirements.txt, line 1: '-r /etc/passwd': the option -r is not accepted" in reason
    assert not any("passwd" in line for line in log)


async def test_the_first_index_that_has_a_name_provides_it(tmp_path: Path, index: Path) -> None:
    add_wheel(tmp_path / "public", "base", "99.0", {"base.py": "TEXT = 'confused'\n"})
    maker = environments(tmp_path, url(index), url(tmp_path / "public"))
    outcome, _, log = await run(maker, job(tmp_path, {"requirements.txt": "greeting\n"}))
    assert (outcome, log[-1]) == (RunOutcome(), "hello")


async def test_without_an_index(tmp_path: Path) -> None:
    maker = environments(tmp_path)
    needs = "trio>=0.1\nnothing ; python_version < '3'\n"
    outcome, environment, log = await run(maker, job(tmp_path, {"requirements.txt": needs}, script="import trio"))
    assert (outcome, environment) == (RunOutcome(), Environment()), log
    for line, has in {"trio>=9999": "has 0", "nothing": "does not have it"}.items():
        reason, _ = await refused(maker, job(tmp_path, {"requirements.txt": f"{line}\n"}))
        assert f"the script requires {line} (requirements.txt), and the interpreter of this cloud {has}" in reason
        assert "start machine-cloud with --training-index URL" in reason


async def test_without_requirements(tmp_path: Path) -> None:
    outcome, environment, log = await run(
        environments(tmp_path, "https://index.invalid"), job(tmp_path, {}, script="print(1)")
    )
    assert (outcome, environment, log) == (RunOutcome(), Environment(), ["1"])


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({f"big/{number}": bytes(MIB) for number in range(20)}, "more than 8 MiB"),
        ({"big/0": bytes(12 * MIB)}, "a file larger than the limit of 8 MiB"),
    ],
)
async def test_an_environment_that_is_too_large(
    tmp_path: Path, index: Path, files: dict[str, bytes], reason: str
) -> None:
    add_wheel(index, "big", "1", files)
    maker = environments(tmp_path, url(index), disk=8 * MIB)
    said, _ = await refused(maker, job(tmp_path, {"requirements.txt": "big\n"}))
    assert reason in said
    assert said.endswith("or start machine-cloud with a larger --training-environments")
    assert os.listdir(tmp_path / "environments") == []


async def test_environments_that_are_too_large_together(tmp_path: Path, index: Path) -> None:
    maker = environments(tmp_path, url(index), disk=8 * MIB)
    for name in ("one", "two"):
        add_wheel(index, name, "1", {f"{name}/{number}": bytes(MIB) for number in range(5)})
        await run(maker, job(tmp_path, {"requirements.txt": f"{name}\n"}, name, "print()"))
    (left,) = (tmp_path / "environments").iterdir()
    assert "two==1" in (left / "requirements.lock").read_text()


Hanging = tuple[str, trio.MemoryReceiveChannel[None]]


@pytest.fixture
async def hanging(nursery: trio.Nursery) -> Hanging:
    """An index that never answers, and a channel with its requests."""
    requests, received = trio.open_memory_channel[None](100)

    async def never(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            requests.send_nowait(None)
            await trio.sleep_forever()

    (listener,) = await nursery.start(partial(trio.serve_tcp, never, 0, host="127.0.0.1"))
    return f"http://127.0.0.1:{listener.socket.getsockname()[1]}/simple", received


async def test_an_index_that_hangs(tmp_path: Path, hanging: Hanging) -> None:
    maker = environments(tmp_path, hanging[0], wall=1.5)
    reason, _ = await refused(maker, job(tmp_path, {"requirements.txt": "greeting\n"}))
    assert "uv took longer than 1.5 s" in reason
    assert os.listdir(tmp_path / "environments") == []


async def test_a_cancelled_installation_leaves_nothing(tmp_path: Path, hanging: Hanging) -> None:
    maker = environments(tmp_path, hanging[0])
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run, maker, job(tmp_path, {"requirements.txt": "greeting\n"}))
            await hanging[1].receive()
            nursery.cancel_scope.cancel()
    assert os.listdir(tmp_path / "environments") == []
    assert processes_of(tmp_path) == []


async def test_a_job_that_waits_for_a_canceled_one_installs_itself(tmp_path: Path, hanging: Hanging) -> None:
    maker, received = environments(tmp_path, hanging[0]), hanging[1]
    files = {"requirements.lock": f"base==1.2 --hash=sha256:{'0' * 64}\n"}
    with trio.fail_after(30):
        async with trio.open_nursery() as waiting:
            with trio.CancelScope() as first:
                async with trio.open_nursery() as jobs:
                    jobs.start_soon(run, maker, job(tmp_path, files, "first"))
                    await received.receive()
                    waiting.start_soon(run, maker, job(tmp_path, files, "second"))
                    with trio.move_on_after(1.0):  # the second job does not ask the index
                        await received.receive()
                        raise AssertionError("it installs at the same time")
                    first.cancel()
            await received.receive()
            waiting.cancel_scope.cancel()
    assert os.listdir(tmp_path / "environments") == []


KILLED: Final = """
import sys, trio
from dataclasses import replace
from pathlib import Path
from training.engine import lock
from tests.e2e.training.test_environments import environments, job, run
folder = Path(sys.argv[1])
order = replace(job(folder, {"requirements.txt": "greeting"}), lock=lock.path_of(folder, "engine"))
trio.run(run, environments(folder, sys.argv[2]), order)
"""


async def test_a_cloud_that_is_killed_half_way(tmp_path: Path, index: Path, hanging: Hanging) -> None:
    os.close(lock.hold(tmp_path, "engine"))
    process = await trio.lowlevel.open_process([sys.executable, "-c", KILLED, str(tmp_path), hanging[0]], cwd=ROOT)
    with trio.fail_after(30):
        await hanging[1].receive()
    assert processes_of(tmp_path)
    process.kill()
    await process.wait()
    held = lock.path_of(tmp_path, "engine").open()
    with trio.fail_after(60):  # the process around uv holds the lock until uv has ended
        await trio.to_thread.run_sync(partial(fcntl.flock, held, fcntl.LOCK_EX), abandon_on_cancel=True)
    held.close()
    assert processes_of(tmp_path) == []
    (unfinished,) = os.listdir(tmp_path / "environments")
    assert unfinished.startswith(".unfinished-")
    Cache(tmp_path / "environments").clean()
    assert os.listdir(tmp_path / "environments") == []
    outcome, _, log = await run(
        environments(tmp_path, url(index)), job(tmp_path, {"requirements.txt": "greeting\n"}, "next")
    )
    assert (outcome, log[-1]) == (RunOutcome(), "hello")


def processes_of(folder: Path) -> list[bytes]:
    """Return the command lines of processes of uv, and of those around it."""
    return [command for _, command in command_lines() if str(folder / "environments").encode() in command]


@asynccontextmanager
async def protected(index: Path) -> AsyncIterator[str]:
    """Serve an index to whom knows the password."""
    right = f"Authorization: Basic {b64encode(f'user:{PASSWORD}'.encode()).decode()}".lower()

    async def answer(stream: trio.SocketStream) -> None:
        async with stream:
            received = b""
            while b"\r\n\r\n" not in received:
                if not (piece := await stream.receive_some()):
                    return
                received += piece
            text = received.decode().lower()
            path = index / text.split(" ")[1].removeprefix("/simple/")
            path = path / "index.html" if path.is_dir() else path
            status, content = ("200 OK", path.read_bytes()) if path.is_file() else ("404 Not Found", b"")
            if right not in text:
                status, content = '401 Unauthorized\r\nWWW-Authenticate: Basic realm="index"', b""
            kind = "text/html" if path.suffix == ".html" else "application/zip"
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
            await stream.send_all(f"{head}Connection: close\r\n\r\n".encode() + content)

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, answer, 0, host="127.0.0.1"))
        yield f"http://127.0.0.1:{listener.socket.getsockname()[1]}/simple"
        nursery.cancel_scope.cancel()


async def test_credentials_of_an_index(tmp_path: Path, index: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text(f"machine 127.0.0.1 login user password {PASSWORD}\n")
    netrc.chmod(0o600)
    script = (
        "import os, greeting\nprint(sorted(os.environ))\n"
        f"print([path for path in ({str(netrc)!r}, {str(tmp_path / 'environments')!r}) if os.path.exists(path)])\n"
    )
    async with protected(index) as address:
        reason, _ = await refused(environments(tmp_path, address), job(tmp_path, {"requirements.txt": "greeting\n"}))
        assert "401" in reason or "credentials" in reason
        outcome, environment, log = await run(
            environments(tmp_path, address, netrc=netrc), job(tmp_path, {"requirements.txt": "greeting\n"}, "b", script)
        )
    assert outcome == RunOutcome(), log
    assert "NETRC" not in log[-2]
    assert log[-1] == f"[{str(tmp_path / 'environments')!r}]", "only the environment below it is visible"
    left = [path for path in (tmp_path / "environments").rglob("*") if path.is_file()]
    assert not [path for path in left if PASSWORD.encode() in path.read_bytes()]
    assert PASSWORD not in "".join([*log, environment.lock])


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("error: https://user:secret@host/simple/x failed", "error: https://host/simple/x failed"),
        ("see http://secret@host:8080/a?token=secret#secret, then", "see http://host:8080/a then"),
        ("no URL: user:secret", "no URL: user:secret"),
    ],
)
async def test_secrets_in_urls_are_not_shown(line: str, shown: str) -> None:
    assert redacted(line) == shown


async def test_programs_of_tenants_are_never_online(tmp_path: Path) -> None:
    order = job(tmp_path, {}, script="print(1)")
    with pytest.raises(MachineError, match="cannot use the network"):
        await LocalEngine(python=sys.executable).run(replace(order, online=True), Ran().sink)
