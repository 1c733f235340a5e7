"""From a sensor to a webhook, through real processes: captured, synced, evaluated, delivered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import trio
from standardwebhooks.webhooks import Webhook

from tests.e2e.cloud.process import cloud
from tests.e2e.server.process import server
from tests.e2e.triggers.receiver import receiver
from tests.unit.triggers.make import SECRET, conditional, data, raw

APP = "viam.app.v1.AppService"
LIMIT = 60.0  # generous: the computer that runs the tests may be busy


async def test_a_reading_of_a_machine_becomes_one_webhook(tmp_path: Path) -> None:
    async with cloud(tmp_path / "cloud", "--webhook-allow", "127.0.0.1") as running, receiver() as other:
        hook = {"type": "webhook", "value": other.url(), "secret": SECRET, "seconds_between_notifications": 3600}
        warm = {"operator": "gt", "value": {"temperature_c": -1000}}
        hot = {"operator": "gt", "value": {"temperature_c": 100000}}
        capture = {"capture_methods": [{"method": "Readings", "capture_frequency_hz": 20}]}
        document: dict[str, Any] = {
            "components": [
                {
                    "name": "oven",
                    "api": "rdk:component:sensor",
                    "model": "fake",
                    "attributes": {"quantities": ["temperature_c"]},
                    "service_configs": [{"type": "data_manager", "attributes": capture}],
                }
            ],
            "services": [
                {
                    "name": "data",
                    "api": "rdk:service:data_manager",
                    "attributes": {"capture_dir": str(tmp_path / "captured"), "sync_interval_mins": 0.01},
                }
            ],
            "triggers": [
                raw(conditional(warm, method="sensor:oven:Readings"), hook, name="warm"),
                raw(conditional(hot, method="sensor:oven:Readings"), hook, name="hot"),
                raw(data("binary"), hook, name="pictures"),
            ],
        }
        async with running.client() as client:
            robot = await client.call(APP, "", "new_robot", name="mill", location=running.facts["location"])
            (part,) = await client.call(APP, "", "get_robot_parts", robot_id=robot)
            await client.call(
                APP, "", "update_robot_part", id=part["id"], name="", robot_config_json=json.dumps(document)
            )
        (tmp_path / "machine").mkdir()
        credentials = {"id": part["id"], "secret": part["secret"], "app_address": f"http://{running.address}"}
        async with server(tmp_path / "machine", {"cloud": credentials}, "-disable-mdns"):
            with trio.fail_after(LIMIT):
                while not other.requests:
                    await other.changed.wait()
        (came,) = other.requests
    Webhook(SECRET).verify(came.body, came.headers)
    body = json.loads(came.body)
    assert came.method == "POST"
    assert (came.headers["Trigger-Name"], came.headers["Robot-Id"]) == ("warm", robot)
    assert (body["component_type"], body["component_name"], body["method_name"]) == ("sensor", "oven", "Readings")
    assert body["trigger_condition"] == warm
    assert isinstance(body["data"]["data"]["readings"]["temperature_c"], float)
    assert body["data"]["metadata"]["requested_at"] <= body["data"]["metadata"]["received_at"]
    assert body["machine_name"] == "mill"
