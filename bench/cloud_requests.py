"""Requests of simulated machines, encoded once and patched for each call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from rpc.access.credential_types import AUTHENTICATE
from rpc.api.client import build_request, find_method

ROBOT: Final = "viam.app.v1.RobotService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
LINES: Final = 100  # log entries per call, as machine-server's queue sends them
READINGS: Final = 100  # readings per upload
DIGITS: Final = 8
ANY_PART: Final = "00000000-0000-0000-0000-000000000000"  # has the length of every id
MARK: Final = "#" * DIGITS  # replaced by the number of the call


class Template:
    """A request that differs for each call: the number replaces MARK and is added to the times in seconds."""

    def __init__(self, service: str, method: str, **arguments: Any) -> None:
        method_info = find_method(service, method)
        self.path = method_info.path
        self._bytes: bytes = build_request(method_info, "", arguments).SerializeToString()
        self._second = varint(int(START.timestamp()))

    def of(self, part: str) -> Template:
        """Return the template for a part instead of ANY_PART."""
        copied = copy(self)
        copied._bytes = self._bytes.replace(ANY_PART.encode(), part.encode())
        return copied

    def request(self, number: int) -> bytes:
        """Return the request of the call `number`."""
        later = varint(int(START.timestamp()) + number)
        return self._bytes.replace(MARK.encode(), f"{number:0{DIGITS}}".encode()).replace(self._second, later)


def varint(value: int) -> bytes:
    """Encode a number as a protobuf varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def sign_in(entity: str, kind: str, secret: str) -> bytes:
    """Return a request of Authenticate."""
    from rpc.api import messages

    auth = messages.auth()
    message = auth.AuthenticateRequest(entity=entity, credentials=auth.Credentials(type=kind, payload=secret))
    return bytes(message.SerializeToString())


def config(part: str) -> Template:
    """Return the template of a poll."""
    return Template(ROBOT, "config", id=part)


def log(part: str) -> Template:
    """Return the template of LINES log entries within one second."""
    entries = [
        {
            "message": f"message {MARK} of {index}",
            "level": "info",
            "logger_name": "rdk.bench",
            "host": "bench",
            "time": START + timedelta(milliseconds=index),
        }
        for index in range(LINES)
    ]
    return Template(ROBOT, "log", id=part, logs=entries)


def upload(part: str, count: int = READINGS) -> Template:
    """Return the template of `count` readings within one second; `a` counts from 0."""
    metadata = {
        "part_id": part,
        "component_type": "rdk:component:sensor",
        "component_name": "s",
        "method_name": "Readings",
        "type": "TABULAR_SENSOR",
        "file_name": MARK,
    }
    contents = [
        {
            "metadata": {"time_requested": START + timedelta(milliseconds=index), "time_received": START},
            "struct": {"readings": {"a": float(index), "b": index / 7, "c": 0.5}},
        }
        for index in range(count)
    ]
    return Template(SYNC, "data_capture_upload", metadata=metadata, sensor_contents=contents)


def triggers_of(count: int, url: str, cooldown: int) -> str:
    """Return a configuration with `count` conditional triggers, of which the first matches every upload."""

    def trigger(number: int) -> dict[str, Any]:
        values = [("gte", 0), ("lt", 1000)] if not number else [("gt", 10 + number), ("lt", -number)]
        return {
            "name": f"t{number}",
            "event": {
                "type": "conditional_data_ingested",
                "conditional": {
                    "data_capture_method": "sensor:s:Readings",
                    "conditions": {"evals": [{"operator": name, "value": {"a": value}} for name, value in values]},
                },
            },
            "notifications": [{"type": "webhook", "value": url, "seconds_between_notifications": cooldown}],
        }

    return json.dumps({"triggers": [trigger(number) for number in range(count)]})


def template_for(what: str, part: str) -> Template:
    """Return the template of one of KINDS for a part. Each kind is encoded only once."""
    return _common(what).of(part)


@cache
def _common(what: str) -> Template:
    template: Template = KINDS[what](ANY_PART)
    return template


KINDS: Final[Mapping[str, Any]] = {"config": config, "log": log, "upload": upload}
__all__ = ["AUTHENTICATE", "KINDS", "Template", "sign_in", "template_for", "triggers_of", "upload"]
