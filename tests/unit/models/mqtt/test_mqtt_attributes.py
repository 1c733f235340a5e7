"""Addresses of brokers, topics and names: what is accepted, and what an error says."""

from __future__ import annotations

from typing import Any

import pytest

from models.mqtt.attributes import LONGEST_PIN, LONGEST_TOPIC, MOST_PINS, BrokerAddress, MqttAttributes


def attributes(**changes: Any) -> MqttAttributes:
    return MqttAttributes(**{"address": "mqtt://hub", "publish": ("air",), **changes})


@pytest.mark.parametrize(
    ("address", "broker"),
    [
        ("mqtt://hub", BrokerAddress("hub", 1883, tls=False)),
        ("mqtts://hub/", BrokerAddress("hub", 8883, tls=True)),
        ("mqtt://[::1]:9", BrokerAddress("::1", 9, tls=False)),
    ],
)
def test_addresses(address: str, broker: BrokerAddress) -> None:
    assert attributes(address=address).broker() == broker


def test_an_address_as_text() -> None:
    assert str(BrokerAddress("::1", 9, tls=True)) == "mqtts://[::1]:9"
    assert str(BrokerAddress("hub", 1883, tls=False)) == "mqtt://hub:1883"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"address": "hub:1883"}, "write mqtt://host"),
        ({"address": "http://hub"}, "write mqtt://host"),
        ({"address": "mqtt://hub/topic"}, "write mqtt://host"),
        ({"address": "mqtt://hub:99999"}, "write mqtt://host"),
        ({"address": "mqtt://me:secret@hub"}, "use `username` and `password`"),
        ({"topic": "a/+"}, "topic is 'a/\\+'"),
        ({"topic": "a#"}, "topic is"),
        ({"topic": "/a"}, "topic is"),
        ({"topic": "a/"}, "topic is"),
        ({"topic": "$SYS"}, "topic is"),
        ({"topic": "a" * (LONGEST_TOPIC + 1)}, "at most 200"),
        ({"discovery": "a\n"}, "discovery is"),
        ({"publish": ()}, "name at least one resource"),
        ({"publish": ("rdk:component:sensor/air",)}, "not a name of a resource"),
        ({"commands": ("+",)}, "not a name of a resource"),
        ({"publish": (), "pins": {"pi": ()}}, "pins are empty"),
        ({"pins": {"": ("37",)}}, "pins: '' is not a name of a board"),
        ({"pins": {"pi": ("37", "led", "37")}}, "pins.pi.2: '37' is listed twice"),
        ({"pins": {"pi": ("37", "")}}, "pins.pi.1: '' is not a name of a pin"),
        ({"pins": {"pi": ("a/set",)}}, "pins.pi.0: 'a/set' is not a name of a pin"),
        ({"pins": {"pi": ("#",)}}, "pins.pi.0: '#' is not"),
        ({"pins": {"pi": ("a" * (LONGEST_PIN + 1),)}}, "write 1 to 100 characters"),
        ({"pins": {"pi": tuple(map(str, range(MOST_PINS))), "rear": ("0",)}}, "pins: 65 pins are listed, and 64"),
        ({"ca": "/etc/ca.pem"}, "certificates need mqtts://"),
        ({"address": "mqtts://hub", "private_key": "/k"}, "without certificate"),
    ],
)
def test_refused_attributes(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        attributes(**changes)
    assert "secret" not in str(caught.value)


def test_pins_are_enough() -> None:
    assert attributes(publish=(), pins={"pi": ("37", "led"), "rear": ("37",)}).names() == ()


def test_names_of_published_resources() -> None:
    assert attributes(publish=("air", "lamp"), commands=("lamp", "fan")).names() == ("air", "lamp", "fan")


@pytest.mark.parametrize("address", ["me:hunter2@hub", "mqtt:me:hunter2@hub", "mqtt://hub?password=hunter2"])
def test_an_error_does_not_repeat_a_password(address: str) -> None:
    with pytest.raises(ValueError, match="write mqtt://host") as caught:
        attributes(address=address)
    assert "hunter2" not in str(caught.value)
