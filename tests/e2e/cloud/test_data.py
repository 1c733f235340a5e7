"""Captured data: the unmodified official SDK and a plain HTTP client against machine-cloud as a process."""

from __future__ import annotations

import asyncio
import io
import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
import trio
from grpclib import GRPCError, Status
from PIL import Image
from viam.app.data_client import DataClient
from viam.app.viam_client import ViamClient
from viam.proto.app.data import BinaryID, Filter, Order, TagsFilter, TagsFilterType
from viam.rpc.dial import DialOptions

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import CloudProcess, cloud

APP = "viam.app.v1.AppService"
LIMIT = 60  # seconds for all SDK calls of a test
START = datetime(2026, 1, 1, tzinfo=UTC)


def at(number: float) -> datetime:
    return START + timedelta(seconds=number)


def times(number: float) -> tuple[datetime, datetime]:
    return at(number), at(number + 0.5)


def picture(color: str = "red") -> bytes:
    created = io.BytesIO()
    Image.new("RGB", (16, 8), color).save(created, "PNG")
    return created.getvalue()


class Running:
    """A cloud with one machine."""

    def __init__(self, process: CloudProcess, part: str) -> None:
        self.process = process
        self.part = part
        self.organization = process.facts["organization"]

    async def sdk(self, work: Callable[[DataClient], Awaitable[None]]) -> None:
        """Run a function on the SDK's own loop, in a thread."""

        async def main() -> None:
            key_id, key = self.process.key
            options = DialOptions.with_api_key(key, key_id)
            options.insecure = True
            async with asyncio.timeout(LIMIT):
                client = await ViamClient.create_from_dial_options(options, app_url=f"http://{self.process.address}")
                try:
                    await work(client.data_client)
                finally:
                    client.close()

        await trio.to_thread.run_sync(lambda: asyncio.run(main()))

    async def get(self, url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Send a request with a plain HTTP client."""

        def fetch() -> tuple[int, dict[str, str], bytes]:
            request = urllib.request.Request(url, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=LIMIT) as answer:
                    return answer.status, dict(answer.headers), answer.read()
            except urllib.error.HTTPError as error:
                with error:
                    return error.code, dict(error.headers), error.read()

        return await trio.to_thread.run_sync(fetch)

    async def token(self) -> str:
        key_id, key = self.process.key
        async with Channel(self.process.address) as channel:
            answer = await ApiClient(channel).call(
                "proto.rpc.v1.AuthService",
                "",
                "authenticate",
                entity=key_id,
                credentials={"type": "api-key", "payload": key},
            )
        return str(answer)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with cloud(tmp_path) as process:
        async with process.client() as client:
            robot = await client.call(APP, "", "new_robot", name="rover", location=process.facts["location"])
            part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
        yield Running(process, part)


async def test_readings_from_upload_to_query(running: Running) -> None:
    part, organization = running.part, running.organization
    source = (part, "thermometer", "rdk:component:sensor", "Readings")

    async def work(data: DataClient) -> None:
        assert await data.get_latest_tabular_data(*source) is None
        uploaded = [{"readings": {"t": 20.0 + number, "ok": True}} for number in range(5)]
        arguments: dict[str, Any] = {
            "part_id": part,
            "component_type": "rdk:component:sensor",
            "component_name": "thermometer",
            "method_name": "Readings",
            "tags": ["lab"],
            "data_request_times": [times(number) for number in range(5)],
            "tabular_data": uploaded,
        }
        first = await data.tabular_data_capture_upload(**arguments)
        assert first == await data.tabular_data_capture_upload(**arguments)  # repeated, as if the answer had been lost
        latest = await data.get_latest_tabular_data(*source)
        assert latest is not None
        assert (latest[0].replace(tzinfo=UTC), latest[2]) == (at(4), uploaded[4])
        points = await data.export_tabular_data(*source)
        assert [point.payload for point in points] == uploaded
        assert (points[0].robot_name, points[0].tags, points[0].resource_api) == ("rover", ["lab"], source[2])
        part_of = await data.export_tabular_data(*source, start_time=at(1), end_time=at(3))
        assert [item.payload for item in part_of] == uploaded[1:3]
        result, count, last = await data.tabular_data_by_filter(Filter(component_name="thermometer"), limit=3)
        assert (len(result), count) == (3, 3)
        rest, _, _ = await data.tabular_data_by_filter(Filter(component_name="thermometer"), limit=3, last=last)
        assert [element.data for element in result + rest] == uploaded
        assert result[0].metadata.component_type == "sensor"
        rows = await data.tabular_data_by_sql(
            organization, "SELECT MAX(data.readings.t) AS top, COUNT(*) AS n FROM readings"
        )
        assert rows == [{"top": 24.0, "n": 5}]
        (row,) = await data.tabular_data_by_sql(organization, "SELECT * FROM readings ORDER BY time_requested LIMIT 1")
        assert (row["data"], row["component_name"], row["tags"]) == (uploaded[0], "thermometer", ["lab"])
        with pytest.raises(GRPCError) as caught:
            await data.tabular_data_by_sql(organization, "DELETE FROM readings")
        assert caught.value.status is Status.INVALID_ARGUMENT
        stages = [{"$group": {"_id": "$component_name", "top": {"$max": "$data.readings.t"}}}]
        assert await data.tabular_data_by_mql(organization, stages) == [{"_id": "thermometer", "top": 24.0}]
        with pytest.raises(GRPCError, match="lookup") as caught:
            await data.tabular_data_by_mql(organization, [{"$lookup": {"from": "keys"}}])
        assert caught.value.status is Status.INVALID_ARGUMENT
        assert await data.delete_tabular_data(organization, 0) == 5
        assert await data.export_tabular_data(*source) == []

    await running.sdk(work)


async def test_images_and_files_from_upload_to_deletion(running: Running, tmp_path: Path) -> None:
    part = running.part
    path = tmp_path / "notes.txt"
    path.write_bytes(b"notes")

    async def work(data: DataClient) -> None:
        created = await data.create_dataset("cats", running.organization)
        eye = {"part_id": part, "component_type": "camera", "component_name": "eye", "method_name": "GetImages"}
        first = await data.binary_data_capture_upload(
            binary_data=picture("red"),
            file_extension="png",
            data_request_times=times(0),
            tags=["red"],
            dataset_ids=[created],
            **eye,
        )
        second = await data.streaming_data_capture_upload(
            data=picture("blue"), file_ext="png", data_request_times=times(1), tags=["blue"], **eye
        )
        third = await data.file_upload_from_path(part_id=part, filepath=str(path), tags=["text"])
        fourth = await data.file_upload(part_id=part, data=b"", file_name="empty", file_extension=".bin")
        result, count, _ = await data.binary_data_by_filter(Filter(component_type="camera"))
        assert ([element.metadata.binary_data_id for element in result], count) == ([first, second], 2)
        assert result[0].binary == picture("red")
        assert result[0].metadata.capture_metadata.mime_type == "image/png"
        ids, last = [], ""
        while True:
            page, _, last = await data.binary_data_by_filter(
                limit=1, last=last, include_binary_data=False, sort_order=Order.ORDER_ASCENDING
            )
            if not page:
                break
            ids += [entry.metadata.binary_data_id for entry in page]
        assert ids == [first, second, third, fourth]
        (item,) = await data.binary_data_by_ids([third])
        assert (item.binary, item.metadata.file_name, item.metadata.file_ext) == (b"notes", "notes", ".txt")
        old = BinaryID(file_id=first, organization_id=running.organization, location_id="x")
        (item,) = await data.binary_data_by_ids([old])
        assert item.metadata.dataset_ids == [created]

        await data.add_tags_to_binary_data_by_ids(["good"], [first, second])
        await data.add_tags_to_binary_data_by_filter(["seen"], Filter(part_id=part))
        assert await data.tags_by_filter() == ["blue", "good", "red", "seen", "text"]
        assert await data.remove_tags_from_binary_data_by_ids(["good"], [old]) == 1
        assert await data.remove_tags_from_binary_data_by_filter(["seen"]) == 4
        untagged = TagsFilter(type=TagsFilterType.TAGS_FILTER_TYPE_UNTAGGED)
        page, _, _ = await data.binary_data_by_filter(Filter(tags_filter=untagged), include_binary_data=False)
        assert [item.metadata.binary_data_id for item in page] == [fourth]

        box = await data.add_bounding_box_to_image_by_id(first, "cat", 0, 0.1, 0.5, 0.6, confidence_score=0.9)
        await data.update_bounding_box(first, box, "dog", 0, 0.1, 0.5, 0.7)
        assert await data.bounding_box_labels_by_filter() == ["dog"]
        (item,) = await data.binary_data_by_ids([first], include_binary_data=False)
        assert [(b.label, b.y_max_normalized) for b in item.metadata.annotations.bboxes] == [("dog", 0.7)]
        assert item.binary == b""
        await data.remove_bounding_box_from_image_by_id(box, first)

        assert await data.delete_binary_data_by_ids([fourth]) == 1
        with pytest.raises(GRPCError) as caught:
            await data.delete_binary_data_by_filter(None)
        assert caught.value.status is Status.INVALID_ARGUMENT
        assert await data.delete_binary_data_by_filter(Filter(component_name="eye")) == 2
        with pytest.raises(GRPCError) as caught:
            await data.binary_data_by_ids([first])
        assert caught.value.status is Status.NOT_FOUND

    await running.sdk(work)
    kept = [path for path in (tmp_path / "data" / "files").glob("??/*") if path.is_file()]
    assert len(kept) == 4, "the content of deleted files stays for seven days"
    with closing(sqlite3.connect(tmp_path / "data" / "cloud.db")) as database:
        named = {blob for (blob,) in database.execute("SELECT blob FROM files")}
        trash = {blob for (blob,) in database.execute("SELECT blob FROM trash WHERE deleted = 1")}
    content = {path.name: path.read_bytes() for path in kept}
    assert [content[blob] for blob in named] == [b"notes"]
    assert len(trash) == 3
    assert trash.isdisjoint(named)


async def test_a_large_file_in_one_message_and_one_that_is_too_large(running: Running) -> None:
    async def work(data: DataClient) -> None:
        large = bytes(60 * 1024 * 1024)
        subject = await data.file_upload(part_id=running.part, data=large, file_name="large.bin")
        (item,) = await data.binary_data_by_ids([subject], include_binary_data=False)
        assert item.metadata.file_size_bytes == len(large)
        with pytest.raises(GRPCError) as caught:
            await data.binary_data_by_ids([subject])
        assert caught.value.status is Status.RESOURCE_EXHAUSTED
        with pytest.raises(GRPCError) as caught:
            await data.file_upload(part_id=running.part, data=bytes(65 * 1024 * 1024), file_name="larger.bin")
        assert caught.value.status is Status.RESOURCE_EXHAUSTED
        url, expires = await data.create_binary_data_signed_url(subject)
        assert expires.replace(tzinfo=UTC) > datetime.now(UTC)
        links.append(url)

    links: list[str] = []
    await running.sdk(work)
    status, headers, body = await running.get(links[0], Range="bytes=1000-1009")
    assert (status, body, headers["content-range"]) == (206, bytes(10), "bytes 1000-1009/62914560")
    status, headers, body = await running.get(links[0])
    assert (status, len(body)) == (200, 60 * 1024 * 1024)
    assert (await running.get(links[0] + "0"))[0] == 403


async def test_exports_and_pages_over_http(running: Running) -> None:
    count = 2500

    async def work(data: DataClient) -> None:
        await data.tabular_data_capture_upload(
            part_id=running.part,
            component_type="sensor",
            component_name="s",
            method_name="Readings",
            data_request_times=[times(number) for number in range(count)],
            tabular_data=[{"readings": {"n": float(number)}} for number in range(count)],
        )

    await running.sdk(work)
    base, token = f"http://{running.process.address}", f"Bearer {await running.token()}"
    status, _, body = await running.get(f"{base}/data/export?format=csv&component=s", Authorization=token)
    lines = body.decode().splitlines()
    assert (status, len(lines)) == (200, count + 1)
    status, _, body = await running.get(f"{base}/data/export?format=parquet", Authorization=token)
    table = parquet.read_table(io.BytesIO(body), use_threads=False)
    assert table["readings.n"].to_pylist() == [float(number) for number in range(count)]
    status, _, body = await running.get(f"{base}/data?view=readings&plots=drawn", Authorization=token)
    assert (status, b"<polyline" in body) == (200, True)
    assert (await running.get(f"{base}/data/export?format=csv"))[0] == 401
    status, _, body = await running.get(f"{base}/files/nothing", Authorization=token, Accept="application/json")
    assert (status, "file" in json.loads(body)["error"]) == (404, True)


async def test_a_part_uploads_with_its_secret(running: Running) -> None:
    async with running.process.client() as client:
        secret = (await client.call(APP, "", "get_robot_part", id=running.part))["part"]["secret"]
    machine = ApiKey(running.part, secret, type="robot-secret")
    async with Channel(running.process.address, credentials=machine) as channel:
        sent = await ApiClient(channel).call(
            "viam.app.datasync.v1.DataSyncService",
            "",
            "file_upload",
            part_id=running.part,
            file_name="a.bin",
            contents=[{"data": bytes(64 * 1024)} for _ in range(40)],
        )
    async with running.process.client() as client:
        answer = await client.call(
            "viam.app.data.v1.DataService", "", "binary_data_by_ids", binary_data_ids=[sent["binary_data_id"]]
        )
    assert answer["data"][0]["metadata"]["file_size_bytes"] == 40 * 64 * 1024


async def test_the_size_of_messages_is_an_option(tmp_path: Path) -> None:
    async with cloud(tmp_path, "--max-message", "4", "--max-file", "1") as process, process.client() as client:
        robot = await client.call(APP, "", "new_robot", name="rover", location=process.facts["location"])
        part = (await client.call(APP, "", "get_robot_parts", robot_id=robot))[0]["id"]
        too_large = (([5 * 1024 * 1024], ErrorKind.EXHAUSTED), ([1024 * 1024, 1], ErrorKind.INVALID))
        for sizes, kind in too_large:  # a message, which may be split; a file, which is refused permanently
            with pytest.raises(MachineError) as caught:
                await client.call(
                    "viam.app.datasync.v1.DataSyncService",
                    "",
                    "file_upload",
                    part_id=part,
                    contents=[{"data": bytes(size)} for size in sizes],
                )
            assert caught.value.kind is kind
