"""Documents for Home Assistant: units by names, odd readings, names that are safe in topics and templates."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from engine.components.sensing.movement_sensor import GeoPosition
from models.mqtt.entities import MOST_READINGS, Device, Entity, entities_of, flat, read_announcement, safe, state_of
from schema.space.geometry import GeoPoint

DEVICE = Device("home/cellar", "1.2.3")


@pytest.mark.parametrize(
    ("key", "unit", "device_class"),
    [
        ("temperature_c", "°C", "temperature"),
        ("relative_humidity_percent", "%", "humidity"),
        ("load_percent", "%", None),
        ("pressure_hpa", "hPa", "pressure"),
        ("volts", "V", "voltage"),
        ("supply_ma", "mA", "current"),
        ("where.depth_mm", "mm", "distance"),
        ("c", None, None),
        ("count", None, None),
        ("magic", None, None),
    ],
)
def test_units_by_name(key: str, unit: str | None, device_class: str | None) -> None:
    (entity,) = entities_of({key: 1.5})
    assert (entity.kind, entity.key) == ("sensor", key)
    assert (entity.settings.get("unit_of_measurement"), entity.settings.get("device_class")) == (unit, device_class)


def test_kinds_of_values() -> None:
    kinds = {entity.key: entity.kind for entity in entities_of({"a": True, "b": "text", "c": 0, "d": None})}
    assert kinds == {"a": "binary_sensor", "b": "sensor", "c": "sensor"}
    (text,) = entities_of({"b": "text"})
    assert "state_class" not in text.settings  # only numbers are measurements


def test_nested_and_odd_readings() -> None:
    readings: dict[str, Any] = {
        "position": GeoPosition(GeoPoint(1.0, 2.0), 3.0),
        "deep": {"er": {"value": 1}},
        "nothing": None,
        "infinite": math.inf,
        "list": [1],
        "bytes": b"x",
        'quote"': 1,
        "}}{% x": 1,
    }
    assert state_of(readings) == {
        "position.coordinate.latitude": 1.0,
        "position.coordinate.longitude": 2.0,
        "position.altitude_m": 3.0,
        "deep.er.value": 1,
        "nothing": None,
        "infinite": None,
    }
    json.dumps(state_of(readings), allow_nan=False)
    assert len(state_of({str(number): number for number in range(1000)})) == MOST_READINGS
    assert list(flat(3)) == [("", 3)]


def test_the_document_of_a_reading() -> None:
    (entity,) = entities_of({"temperature_c": 1.5})
    topic, payload = DEVICE.announced("homeassistant", "air", entity, 40)
    document = json.loads(payload)
    assert topic == f"homeassistant/sensor/{DEVICE.id}/{safe('air temperature_c')}/config"
    assert document["name"] == "air temperature"
    assert document["expire_after"] == 40
    assert document["device"]["name"] == "cellar"
    assert document["object_id"].endswith("_air_temperature")  # the id of the entity at first
    assert document["unique_id"].startswith(DEVICE.id)
    assert "command_topic" not in document


def test_the_document_of_a_control() -> None:
    _, payload = DEVICE.announced("homeassistant", "lamp", Entity("switch", "", {}, "position", commands=True), 40)
    document = json.loads(payload)
    assert (document["command_topic"], document["state_topic"]) == ("home/cellar/lamp/set", "home/cellar/lamp/state")
    assert "expire_after" not in document  # Home Assistant knows it for sensors only


@pytest.mark.parametrize("names", [("a:b", "a_b"), ("a b", "a.b"), ("ä", "ö"), ("x" * 200 + "a.", "x" * 200 + "b.")])
def test_safe_names_differ(names: tuple[str, str]) -> None:
    first, second = map(safe, names)
    assert first != second
    assert first.replace("_", "").replace("-", "").isalnum()


def test_places_that_a_broker_names() -> None:
    assert DEVICE.is_place("homeassistant", DEVICE.place("homeassistant", "sensor", "air"))
    for kind, identity in (("+", "air"), ("sensor", "#"), ("sensor", "air/config/air")):
        assert not DEVICE.is_place("homeassistant", DEVICE.place("homeassistant", kind, identity))
    assert not DEVICE.is_place("homeassistant", "homeassistant/sensor/other/air/config")


def test_odd_values_have_a_document() -> None:
    state = state_of({"long": 10**5000, "half": "\ud800"})
    assert state == {"long": None, "half": "\ud800"}
    _, document = DEVICE.announced("homeassistant", "air", Entity("select", "", {"options": ["\ud800"]}), 1)
    assert json.loads(document)["options"] == ["?"]


def test_an_announcement_is_read() -> None:
    for commands in (False, True):
        entity = Entity("button", "", {}, commands=commands)
        _, document = DEVICE.announced("homeassistant", "bell", entity, 1)
        assert read_announcement(document) == ("home/cellar/bell", commands)


@pytest.mark.parametrize(
    "payload", [b"[" * 100_000, b'{"availability":' + b"[" * 100_000, b"\xff", b"1", b'"a"', b"{}"]
)
def test_messages_that_announce_nothing(payload: bytes) -> None:
    assert read_announcement(payload) is None
