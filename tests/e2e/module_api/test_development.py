"""A module from `machine module new` to its archive on a machine, in the steps of its author."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from schema.errors import MachineError
from tests.e2e.module_api.test_same_tests import SENSOR, until_ready, until_said
from tests.e2e.server.process import server
from tests.loopback import free_port

MACHINE = [sys.executable, "-m", "command.cli"]


def machine(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*MACHINE, *arguments], cwd=cwd, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    created = machine("module", "new", "rover-arm", "--namespace", "me", cwd=tmp_path)
    assert created.returncode == 0, created.stderr
    return tmp_path / "rover-arm"


def test_the_generated_test_passes_with_plain_pytest(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout
    driver = folder / "rover_arm.py"
    driver.write_text(driver.read_text().replace("fmean(values) for", "max(values) for"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 1, "it would pass whatever the driver does"


def test_the_module_tests_itself_on_a_machine(folder: Path) -> None:
    done = machine("module", "test", "--json", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads(done.stdout)
    assert content["problems"] == []
    assert [(resource["name"], resource["state"]) for resource in content["resources"]] == [
        ("rdk:component:sensor/mean", "ready"),
        ("rdk:component:sensor/source", "ready"),
    ]


def test_defects_of_a_module_are_detected(folder: Path) -> None:
    meta = json.loads((folder / "meta.json").read_text())
    meta["models"][0]["model"] = "me:rover-arm:old"
    (folder / "meta.json").write_text(json.dumps(meta))
    (folder / "test_rover_arm.py").write_text("def test_nothing():\n    assert False\n")
    config = json.loads((folder / "machine.json").read_text())
    config["components"][1]["attributes"]["count"] = 0
    (folder / "machine.json").write_text(json.dumps(config))
    done = machine("module", "test", cwd=folder)
    assert done.returncode == 1
    wrong = [line for line in done.stdout.splitlines() if line.startswith("problem: ")]
    assert "problem: the module's own tests failed: pytest exited with status 1" in wrong
    assert any("offers me:rover-arm:mean of rdk:component:sensor, which is not listed" in line for line in wrong)
    assert any("models.0: the module does not offer me:rover-arm:old" in line for line in wrong)
    assert any("sensor/mean is unhealthy" in line and "attributes.count" in line for line in wrong)


def test_a_module_that_does_not_start_is_shown_with_its_output(folder: Path) -> None:
    driver = folder / "rover_arm.py"
    driver.write_text(driver.read_text().replace("import msgspec", "import msgspecs"))
    done = machine("module", "test", "--no-pytest", cwd=folder)
    assert done.returncode == 1
    assert "No module named 'msgspecs'" in done.stdout


@asynccontextmanager
async def development(folder: Path, *arguments: str) -> AsyncIterator[tuple[trio.Process, ApiClient]]:
    """Run `machine module dev`; yield its process and a client of its machine."""
    command = [*MACHINE, "module", "dev", str(folder), "--port", "0", "--hardware", "sim", *arguments]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = ""
    async with trio.open_nursery() as nursery:
        try:
            assert process.stdout is not None
            with trio.fail_after(40):
                while (result := re.search(r"the machine is at (\S+):", said)) is None:
                    data = await process.stdout.receive_some()
                    assert data, said
                    said += data.decode()
            nursery.start_soon(drain, process)
            async with Channel(result[1]) as channel:
                client = ApiClient(channel)
                await until_ready(client, "mean", "source")
                yield process, client
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            with trio.CancelScope(shield=True):
                await process.wait()
            nursery.cancel_scope.cancel()


async def drain(process: trio.Process) -> None:
    assert process.stdout is not None
    async for _ in process.stdout:
        pass


async def readings(client: ApiClient, expected: Any) -> None:
    with trio.fail_after(30):
        while True:
            try:
                if await client.call(SENSOR, "mean", "get_readings") == expected:
                    return
            except MachineError:
                pass  # while it restarts
            await trio.sleep(0.05)


async def test_a_saved_file_restarts_the_module_and_nothing_else(folder: Path) -> None:
    driver = folder / "rover_arm.py"
    good = driver.read_text()
    async with development(folder) as (process, client):
        await readings(client, {"a": 1, "b": 2, "c": 3})
        driver.write_text(good.replace("fmean(values) for", "-fmean(values) for"))
        await readings(client, {"a": -1, "b": -2, "c": -3})
        driver.write_text("def unfinished(\n")
        with trio.fail_after(30):
            while True:
                assert await client.call(SENSOR, "source", "get_readings") == {"a": 1, "b": 2, "c": 3}
                try:
                    await client.call(SENSOR, "mean", "get_readings")
                except MachineError as error:
                    if "SyntaxError" in str(error):
                        break
                await trio.sleep(0.05)
        driver.write_text(good)
        await readings(client, {"a": 1, "b": 2, "c": 3})
        children = psutil.Process(process.pid).children(recursive=True)
        assert len(children) >= 2
        process.send_signal(signal.SIGTERM)
        with trio.fail_after(30):
            await process.wait()
    assert process.returncode == 130
    assert not [child for child in children if child.is_running()]


KEEPING = """
    async def do_command(self, command):
        import greeting
        from runtime.sdk import data_folder
        kept = data_folder() / "kept"
        before = kept.read_text() if kept.exists() else ""
        kept.write_text(str(command["keep"]))
        return {"before": before, "greeting": greeting.WORDS, "root": str(data_folder())}

    async def get_readings"""
FIRST_RUN = """#!/bin/sh
set -e
cd "$(dirname "$0")"
mkdir lib
"$MACHINE_PYTHON" -c "open('lib/greeting.py', 'w').write('WORDS = 1 + 1')"
"""
RUN = """#!/bin/sh
PYTHONPATH="$(dirname "$0")/lib" exec "$MACHINE_PYTHON" "$(dirname "$0")/rover_arm.py" "$@"
"""


async def test_the_archive_runs_with_its_own_libraries_and_data(folder: Path, tmp_path: Path) -> None:
    driver = folder / "rover_arm.py"
    driver.write_text(driver.read_text().replace("\n    async def get_readings", KEEPING))
    (folder / "run.sh").write_text(RUN)
    (folder / "first_run.sh").write_text(FIRST_RUN)
    (folder / "first_run.sh").chmod(0o755)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "first_run": "first_run.sh"}))
    packed = machine("module", "pack", "--output", str(tmp_path / "arm.tar.gz"), cwd=folder)
    assert packed.returncode == 0, packed.stderr
    document = json.loads((folder / "machine.json").read_text())
    document["modules"] = [{"name": "arm", "executable_path": str(tmp_path / "arm.tar.gz")}]
    for before, now in (("", "first"), ("first", "second")):
        async with server(tmp_path, document, running=True) as running, running.client() as client:
            await until_ready(client, "mean", "source")
            await readings(client, {"a": 1, "b": 2, "c": 3})
            said = await client.call(SENSOR, "mean", "do_command", command={"keep": now})
            assert (said["before"], said["greeting"]) == (before, 2)
            assert said["root"] == str(tmp_path / "home" / "module-data" / "local" / "arm")
            assert await running.stop() == 0


EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "module"


async def test_the_example_runs_as_documented(tmp_path: Path) -> None:
    block = re.search(r"```json\n(.*?)```", (EXAMPLE / "README.md").read_text(), re.S)
    assert block is not None
    text = block[1].replace("PATH/OF/THIS/FOLDER", str(EXAMPLE)).replace("NAME OF A SENSOR", "source")
    document = json.loads(text)
    document["components"].append(
        {"name": "source", "api": SENSOR, "model": "fake", "attributes": {"readings": {"x": 4}}}
    )
    async with server(tmp_path, document, running=True) as running, running.client() as client:
        await until_ready(client, "mean", "source")
        await readings(client, {"x": 4})


# ---- requests that a server may send to a module


OWN = Path(__file__).parent / "fixtures" / "own_module.py"


def run_own(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(OWN), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_without_an_address_the_module_explains_itself() -> None:
    done = run_own()
    assert done.returncode == 2
    assert "this program is a module" in done.stderr
    assert "machine module run" in done.stderr


def test_the_module_lists_its_models_for_meta_json() -> None:
    done = subprocess.run(
        [sys.executable, str(OWN), "--models"], capture_output=True, text=True, timeout=60, check=True
    )
    assert [item["model"] for item in json.loads(done.stdout)] == [
        "acme:demo:thermometer",
        "acme:demo:average",
        "acme:demo:drive",
    ]


def test_an_unusable_address_is_named(tmp_path: Path) -> None:
    address = tmp_path / "nowhere" / "m.sock"
    done = subprocess.run(
        [sys.executable, str(OWN), str(address)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert f"cannot listen on {address}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
async def test_the_bare_protocol_over_both_kinds_of_sockets(tmp_path: Path, tcp: bool) -> None:
    """Without machine-server: the requests of the reference implementation, in its order, then SIGTERM."""
    address = f"127.0.0.1:{free_port()}" if tcp else str(tmp_path / "m.sock")
    arguments = [address, "--log-level=debug", *(["--tcp-mode"] if tcp else [])]
    environment = {**os.environ, "VIAM_MODULE_NAME": "demo"}
    process = await trio.lowlevel.open_process(
        [sys.executable, str(OWN), *arguments], stderr=subprocess.PIPE, env=environment
    )
    try:
        async with Channel(address if tcp else f"unix:{address}") as channel:
            client = ApiClient(channel)
            service = "viam.module.v1.ModuleService"
            config = {"name": "air", "api": SENSOR, "model": "acme:demo:thermometer", "attributes": {"offset": 2}}
            with trio.fail_after(30):
                while True:
                    try:
                        ready = await client.call(service, "", "ready", parent_address="")
                        break
                    except MachineError:
                        await trio.sleep(0.05)
            assert ready["ready"] is True
            assert await client.call(service, "", "validate_config", config=config) == {
                "dependencies": [],
                "optional_dependencies": [],
            }
            await client.call(service, "", "add_resource", config=config, dependencies=[])
            assert (await client.call(SENSOR, "air", "get_readings"))["temperature_c"] == 22.5
            await client.call(service, "", "remove_resource", name=f"{SENSOR}/air")
        process.send_signal(signal.SIGTERM)
        with trio.fail_after(30):
            assert await process.wait() == 0
        said = b""
        assert process.stderr is not None
        async for part in process.stderr:
            said += part
        assert b"asked for readings" in said, "without a machine its log goes to standard error"
        assert b"Traceback" not in said
        assert tcp or not Path(address).exists()  # noqa: ASYNC240
    finally:
        if process.poll() is None:
            process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
async def test_the_log_of_a_module_arrives_with_level_fields_and_name(tmp_path: Path, tcp: bool) -> None:
    document = {
        "modules": [
            {"name": "demo", "executable_path": program(tmp_path), "log_level": "debug", "tcp_mode": tcp},
        ],
        "components": [{"name": "air", "api": SENSOR, "model": "acme:demo:thermometer"}],
    }
    async with server(tmp_path, document, running=True) as running, running.client() as client:
        await until_ready(client, "air")
        await client.call(SENSOR, "air", "get_readings")
        await until_said(running, "asked for readings")
        (line,) = [line for line in running.log().splitlines() if "asked for readings" in line]
        assert "INFO" in line
        assert "rdk.modmanager.demo.rdk:component:sensor/air" in line
        assert "own_module.py:" in line
        size = len(running.log())
        await trio.sleep(1)
        assert len(running.log()) - size < 2000, "at debug, sending the log must not be logged for ever"


def program(folder: Path) -> str:
    path = folder / "own"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} {OWN} "$@"\n')
    path.chmod(0o755)
    return str(path)


async def test_an_api_of_the_module_through_the_machine(tmp_path: Path) -> None:
    from tests.helpers import summation

    for name in ("adder", "user"):
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {summation.__file__} "$@"\n')
        path.chmod(0o755)
    api = "acme:service:summation"
    document = {
        "modules": [
            {"name": "adder", "executable_path": str(tmp_path / "adder"), "env": {"OFFER": "PlainSummation"}},
            {"name": "user", "executable_path": str(tmp_path / "user"), "env": {"OFFER": "Total"}},
        ],
        "components": [
            {"name": "plain", "api": SENSOR, "model": "fake"},
            {
                "name": "total",
                "api": SENSOR,
                "model": "acme:demo:total",
                "attributes": {"summation": "sums", "sensor": "plain"},
            },
        ],
        "services": [{"name": "sums", "api": api, "model": "acme:demo:summation"}],
    }
    async with server(tmp_path, document, running=True) as running, running.client() as client:
        await until_ready(client, "total", "sums")
        assert await client.call(api, "sums", "sum", numbers=[1, 2.5]) == 3.5
        async with aclosing(client.stream(api, "sums", "partial", numbers=[1, 2, 3])) as partial:
            assert [item async for item in partial] == [1, 3, 6]
        assert await client.call(SENSOR, "total", "get_readings") == {"total": 6, "last": 6}
        with pytest.raises(MachineError, match="a number is negative"):
            await client.call(api, "sums", "sum", numbers=[-1])
