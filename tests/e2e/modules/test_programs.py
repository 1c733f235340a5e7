"""Programs of modules: archives, first_run, TCP, environment, levels, reloading, folders of removed modules."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from rpc.api.client import ApiClient
from schema.errors import MachineError
from tests.e2e.modules.support import (
    GENERIC,
    PLAIN,
    SENSOR,
    component,
    machine,
    module_state,
    pid_of,
    program,
    readings,
    until,
    until_ready,
)

AIR = component("air", SENSOR, "acme:demo:thermometer")
MEAN = component("mean", GENERIC, "acme:demo:average", sensor="plain")
LAST_WINS = [{"pattern": "rdk.modmanager.*", "level": "error"}, {"pattern": "demo", "level": "warn"}]
BIND = {"network": {"bind_address": "localhost:0"}}


def document(executable: str, *components: dict[str, Any], **entry: Any) -> dict[str, Any]:
    return {
        **BIND,
        "modules": [{"name": "demo", "executable_path": executable, **entry}],
        "components": [component("plain", SENSOR, "fake"), *components],
    }


def archive(folder: Path, *, first_run: str = "", note: str = "") -> str:
    """Write an archive of the fixture, replacing an existing one; return its path."""
    content = folder / "content"
    program(content / "bin", "run.sh")
    meta = {"entrypoint": "bin/run.sh", **({"first_run": "first.sh"} if first_run else {}), "note": note}
    (content / "meta.json").write_text(json.dumps(meta))
    if first_run:
        (content / "first.sh").write_text(f"#!/bin/sh\n{first_run}\n")
        (content / "first.sh").chmod(0o755)
    path = folder / "module.tar.gz"
    with tarfile.open(path.with_suffix(".new"), "w:gz") as tar:
        tar.add(content, ".")
    path.with_suffix(".new").rename(path)
    return str(path)


async def environment_of(client: ApiClient, *names: str) -> dict[str, str]:
    command = {"do": "environment", "names": list(names)}
    answer: dict[str, str] = await client.call(SENSOR, "air", "do_command", command=command)
    return answer


def unpacked(home: Path) -> list[Path]:
    return sorted(path for path in (home / "packages-local").iterdir() if path.is_dir())


async def test_an_archive_is_unpacked_once_and_runs_its_first_run(tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = archive(tmp_path, first_run='echo "installing for $VIAM_MODULE_NAME"; echo once >> "$VIAM_MODULE_DATA/runs"')
    expected = document(path, AIR)
    async with machine(tmp_path, expected) as (server, client):
        await until_ready(client, "air")
        (folder,) = unpacked(home)
        runs = home / "module-data" / "local" / "demo" / "runs"
        assert runs.read_text() == "once\n"
        assert "installing for demo" in server.log()
        result = await environment_of(client, "VIAM_MODULE_ROOT", "VIAM_MODULE_DATA", "VIAM_HOME")
        assert result == {
            "VIAM_MODULE_ROOT": str(folder), "VIAM_MODULE_DATA": str(runs.parent), "VIAM_HOME": str(home)
        }  # fmt: skip
        pid = await pid_of(client)
        await client.call("viam.robot.v1.RobotService", "", "restart_module", module_name="demo")
        await until(lambda: another(client, pid))
        assert runs.read_text() == "once\n", "the same content is not installed twice"
        archive(tmp_path, first_run='echo twice >> "$VIAM_MODULE_DATA/runs"', note="changed")
        pid = await pid_of(client)
        await client.call("viam.robot.v1.RobotService", "", "restart_module", module_name="demo")
        await until(lambda: another(client, pid))
        assert runs.read_text() == "once\ntwice\n"
        (newer,) = unpacked(home)
        assert newer != folder, "what was unpacked of the older archive is gone"


@pytest.mark.parametrize(
    ("first_run", "entry", "words"),
    [
        ("echo no network >&2; exit 9", {}, "first run: first.sh ended with status 9; its last output: no network"),
        ("sleep 60", {"first_run_timeout": "1s"}, "did not end within 1 s"),
    ],
    ids=["fails", "hangs"],
)
async def test_a_failed_first_run_is_the_reason(
    tmp_path: Path, first_run: str, entry: dict[str, Any], words: str
) -> None:
    expected = document(archive(tmp_path, first_run=first_run), AIR, **entry)
    async with machine(tmp_path, expected, running=False) as (_, client):

        async def said() -> bool:
            assert await readings(client, "plain") == PLAIN
            return words in (await module_state(client))["error"]

        await until(said, message=f"nothing says {words}")


@pytest.mark.parametrize("everywhere", [False, True], ids=["entry", "environment"])
async def test_a_module_over_tcp(tmp_path: Path, everywhere: bool) -> None:
    entry = {} if everywhere else {"tcp_mode": True}
    env = {"VIAM_TCP_SOCKETS": "yes"} if everywhere else {}
    expected = document(program(tmp_path), AIR, MEAN, **entry)
    async with machine(tmp_path, expected, **env) as (server, client):
        await until_ready(client, "air", "mean")
        pid = await pid_of(client)
        arguments = psutil.Process(pid).cmdline()
        assert "--tcp-mode" in arguments
        assert next(argument for argument in arguments if argument.startswith("127.0.0.1:"))
        assert (await client.call(GENERIC, "mean", "do_command", command={}))["names"] == ["a", "b", "c"]
        host, _, port = server.address.rpartition(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(b"GET /restart_status HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            answer = b"".join([part async for part in stream])
        address = json.loads(answer.partition(b"\r\n\r\n")[2])["module_server_tcp_addr"]
        assert address.startswith("127.0.0.1:")
        assert await server.stop() == 0
        assert not psutil.pid_exists(pid)


async def test_a_module_gets_the_first_key_and_the_names_of_the_machine(tmp_path: Path) -> None:
    keys = {"b-key": "second", "a-key": "first-secret"}
    expected = {
        **document(program(tmp_path), AIR),
        "auth": {"handlers": [{"type": "api-key", "config": keys}]},
        "network": {"bind_address": "localhost:0", "fqdn": "robot.example"},
    }
    async with machine(tmp_path, expected) as (server, client):
        token = await _token(client, "a-key", "first-secret")
        async with server.client({"authorization": f"Bearer {token}"}) as mine:
            await until_ready(mine, "air")
            result = await environment_of(mine, "VIAM_API_KEY_ID", "VIAM_API_KEY", "VIAM_MACHINE_FQDN")
        assert result == {
            "VIAM_API_KEY_ID": "a-key", "VIAM_API_KEY": "first-secret", "VIAM_MACHINE_FQDN": "robot.example"
        }  # fmt: skip
        assert "first-secret" not in server.log()


@pytest.mark.parametrize(
    ("entry", "document_wide", "options", "level"),
    [
        ({"log_level": "warn"}, {"log": [{"pattern": "demo", "level": "error"}]}, (), "warn"),
        ({}, {"log": LAST_WINS}, (), "warn"),
        ({"log_level": "warn"}, {"debug": True}, (), "debug"),
        ({"log_level": "warn"}, {}, ("-debug",), "debug"),
    ],
    ids=["entry-beats-patterns", "last-pattern-wins", "debug-of-the-document", "debug-of-the-command-line"],
)  # fmt: skip
async def test_a_module_gets_its_log_level(
    tmp_path: Path, entry: dict[str, Any], document_wide: dict[str, Any], options: tuple[str, ...], level: str
) -> None:
    expected = {**document(program(tmp_path), AIR, **entry), **document_wide}
    async with machine(tmp_path, expected, *options) as (_, client):
        await until_ready(client, "air")
        assert f"--log-level={level}" in psutil.Process(await pid_of(client)).cmdline()


async def test_saving_a_file_restarts_the_module_and_a_broken_one_is_explained(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    expected = document(program(folder, "run.sh"), AIR, MEAN, reload_on_change=True)
    async with machine(tmp_path, expected) as (server, client):
        await until_ready(client, "air", "mean")
        first = await pid_of(client)
        good = (folder / "run.sh").read_text()
        (folder / "notes.log").write_text("nothing of the program")
        (folder / "helper.py").write_text("x = 1\n")
        await until(lambda: another(client, first))
        await until_ready(client, "air", "mean")
        assert "helper.py changed" in server.log()
        assert "notes.log" not in server.log()
        (folder / "run.sh").write_text('#!/bin/sh\necho "syntax error in line 7" >&2\nexit 2\n')

        async def broken() -> bool:
            return "syntax error in line 7" in (await module_state(client))["error"]

        await until(broken)
        with pytest.raises(MachineError, match="syntax error in line 7"):
            await readings(client, "air")
        assert await readings(client, "plain") == PLAIN
        (folder / "run.sh").write_text(good)
        with trio.fail_after(30):
            await until_ready(client, "air", "mean")
        assert (await module_state(client))["consecutive_failures"] == 0


async def test_data_of_a_removed_module_are_deleted_except_after_an_error(tmp_path: Path) -> None:
    home = tmp_path / "home"
    expected = document(archive(tmp_path), AIR)
    async with machine(tmp_path, expected) as (server, client):
        await until_ready(client, "air")
        kept = home / "module-data" / "local" / "demo"
        (kept / "calibration").write_text("7")
        pid = await pid_of(client)
        server.write({**expected, "modules": [{**expected["modules"][0], "log_level": 5}]})  # an invalid value
        await until(lambda: gone(pid))
        assert (kept / "calibration").read_text() == "7"
        server.write(expected)
        await until_ready(client, "air")
        assert (kept / "calibration").read_text() == "7"
        server.write({**BIND, "components": [component("plain", SENSOR, "fake")]})
        await until(lambda: vanished(kept))
        await until(lambda: nothing_unpacked(home))
        assert await readings(client, "plain") == PLAIN


async def test_a_module_of_the_registry_declares_its_dependencies(tmp_path: Path) -> None:
    expected = document("", AIR, type="registry", module_id="acme:demo")
    async with machine(tmp_path, expected, running=False) as (_, client):

        async def said() -> bool:
            return "join the machine to a cloud" in (await module_state(client))["error"]

        await until(said)


async def _token(client: ApiClient, key_id: str, key: str) -> str:
    credentials = {"type": "api-key", "payload": key}
    answer = await client.call("proto.rpc.v1.AuthService", "", "authenticate", entity=key_id, credentials=credentials)
    return str(answer)


async def another(client: ApiClient, pid: int) -> bool:
    return await pid_of(client) != pid


async def gone(pid: int) -> bool:
    return not psutil.pid_exists(pid)


async def nothing_unpacked(home: Path) -> bool:
    return not unpacked(home)


async def vanished(folder: Path) -> bool:
    return not folder.exists() and not folder.with_name(f"{folder.name}.removed").exists()
