"""Log messages of modules and clients in the machine's own log: names, levels, fields, callers."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from runtime.server.robot.logs import forward, logger_of
from runtime.server.robot.messages import LogEntry
from telemetry.logs import loggers
from telemetry.logs.loggers import Logs
from telemetry.logs.ring import LogRing

OWNERS = {"rdk:component:sensor/outside": "weather", "weather": "weather"}


@pytest.fixture
def logs() -> Iterator[Logs]:
    before = logging.getLogger().level
    pipeline = loggers.configure_logs(ring=LogRing())
    yield pipeline
    pipeline.close()
    logging.getLogger().setLevel(before)


@pytest.mark.parametrize(
    ("field", "key", "value"),
    [
        ({"Key": "pin", "String": "11", "Integer": 0}, "pin", "11"),
        ({"Key": "pin", "String": "", "Integer": 7}, "pin", 7),
        ({"Key": "pin", "Interface": [1]}, "pin", [1]),
        ({"Key": "pin"}, "pin", ""),
        ({"Key": "pin", "String": "", "Integer": 0, "Type": 11}, "pin", 0),
        ({"Key": "pin", "String": "", "Integer": 0, "Type": 15}, "pin", ""),
        ({"Key": "on", "String": "", "Integer": 0, "Type": 4}, "on", False),
        ({"Key": "on", "String": "", "Integer": 1, "Type": 4}, "on", True),
        ({"plain": 3}, "plain", 3),
        ({"event": "sly"}, "field_event", "sly"),
        ({"_record": "sly"}, "field__record", "sly"),
        ({"Key": "level", "String": "error"}, "field_level", "error"),
    ],
)
def test_fields(logs: Logs, field: dict[str, Any], key: str, value: object) -> None:
    forward([LogEntry(level="warn", message="hello", logger_name="mod", fields=[field])])
    (entry,) = logs.ring.entries()
    assert (entry.message, entry.level_name, entry.fields) == ("hello", "WARN", {key: value})


def test_stack_and_old_time_are_kept(logs: Logs) -> None:
    old = datetime.now(UTC) - timedelta(seconds=30)
    forward([LogEntry(message="a", time=old, stack="main.go:1"), LogEntry(message="b", time=datetime.now(UTC))])
    first, second = logs.ring.entries()
    assert first.fields == {"log_ts": old.isoformat(), "stack": "main.go:1"}
    assert second.fields == {}


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("debug", "DEBUG"),
        ("Info", "INFO"),
        ("WARNING", "WARN"),
        ("error", "ERROR"),
        ("CRITICAL", "ERROR"),
        ("fatal", "ERROR"),
        ("dpanic", "ERROR"),
        ("LOUD", "INFO"),
        ("", "INFO"),
    ],
)
def test_levels_of_every_sdk(logs: Logs, word: str, level: str) -> None:
    loggers.get_logger("rdk")  # creates the logger so that all levels are shown
    logs.apply(document_with_debug())
    forward([LogEntry(level=word, message="x", logger_name="mod")])
    assert [entry.level_name for entry in logs.ring.entries()] == [level]


def document_with_debug() -> Any:
    from schema.document.machine import decode_document

    return decode_document(b'{"debug": true}').document


@pytest.mark.parametrize(
    ("name", "sender", "logger"),
    [
        ("rdk:component:arm/left", "robot", "rdk.modmanager.robot.rdk:component:arm/left"),
        (
            "rdk:component:sensor/outside",
            "",
            "rdk.modmanager.weather.rdk:component:sensor/outside",
        ),  # the plan knows the module of the resource
        ("rdk:component:sensor/inside", "", "rdk.resource_manager.rdk:component:sensor/inside"),
        ("robot.rdk:component:arm/left", "robot", "rdk.modmanager.robot.rdk:component:arm/left"),  # the Go SDK
        ("acme:service:planner/p.step", "robot", "rdk.modmanager.robot.acme:service:planner/p"),
        ("viam/module/module", "robot", "rdk.modmanager.robot.viam.module.module"),  # the Python SDK
        ("weather", "", "rdk.modmanager.weather"),
        ("weather.cache", "", "rdk.modmanager.weather.cache"),
        ("rdk.modmanager.weather.cache", "weather", "rdk.modmanager.weather.cache"),
        ("", "robot", "rdk.modmanager.robot"),
        ("", "", "rdk"),
        ("client", "", "client"),
        ("rdk.activity", "", "rdk.client.rdk.activity"),
        ("rdk.activity.x", "", "rdk.client.rdk.activity.x"),
        ("rdk.activity", "robot", "rdk.modmanager.robot.rdk.activity"),
    ],
)
def test_loggers(name: str, sender: str, logger: str) -> None:
    assert logger_of(name, sender, lambda part: OWNERS.get(part, "")) == logger


def test_the_python_sdk_writes_its_caller_into_the_message_and_has_no_stack(logs: Logs) -> None:
    text = "exc_info: None, exc_text: None, stack_info: None"
    forward([LogEntry(level="INFO", message="main.py:12\tit is warm", stack=text)], sender="weather")
    forward([LogEntry(level="INFO", message="time 12:30\tnoon")], sender="weather")
    first, second = logs.ring.entries()
    assert (first.caller, first.message, first.fields) == ("main.py:12", "it is warm", {})
    assert (second.caller, second.message) == ("", "time 12:30\tnoon")


def test_the_go_sdk_sends_its_caller(logs: Logs) -> None:
    forward([LogEntry(message="x", caller={"Defined": True, "File": "/src/arm/arm.go", "Line": 40.0})], sender="arm")
    (entry,) = logs.ring.entries()
    assert entry.caller == "arm/arm.go:40"
