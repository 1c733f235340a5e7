"""What the tab Control does in the cloud: snapshots into datasets, and discovered resources into the configuration."""

from __future__ import annotations

import io
import json

from PIL import Image

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.values.limits import FORM
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.replicas import operator_key
from tests.unit.runtime.parts.web.client import JSON, Browser, Reply

CAMERA = {"name": "eye", "api": "rdk:component:camera", "model": "webcam", "attributes": {"video_path": "/dev/video0"}}


def jpeg() -> bytes:
    picture = io.BytesIO()
    Image.new("RGB", (32, 24), "teal").save(picture, "JPEG")
    return picture.getvalue()


async def send(person: Browser, path: str, body: bytes) -> Reply:
    headers = {**JSON, "origin": f"http://{HOST}", "content-type": "image/jpeg"}
    return await person.send("POST", path, headers, body)


async def test_a_snapshot_goes_into_a_dataset(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    path = f"/machines/{part}/snapshots"
    assert (await person.get(path, JSON)).json() == []
    await post(person, "/datasets", name="parts", organization=cloud.first.organization)
    (dataset,) = (await person.get(path, JSON)).json()
    assert dataset["name"] == "parts"
    reply = await send(person, f"{path}?component=eye&dataset={dataset['id']}", jpeg())
    assert reply.status == 200, reply.text
    page = (await person.get(f"/datasets/{dataset['id']}")).text
    assert reply.json()["id"] in page
    data = (await person.get(f"/data?part={part}")).text
    assert "eye" in data
    assert (await send(person, f"{path}?component=eye", jpeg())).status == 200


async def test_snapshots_that_are_refused(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    path = f"/machines/{part}/snapshots?component=eye"
    reply = await send(person, path, b"<script>")
    assert (reply.status, reply.json()["error"]) == (400, "the picture is not a JPEG")
    assert (await send(person, path, b"\xff\xd8\xff" + bytes(FORM.value))).status == 400
    assert (await send(person, f"{path}&dataset=none", jpeg())).status == 404
    foreign = await person.send("POST", path, {**JSON, "origin": "http://evil.example"}, jpeg())
    assert foreign.status == 403
    operator = await signed_in(cloud, await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud)))
    assert (await send(operator, path, jpeg())).status == 403
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    stranger = await signed_in(cloud, (other.id, other.key))
    assert (await send(stranger, path, jpeg())).status == 404
    assert (await stranger.get(f"/machines/{part}/snapshots", JSON)).status == 404
    assert "eye" not in (await person.get(f"/data?part={part}")).text


async def test_discovered_resources_are_reviewed_before_they_are_saved(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    path = f"/machines/{part}/config"
    page = await post(person, path, action="insert", resources=json.dumps([CAMERA]))
    assert page.status == 200
    assert "Nothing is saved yet" in page.text
    assert "/dev/video0" in page.text
    assert "/dev/video0" not in (await person.get(path)).text
    wrong = await post(person, path, action="insert", resources="[]")
    assert wrong.status == 400
    assert "The resources are not a list" in wrong.text
    operator = await signed_in(cloud, await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud)))
    assert (await post(operator, path, action="insert", resources=json.dumps([CAMERA]))).status == 403
