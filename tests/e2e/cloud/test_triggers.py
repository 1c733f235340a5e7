"""Triggers with real processes: a machine that comes and goes, a real mail server, kills during deliveries."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
import trio
from standardwebhooks.webhooks import Webhook

from rpc.api.client import ApiClient
from rpc.client.channel import Channel
from rpc.client.credentials import ApiKey
from schema.errors import MachineError
from tests.e2e.cloud.brisk import SILENCE
from tests.e2e.cloud.process import CloudProcess, cloud
from tests.e2e.server.process import server
from tests.e2e.triggers.receiver import Received, receiver
from tests.e2e.triggers.test_smtp import server as mail_server

APP: Final = "viam.app.v1.AppService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
KILLS: Final = int(os.environ.get("MACHINE_CLOUD_KILLS", "5"))
SECRET: Final = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
LIMIT: Final = 60.0


async def machine(running: CloudProcess, client: ApiClient, *triggers: dict[str, Any]) -> dict[str, Any]:
    """Create a machine with triggers; return its main part."""
    robot = await client.call(APP, "", "new_robot", name="rover", location=running.facts["location"])
    (part,) = await client.call(APP, "", "get_robot_parts", robot_id=robot)
    text = json.dumps({"triggers": triggers})
    await client.call(APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=text)
    return dict(part)


def trigger(name: str, event: str, *targets: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "event": {"type": event, **more}, "notifications": list(targets)}


async def test_a_machine_going_on_and_offline_sends_webhook_and_mail(tmp_path: Path) -> None:
    """Takes as long as a machine must be silent to be offline: seconds, in tests.e2e.cloud.brisk."""
    mail = tmp_path / "mail"
    mail.mkdir()
    async with receiver() as hooks, mail_server("starttls", mail) as post:
        options = (
            *("--webhook-allow", "127.0.0.0/8", "--smtp", f"localhost:{post.port}"),
            *("--smtp-from", "Cloud <cloud@example.com>", "--smtp-ca", str(mail / "cert.pem")),
        )
        brisk = cloud(tmp_path / "cloud", *options, module="tests.e2e.cloud.brisk")
        async with brisk as running, running.client() as client:
            hook = {"type": "webhook", "value": hooks.url()}
            part = await machine(
                running,
                client,
                trigger("on", "part_online", hook),
                trigger("off", "part_offline", hook, {"type": "email", "value": "ann@example.com"}),
            )
            folder = tmp_path / "machine"
            folder.mkdir()
            credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
            async with server(folder, {"cloud": credentials}, "-disable-mdns"):
                await until(lambda: len(hooks.requests) == 1, LIMIT)
            silent = trio.current_time()
            envelope, message = await post.message(SILENCE.total_seconds() + LIMIT)
            # Not when the connection closes: the machine may reconnect.
            assert trio.current_time() - silent > SILENCE.total_seconds() / 2
            await until(lambda: len(hooks.requests) == 2, LIMIT)
    online, offline = hooks.requests
    for request, name in ((online, "on"), (offline, "off")):
        headers = {key.lower(): value for key, value in request.headers.items()}
        assert (request.method, request.body) == ("GET", b"")
        assert headers["trigger-name"] == name
        assert (headers["machine-name"], headers["robot-id"]) == ("rover", part["robot"])
    assert envelope["to"] == ["ann@example.com"]
    assert (envelope["from"], envelope["tls"]) == ("cloud@example.com", True)
    assert message["From"] == "Cloud <cloud@example.com>"
    assert "went offline" in message["Subject"]
    assert f"/machines/{part['robot']}" in str(message)


@pytest.mark.limit(300 + 30 * KILLS)
async def test_kills_during_deliveries_lose_nothing_and_keep_ids_unique(tmp_path: Path) -> None:
    chance = random.Random(KILLS)
    trouble = random.Random(7)

    async def respond(stream: trio.abc.Stream, received: Received) -> None:
        """Answer late while the cloud is killed, and often with a failure."""
        await trio.sleep(trouble.uniform(0, 0.2) if turn < KILLS else 0)
        status = trouble.choice((200, 200, 503))
        await stream.send_all(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())

    acknowledged: list[int] = []
    key: tuple[str, str] | None = None
    part: dict[str, Any] = {}
    number = turn = 0
    async with receiver(respond) as hooks:
        hook = {"type": "webhook", "value": hooks.url(), "secret": SECRET}
        for turn in range(KILLS + 1):
            async with cloud(tmp_path, "--webhook-allow", "127.0.0.1") as running:
                if key is None:
                    key = running.key
                    async with running.client() as client:
                        part = await machine(
                            running,
                            client,
                            trigger("all", "part_data_ingested", hook, data_ingested={"data_types": ["tabular"]}),
                        )
                secret = ApiKey(part["id"], part["secret"], type="robot-secret")
                async with Channel(running.address, credentials=secret) as channel, trio.open_nursery() as nursery:
                    if turn < KILLS:
                        nursery.start_soon(kill, running, chance.uniform(0.1, 1.0))
                    try:
                        for _ in range(200 if turn < KILLS else 1):
                            number += 1
                            await upload(ApiClient(channel), part["id"], number)
                            acknowledged.append(number)
                            await trio.sleep(0.02)
                    except (MachineError, OSError, trio.BrokenResourceError, trio.ClosedResourceError):
                        assert turn < KILLS
                if turn == KILLS:
                    await until(lambda: set(acknowledged) <= delivered(hooks.requests), LIMIT)
    ids: dict[int, str] = {}
    for request in hooks.requests:
        Webhook(SECRET).verify(request.body, {name.lower(): value for name, value in request.headers.items()})
        name = {name.lower(): value for name, value in request.headers.items()}["webhook-id"]
        assert ids.setdefault(number_of(request), name) == name
    assert len(set(ids.values())) == len(ids)
    assert len(acknowledged) > KILLS
    again = sum(count - 1 for count in Counter(map(number_of, hooks.requests)).values())
    print(f"{KILLS} kills: {len(acknowledged)} uploads acknowledged, {len(hooks.requests)} requests, {again} again")


async def kill(running: CloudProcess, after: float) -> None:
    await trio.sleep(after)
    running.process.kill()


async def upload(client: ApiClient, part: str, number: int) -> None:
    now = datetime.now(UTC)
    metadata = {
        "part_id": part,
        "component_type": "rdk:component:sensor",
        "component_name": "oven",
        "method_name": "Readings",
        "type": "TABULAR_SENSOR",
    }
    piece = {"metadata": {"time_requested": now, "time_received": now}, "struct": {"readings": {"number": number}}}
    await client.call(SYNC, "", "data_capture_upload", metadata=metadata, sensor_contents=[piece])


def number_of(request: Received) -> int:
    data = json.loads(request.body)["data"]["data"]
    return int(data.get("readings", data)["number"])


def delivered(requests: list[Received]) -> set[int]:
    return {number_of(request) for request in requests}


async def until(true: Any, limit: float) -> None:
    """Repeat a check until it is true, as a person does."""
    with trio.fail_after(limit):
        while True:
            if true():
                return
            await trio.sleep(0.05)
