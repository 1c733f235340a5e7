"""The section `agent`: the check reports what the device reports, shows no secret, and stops nothing else."""

from __future__ import annotations

import json
from typing import Any

from models.builtin import builtin_models
from models.check import check_document, checked_in_steps
from schema.agent.reading import read_settings
from schema.document.machine import decode_document
from tests.unit.schema.agent.tables import KEYS, NETWORK_KEYS, WIFI

SENSOR = {"name": "heat", "api": "rdk:component:sensor", "model": "fake"}


def problems(section: Any) -> list[str]:
    checked = check_document(
        decode_document(json.dumps({"agent": section, "components": [SENSOR]}).encode()), builtin_models()
    )
    assert checked.resources == 1
    return [str(problem) for problem in checked.problems]


def on_the_device(section: Any) -> list[str]:
    return [str(problem) for problem in read_settings(None, section, allow_http=True)[1]]


def test_each_invalid_value_is_reported_as_on_the_device() -> None:
    for key in KEYS:
        for value, remedy in key.invalid:
            try:
                json.dumps(value, allow_nan=False)
            except (TypeError, ValueError):
                continue
            if isinstance(value, str) and value.startswith("http://"):
                continue
            section = key.document(value)
            assert problems(section) == on_the_device(section), (key, value)
            assert any(remedy in problem for problem in problems(section)), (key, value)


def test_each_invalid_value_of_a_network_is_reported_as_on_the_device() -> None:
    for name in NETWORK_KEYS:
        for value, _ in NETWORK_KEYS[name][1]:
            section = {"additional_networks": {"bad": {**WIFI, name: value}, "good": WIFI}}
            assert problems(section) == on_the_device(section), (name, value)


def test_secrets_are_not_shown() -> None:
    secret = "hunter2\u00fc"
    section = {
        "network_configuration": {"hotspot_password": secret},
        "additional_networks": {
            "lab": {"type": "wifi", "ssid": "lab", "psk": secret},
            "work": {"type": "wifi", "ssid": "work", "enterprise": {"method": "peap", "password": [secret]}},
        },
        "advanced_settings": {"viam_server_env": {"TOKEN OF": secret, "NAME": [secret]}},
    }
    assert len(problems(section)) >= 4
    assert "hunter2" not in "".join(problems(section))


def test_a_url_that_only_the_device_can_allow_is_a_warning() -> None:
    decoded = decode_document(json.dumps({"agent": {"version_control": {"agent": "http://example.com/a"}}}).encode())
    checked = check_document(decoded, builtin_models())
    assert checked.problems == ()
    (warning,) = checked.warnings
    assert warning.path == "agent.version_control.agent"
    assert "allow_http" in warning.remedy


def test_the_check_of_many_networks_lets_others_work_in_between() -> None:
    networks = {f"n{number}": {"type": "wifi"} for number in range(500)}
    decoded = decode_document(json.dumps({"agent": {"additional_networks": networks}}).encode())
    steps = checked_in_steps(decoded, builtin_models())
    assert sum(1 for _ in steps) > 500
