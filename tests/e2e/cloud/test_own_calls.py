"""Calls of machine.cloud.v1 over a real port: the limits of their messages, and HTTP with JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpcore
import pytest

from cloud.services.target import MESSAGES
from rpc.api.cloud_v1 import ALERTS, HISTORY, RELEASES, TRIGGERS
from rpc.api.convert.names import python_name
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import ErrorKind, MachineError
from tests.e2e.cloud.process import cloud

ROOM = 1000  # bytes for the other fields
TRIGGER = {
    "name": "hot",
    "event": {
        "type": "conditional_data_ingested",
        "conditional": {
            "data_capture_method": "sensor:t:Readings",
            "conditions": {"evals": [{"operator": "gt", "value": {"t": 30}}]},
        },
    },
    "notifications": [{"type": "email", "value": "ada@example.com", "seconds_between_notifications": 0}],
}


def with_size(service: str, method: str, size: int) -> dict[str, Any]:
    """Return arguments of a call whose message has about this size."""
    if service == RELEASES:
        return {"organization_id": "none", "root_json": bytes(size // 2), "targets_json": bytes(size - size // 2)}
    if service == ALERTS:
        return {"organization_id": "none", "rule": {"message": "x" * size}}
    assert service == TRIGGERS, method
    return {"part_id": "none", "trigger": "none", "reading": {"a": "x" * size}}


async def test_messages_above_their_limits_are_refused(tmp_path: Path) -> None:
    async with cloud(tmp_path) as process, process.client() as client:
        for path, limit in MESSAGES.items():
            service, _, call = path.strip("/").partition("/")
            for size, kind in ((limit - ROOM, ErrorKind.NOT_FOUND), (limit + 1, ErrorKind.EXHAUSTED)):
                with pytest.raises(MachineError) as caught:
                    await client.call(service, "", python_name(call), **with_size(service, call, size))
                assert caught.value.kind is kind, (path, size)


async def test_calls_over_http_with_json(tmp_path: Path) -> None:
    async with cloud(tmp_path) as process, httpcore.AsyncConnectionPool() as pool:
        async with Channel(process.address, credentials=ApiKey(*process.key)) as channel:
            headers = dict(await ApiKey(*process.key).headers(channel))

        async def post(path: str, body: Any, **fields: str) -> tuple[int, Any]:
            sent = [(name.encode(), value.encode()) for name, value in fields.items()]
            reply = await pool.request(
                "POST", f"http://{process.address}/{path}", headers=sent, content=json.dumps(body).encode()
            )
            return reply.status, json.loads(reply.content)

        async with process.client() as client:
            robot = await client.call(
                "viam.app.v1.AppService", "", "new_robot", name="mill", location=process.facts["location"]
            )
            (part,) = await client.call("viam.app.v1.AppService", "", "get_robot_parts", robot_id=robot)
            document = {"triggers": [TRIGGER]}
            await client.call(
                "viam.app.v1.AppService",
                "",
                "update_robot_part",
                id=part["id"],
                name="",
                robot_config_json=json.dumps(document),
            )
        body = {"part_id": part["id"], "trigger": "hot", "reading": {"t": 31}}
        status, reply = await post(f"{TRIGGERS}/ExplainTrigger", body, **headers)
        assert (status, reply["explanation"]["fires"]) == (200, True)
        assert reply["explanation"]["findings"][0]["reason"] == "31 is greater than 30"
        status, reply = await post(f"{HISTORY}/ListPartRevisions", {"partId": part["id"], "limit": 1}, **headers)
        assert (status, json.loads(reply["revisions"][0]["documentJson"])) == (200, document)
        assert (await post(f"{TRIGGERS}/ExplainTrigger", body))[0] == 401
        status, reply = await post(f"{TRIGGERS}/ListTriggers", {"part_id": "nobody"}, **headers)
        assert (status, reply["code"]) == (404, 5)
        status, reply = await post(f"{TRIGGERS}/ExplainTrigger", {"part": "x"}, **headers)
        assert (status, reply["code"], "part" in reply["message"]) == (400, 3, True)


async def test_a_page_of_large_revisions(tmp_path: Path) -> None:
    app, texts = "viam.app.v1.AppService", [letter * 3_000_000 for letter in "abc"]
    async with cloud(tmp_path) as process, process.client() as client:
        robot = await client.call(app, "", "new_robot", name="mill", location=process.facts["location"])
        (part,) = await client.call(app, "", "get_robot_parts", robot_id=robot)
        for text in texts:
            document = json.dumps({"text": text})
            await client.call(app, "", "update_robot_part", id=part["id"], name="", robot_config_json=document)
        page = await client.call(HISTORY, "", "list_part_revisions", part_id=part["id"])
        assert [json.loads(revision["document_json"])["text"] for revision in page] == texts[:0:-1]
