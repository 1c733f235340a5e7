"""Every part of the configuration format reaches a machine that polls."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cloud.server.memory import ROBOT, MemoryCloud

FRAME = {
    "parent": "world",
    "translation": {"x": 1, "y": 2, "z": 3},
    "orientation": {"type": "ov_degrees", "value": {"x": 0, "y": 0, "z": 1, "th": 90}},
    "geometry": {"type": "box", "x": 1, "y": 2, "z": 3},
}
FULL = {
    "components": [
        {
            "name": "eye",
            "api": "rdk:component:sensor",
            "model": "fake",
            "frame": FRAME,
            "attributes": {"list": [1, {"a": None}], "text": "t"},
            "depends_on": ["r:far"],
            "service_configs": [{"type": "data_manager", "attributes": {"capture_methods": []}}],
            "log_configuration": {"level": "debug"},
        }
    ],
    "services": [{"name": "data", "api": "rdk:service:data_manager", "model": "builtin"}],
    "remotes": [
        {"name": "r", "address": "r:1", "frame": FRAME, "auth": {"entity": "e", "credentials": {"type": "api-key"}}},
        {"name": "old", "address": "old:1", "secret": "s", "prefix": "p_", "insecure": True, "managed_by": "m"},
    ],
    "modules": [
        {"name": "m", "executable_path": "/m", "type": "local", "env": {"A": "b"}, "log_level": "info"},
        {"name": "n", "type": "registry", "module_id": "a:n", "version": "1.0.0"},
    ],
    "packages": [{"name": "p", "package": "a/p", "version": "1", "type": "ml_model"}],
    "network": {"bind_address": "0.0.0.0:1234", "traffic_tunnel_endpoints": [{"port": 22, "connection_timeout": "1s"}]},
    "auth": {"handlers": [{"type": "api-key", "config": {"id": "key"}}]},
    "log": [{"pattern": "a.*", "level": "debug"}],
    "jobs": [{"name": "j", "schedule": "1h", "resource": "eye", "method": "GetReadings"}],
    "tracing": {"enabled": True},
    "maintenance": {"sensor_name": "rdk:component:sensor/eye", "maintenance_allowed_key": "quiet"},
    "debug": True,
}


async def received_config(cloud: MemoryCloud, part: str, document: dict[str, Any]) -> Any:
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=json.dumps(document))
    return await cloud.client(part, "robot-secret").call(ROBOT, "", "config", id=part)


async def test_every_section_is_sent(cloud: MemoryCloud, part: str) -> None:
    config = await received_config(cloud, part, FULL)
    empty = [name for name in FULL if name not in ("auth", "debug") and not config[name]]
    assert empty == []
    assert [remote["name"] for remote in config["remotes"]] == ["r", "old"]
    assert [package["name"] for package in config["packages"]] == ["p", "n"], "a module of the registry is a package"


@pytest.mark.parametrize(
    ("kind", "published"),
    [
        ("api-key", "API_KEY"),
        ("robot-secret", "ROBOT_SECRET"),
        ("robot-location-secret", "ROBOT_LOCATION_SECRET"),
        ("something else", "UNSPECIFIED"),
        ("", "UNSPECIFIED"),
    ],
)
async def test_credentials_of_a_remote_are_of_a_published_type(
    cloud: MemoryCloud, part: str, kind: str, published: str
) -> None:
    credentials = {"type": kind, "payload": "the-secret-payload"}
    remote = {"name": "r", "address": "r:1", "auth": {"entity": "e", "credentials": credentials}}
    (item,) = (await received_config(cloud, part, {"remotes": [remote]}))["remotes"]
    assert item["auth"] == {"entity": "e", "credentials": {"type": published, "payload": "the-secret-payload"}}
