"""Capture by the real process: killed at any moment, in a folder without write permission, of modules and remotes."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Mapping
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
import trio
from google.protobuf.json_format import MessageToDict
from google.protobuf.proto import parse_length_prefixed
from viam.gen.app.datasync.v1.data_sync_pb2 import DataCaptureMetadata, DataType, SensorData

from rpc.api.client import ApiClient
from tests.e2e.modules.support import program
from tests.e2e.server.process import Server, server

MANAGER = "rdk:service:data_manager"
COUNTER = {"MACHINE_MODELS": "tests.e2e.data.drivers:Counter"}


def capturing(method: str, frequency: float, **more: Any) -> list[dict[str, Any]]:
    methods = [{"method": method, "capture_frequency_hz": frequency, **more}]
    return [{"type": "data_manager", "attributes": {"capture_methods": methods}}]


def document(folder: Path, *components: Mapping[str, Any], **attributes: Any) -> dict[str, Any]:
    manager = {"name": "data", "api": MANAGER, "attributes": {"capture_dir": str(folder), **attributes}}
    return {"components": list(components), "services": [manager]}


def counter(frequency: float) -> dict[str, Any]:
    return {
        "name": "counter",
        "api": "rdk:component:sensor",
        "model": "test:data:counter",
        "service_configs": capturing("Readings", frequency),
    }


def official(path: Path) -> tuple[Any, list[Any]]:
    """Return a file as the messages of the official SDK, read by protobuf's own reader of delimited messages."""
    with path.open("rb") as file:
        header = parse_length_prefixed(DataCaptureMetadata, file)
        readings = []
        while (reading := parse_length_prefixed(SensorData, file)) is not None:
            readings.append(reading)
    return header, readings


def closed(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.capture"))


def numbers(folder: Path) -> dict[str, list[int]]:
    """Return the numbers in the closed files, by the life of the process that returned them."""
    result: dict[str, list[int]] = {}
    for path in closed(folder):
        for reading in official(path)[1]:
            values = MessageToDict(reading.struct)["readings"]
            result.setdefault(values["life"], []).append(int(values["number"]))
    return result


async def until(condition: Any, limit: float = 30) -> None:
    """Wait until another process has changed files as expected."""
    with trio.fail_after(limit):
        while not condition():  # noqa: ASYNC110 - another process makes it true
            await trio.sleep(0.02)


async def status(client: ApiClient) -> Mapping[str, Any]:
    answer: Mapping[str, Any] = await client.call(MANAGER, "data", "get_status")
    return answer


def whole(data: bytes) -> int:
    """Return the number of complete readings in a file's bytes."""
    from runtime.parts.data.files.read import parse

    return len(parse(Path("x"), data).readings)


async def test_a_kill_at_any_moment_neither_loses_nor_repeats_readings(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    moments = random.Random(seed)
    seen: dict[str, int] = {}
    earlier = 0  # readings of earlier lives: at least the counted ones, as each process ran a moment longer
    for life in map(str, range(8)):
        expected = document(folder, counter(400), maximum_capture_file_size_bytes=2000)
        async with server(tmp_path, expected, env={**COUNTER, "TEST_LIFE": life}) as running:
            before = set(closed(folder))
            await until(lambda before=before: len(set(closed(folder)) - before) > 2)
            await trio.sleep(moments.uniform(0, 0.3))
            there = {path: path.read_bytes() for path in closed(folder)}
            open_files = {path: _read(path) for path in folder.rglob("*.prog")}
            os.kill(running.process.pid, SIGKILL)
            await running.process.wait()
        for path, data in there.items():
            assert path.read_bytes() == data, "a closed file never changes"
        for path, data in open_files.items():
            now = _read(path) or _read(path.with_suffix(".capture"))
            assert now.startswith(data), "what was written stays"
        seen[life] = sum(map(whole, there.values())) + sum(map(whole, open_files.values())) - earlier
        earlier = sum(whole(path.read_bytes()) for path in (*closed(folder), *folder.rglob("*.prog")))
    async with server(tmp_path, document(folder), running=True, env={"TEST_LIFE": ""}) as running:
        async with running.client() as client:
            recovered = (await status(client))["recovered"]
        assert recovered["damaged"] == 0
    assert not list(folder.rglob("*.prog"))
    result = numbers(folder)
    print({life: len(values) for life, values in result.items()})
    assert result.keys() == seen.keys()
    for life, values in result.items():
        assert values == list(range(len(values))), life
        assert len(values) >= seen[life] > 0, "what was seen in files before the kill is there after it"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


async def test_an_orderly_stop_closes_all_files_in_the_published_form(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    eye = {
        "name": "eye",
        "api": "rdk:component:camera",
        "model": "fake",
        "service_configs": capturing("GetImages", 10),
    }
    env = {**COUNTER, "TEST_LIFE": "x"}
    async with server(tmp_path, document(folder, counter(100), eye, tags=["t"]), running=True, env=env) as running:
        await until(lambda: len(list(folder.rglob("*.*"))) > 4)
        assert await running.stop() == 0
    assert not list(folder.rglob("*.prog"))
    (readings,) = closed(folder / "rdk_component_sensor" / "counter" / "Readings")
    header, result = official(readings)
    assert header.component_type == "rdk:component:sensor"
    assert header.type == DataType.DATA_TYPE_TABULAR_SENSOR
    assert list(header.tags) == ["t"]
    assert [item.struct["readings"]["number"] for item in result] == list(range(len(result)))
    times = [element.metadata.time_requested.ToNanoseconds() for element in result]
    assert times == sorted(times)
    for path in closed(folder / "rdk_component_camera" / "eye" / "GetImages"):
        header, (picture,) = official(path)
        assert header.type == DataType.DATA_TYPE_BINARY_SENSOR
        assert (header.mime_type, header.file_extension) == ("image/jpeg", ".jpeg")
        assert picture.binary.startswith(b"\xff\xd8\xff")
        assert picture.metadata.annotations.classifications[0].label == "color"


async def test_repeated_changes_of_the_configuration_lose_no_reading(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    env = {**COUNTER, "TEST_LIFE": "x"}
    expected = document(folder, counter(200))
    async with server(tmp_path, expected, running=True, env=env) as running, running.client() as client:
        for round_ in range(6):
            await until(lambda: list(folder.rglob("*.prog")))
            another = document(folder, counter(201 + round_))
            running.write({"network": {"bind_address": "localhost:0"}, **another})
            count = len(closed(folder))
            await until(lambda count=count: len(closed(folder)) > count)
        state = (await status(client))["methods"]["rdk:component:sensor/counter Readings"]
        assert state["failed"] == 0
        assert state["lost"] == 0
        assert await running.stop() == 0
    (values,) = numbers(folder).values()
    assert values == list(range(len(values)))


async def test_an_unwritable_folder_is_reported_and_retried(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    folder.write_text("in the way")
    env = {**COUNTER, "TEST_LIFE": "x"}
    async with server(tmp_path, document(folder, counter(50)), running=True, env=env) as running:
        assert "something on that path is a file" in running.log()
        folder.unlink()
        await until(lambda: list(folder.rglob("*.prog")))


async def sync(running: Server, client: ApiClient) -> str:
    with pytest.raises(Exception, match="is in closed files") as caught:
        await client.call(MANAGER, "data", "sync")
    return str(caught.value)


async def test_sync_and_the_command_line_read_the_captured_files(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    env = {**COUNTER, "TEST_LIFE": "x"}
    expected = document(folder, counter(50))
    async with server(tmp_path, expected, running=True, env=env) as running, running.client() as client:
        await until(lambda: list(folder.rglob("*.prog")))
        assert "machine data export" in await sync(running, client)
        assert closed(folder)
        out = tmp_path / "x.jsonl"
        command = [str(Path(os.sys.executable).with_name("machine")), "data"]  # type: ignore[attr-defined]
        done = await trio.run_process([*command, "ls", str(folder)], capture_stdout=True)
        assert b"rdk:component:sensor/counter Readings" in done.stdout
        await trio.run_process([*command, "export", str(folder), "-o", str(out)], capture_stderr=True)
        assert len(out.read_text().splitlines()) > 0


async def test_a_resource_of_a_module_is_captured(tmp_path: Path) -> None:
    folder = tmp_path / "capture"
    air = {
        "name": "air",
        "api": "rdk:component:sensor",
        "model": "acme:demo:thermometer",
        "attributes": {"offset": 1},
        "service_configs": capturing("Readings", 20),
    }
    expected = {**document(folder, air), "modules": [{"name": "demo", "executable_path": program(tmp_path)}]}
    async with server(tmp_path, expected, running=True) as running:
        await until(lambda: list(folder.rglob("*.prog")))
        first = next(folder.rglob("*.prog"))
        await until(lambda: whole(_read(first)) > 2)
        assert await running.stop() == 0
    header, readings = official(closed(folder)[0])
    assert header.component_name == "air"
    assert readings[0].struct["readings"]["temperature_c"] == 21.5


async def test_a_resource_of_a_remote_is_captured_again_after_its_restart(tmp_path: Path) -> None:
    there, here, folder = tmp_path / "there", tmp_path / "here", tmp_path / "capture"
    there.mkdir()
    here.mkdir()
    far = {"components": [{"name": "air", "api": "rdk:component:sensor", "model": "fake"}]}
    async with server(there, far, running=True) as other:
        port = other.address.rpartition(":")[2]
        remote = {
            "name": "pi",
            "address": f"localhost:{port}",
            "insecure": True,
            "service_configs": capturing("Readings", 20, name="rdk:component:sensor/air"),
        }
        async with server(here, {**document(folder), "remotes": [remote]}, running=True) as running:
            await until(lambda: list(folder.rglob("*.prog")))
            assert await other.stop() == 0
            await until(lambda: "capture fails" in running.log())
            again = {**far, "network": {"bind_address": f"localhost:{port}"}}
            async with server(there, again, running=True):
                await until(lambda: "capture works again" in running.log())
            assert await running.stop() == 0
    headers = {(header.component_name, len(result) > 0) for header, result in map(official, closed(folder))}
    assert headers == {("air", True)}, "as the remote calls it"


@pytest.mark.parametrize("method", ["GetImages", "ReadImage"])
async def test_images_of_a_module_with_only_get_image_are_captured(tmp_path: Path, method: str) -> None:
    folder = tmp_path / "capture"
    old = {
        "name": "old",
        "api": "rdk:component:camera",
        "model": "acme:old:camera",
        "service_configs": capturing(method, 10),
    }
    expected = document(folder, old)
    expected["modules"] = [{"name": "old", "executable_path": program(tmp_path, fixture="old_camera.py")}]
    async with server(tmp_path, expected, running=True, env={"MACHINE_HOME": str(tmp_path / "home")}) as running:
        await until(lambda: bool(list(folder.rglob("*.*"))))
        assert await running.stop() == 0
    header, (picture,) = official(closed(folder / "rdk_component_camera" / "old" / method)[0])
    assert header.mime_type == "image/jpeg"
    assert picture.binary == b"\xff\xd8old\xff\xd9"
