"""Triggers over HTTP: values that are not valid JSON are refused."""

from __future__ import annotations

import json

import pytest

from cloud.server.memory import MemoryCloud
from cloud.web.api.triggers_api import path_of
from tests.unit.cloud.pages import HOST, signed_in
from tests.unit.cloud.triggering_help import configure, hotter, log
from tests.unit.runtime.parts.web.client import HTML


@pytest.mark.parametrize("call", ["explain", "test"])
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{}", 200),
        (b'{"reading": {"celsius": 31}}', 200),
        (b'{"reading": {"celsius": "\\ud800"}}', 400),
        (b'{"reading": {"\\udfff": 1}}', 400),
        (b'{"reading": {"celsius": NaN}}', 400),
        (b'{"reading": {"celsius": 1e999}}', 400),
        (b'{"reading": {"celsius": ' + b"9" * 5000 + b"}}", 400),
        (b'{"reading": {"a": ' + b"[" * 40 + b"]" * 40 + b"}}", 400),
        (b'{"reading": 5}', 400),
        (b'{"value": "\\ud800"}', 200),
        (b"[" * 5000, 400),
        (b"\xff", 400),
    ],
)
async def test_an_invalid_reading(cloud: MemoryCloud, part: str, call: str, body: bytes, status: int) -> None:
    await configure(cloud, part, hotter("hot", 30))
    made = await signed_in(cloud)
    headers = {**HTML, "origin": f"http://{HOST}", "content-type": "application/json"}
    reply = await made.send("POST", path_of(part, "triggers", "hot", call), headers, body)
    if call == "test" and b'"value"' in body:
        status = 404  # no such target
    assert reply.status == status, reply.text
    assert ("error" in json.loads(reply.text)) is (status != 200)
    assert len(await log(cloud, part)) == (call == "test" and status == 200)
