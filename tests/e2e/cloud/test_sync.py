"""machine-server captures and machine-cloud stores; both are killed in between; the official SDK reads the result."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import trio
from viam.app.data_client import DataClient
from viam.app.viam_client import ViamClient
from viam.proto.app.data import Filter
from viam.rpc.dial import DialOptions

from runtime.parts.data.files.read import capture_files, moment, read_capture_file
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.cloud.relay import relay
from tests.e2e.server.process import server

APP = "viam.app.v1.AppService"
LIMIT = 60  # seconds for all calls of one question to the SDK
SENSOR, CAMERA = "thermometer", "eye"


def document(capture: Path) -> dict[str, Any]:
    def capturing(name: str, kind: str, method: str, frequency: float) -> dict[str, Any]:
        expected = {"capture_methods": [{"method": method, "capture_frequency_hz": frequency}]}
        return {
            "name": name,
            "api": f"rdk:component:{kind}",
            "model": "fake",
            "service_configs": [{"type": "data_manager", "attributes": expected}],
        }

    attributes = {"capture_dir": str(capture), "sync_interval_mins": 0.01, "tags": ["trial"]}
    return {
        "components": [capturing(SENSOR, "sensor", "Readings", 20), capturing(CAMERA, "camera", "GetImages", 4)],
        "services": [{"name": "data", "api": "rdk:service:data_manager", "attributes": attributes}],
    }


async def ask(key: tuple[str, str], address: str, work: Callable[[DataClient], Awaitable[Any]]) -> Any:
    """Run a function with the SDK, on its own loop in a thread."""

    async def main() -> Any:
        options = DialOptions.with_api_key(key[1], key[0])
        options.insecure = True
        async with asyncio.timeout(LIMIT):
            client = await ViamClient.create_from_dial_options(options, app_url=f"http://{address}")
            try:
                return await work(client.data_client)
            finally:
                client.close()

    return await trio.to_thread.run_sync(lambda: asyncio.run(main()))


async def kept(running: CloudProcess, key: tuple[str, str], part: str) -> tuple[list[datetime], list[datetime]]:
    """Return the times of the readings and of the images in the cloud; every row counts."""

    async def work(data: DataClient) -> tuple[list[datetime], list[datetime]]:
        rows = await data.export_tabular_data(part, SENSOR, "rdk:component:sensor", "Readings")
        assert all(set(row.payload) == {"readings"} for row in rows)
        assert all(row.tags == ["trial"] for row in rows)
        pictures, last = [], ""
        while True:
            expected = Filter(component_name=CAMERA, part_id=part)
            page, _, last = await data.binary_data_by_filter(expected, limit=100, last=last, include_binary_data=False)
            if not page:
                break
            pictures += [item.metadata.time_requested.ToDatetime() for item in page]
        return [row.time_captured.replace(tzinfo=None) for row in rows], pictures

    answer: tuple[list[datetime], list[datetime]] = await ask(key, running.address, work)
    return answer


def waiting(folder: Path) -> tuple[set[datetime], set[datetime]]:
    """Return the times of the readings and of the images on the machine's disk."""
    readings: set[datetime] = set()
    pictures: set[datetime] = set()
    for path in capture_files(folder):
        for reading in read_capture_file(path).readings:
            result = readings if reading.WhichOneof("data") == "struct" else pictures
            result.add(moment(reading.metadata.time_requested).replace(tzinfo=None))
    return readings, pictures


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Repeat a check until it is true, as a client does."""
    while True:
        if await true():
            return
        await trio.sleep(0.2)


async def test_captured_data_are_in_the_cloud_once_despite_kills(tmp_path: Path) -> None:
    folder, home, capture = tmp_path / "cloud", tmp_path / "machine", tmp_path / "capture"
    home.mkdir()
    async with cloud(folder) as first, relay(first.address) as between:
        key = first.key
        async with first.client() as client:
            robot = await client.call(APP, "", "new_robot", name="rover", location=first.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]
            text = json.dumps(document(capture))
            await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{between.address}"}

        async def both(running: CloudProcess) -> bool:
            return all(await kept(running, key, part["id"]))

        async def enough() -> bool:
            return min(map(len, waiting(capture))) >= 8

        async def everything(running: CloudProcess) -> bool:
            rows, images = await kept(running, key, part["id"])
            return readings <= set(rows) and pictures <= set(images)

        async with server(home, {"cloud": credentials}, "-disable-mdns") as machine:
            with trio.fail_after(LIMIT):
                await until(lambda: both(first))
            first.process.kill()
            with trio.fail_after(LIMIT):
                await until(enough)
            machine.process.kill()
            await machine.process.wait()
        readings, pictures = waiting(capture)
        assert readings
        assert pictures

        async with server(home, {"cloud": credentials}, "-disable-mdns"):
            async with cloud(folder) as second:
                between.target = second.address
                await trio.sleep(1.0)  # long enough to be in the middle of the upload
                second.process.kill()
            async with cloud(folder) as third:
                between.target = third.address
                with trio.fail_after(LIMIT):
                    await until(lambda: everything(third))
                rows, images = await kept(third, key, part["id"])
                assert len(rows) == len(set(rows)), "nothing twice"
                assert len(images) == len(set(images))

                async def content(data: DataClient) -> Any:
                    page, _, _ = await data.binary_data_by_filter(Filter(component_name=CAMERA), limit=1)
                    return page[0]

                answer = await ask(key, third.address, content)
                assert answer.binary[:3] in (b"\xff\xd8\xff", b"\x89PN")
                assert answer.metadata.capture_metadata.mime_type in ("image/jpeg", "image/png")
                assert answer.metadata.annotations.classifications[0].label, "its source"
