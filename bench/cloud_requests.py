"""Requests of simulated machines: encoded once, and patched for each call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from rpc.api.client import build_request, find_method
from rpc.auth import AUTHENTICATE

ROBOT: Final = "viam.app.v1.RobotService"
SYNC: Final = "viam.app.datasync.v1.DataSyncService"
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
LINES: Final = 100  # log entries in one call, as machine-server's queue sends them
READINGS: Final = 100  # readings in one upload
DIGITS: Final = 8
ANY_PART: Final = "00000000-0000-0000-0000-000000000000"  # as long as every id
MARK: Final = "#" * DIGITS  # where the number of the call is written


class Template:
    """A request of which every call sends another one: its number in place of MARK, its times that much later."""

    def __init__(self, service: str, method: str, **arguments: Any) -> None:
        found = find_method(service, method)
        self.path = found.path
        self._bytes: bytes = build_request(found, "", arguments).SerializeToString()
        self._second = varint(int(START.timestamp()))

    def of(self, part: str) -> Template:
        """The same for another part than ANY_PART."""
        made = copy(self)
        made._bytes = self._bytes.replace(ANY_PART.encode(), part.encode())
        return made

    def request(self, number: int) -> bytes:
        """The request of the call `number`."""
        later = varint(int(START.timestamp()) + number)
        return self._bytes.replace(MARK.encode(), f"{number:0{DIGITS}}".encode()).replace(self._second, later)


def varint(value: int) -> bytes:
    """As protobuf writes it."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def sign_in(entity: str, kind: str, secret: str) -> bytes:
    """The request of Authenticate."""
    from rpc.api import messages

    auth = messages.auth()
    message = auth.AuthenticateRequest(entity=entity, credentials=auth.Credentials(type=kind, payload=secret))
    return bytes(message.SerializeToString())


def config(part: str) -> Template:
    """A poll."""
    return Template(ROBOT, "config", id=part)


def log(part: str) -> Template:
    """LINES log entries of one second."""
    entries = [
        {
            "message": f"message {MARK} of {one}",
            "level": "info",
            "logger_name": "rdk.bench",
            "host": "bench",
            "time": START + timedelta(milliseconds=one),
        }
        for one in range(LINES)
    ]
    return Template(ROBOT, "log", id=part, logs=entries)


def upload(part: str, count: int = READINGS) -> Template:
    """Readings of one second; `a` goes from 0 on."""
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
            "metadata": {"time_requested": START + timedelta(milliseconds=one), "time_received": START},
            "struct": {"readings": {"a": float(one), "b": one / 7, "c": 0.5}},
        }
        for one in range(count)
    ]
    return Template(SYNC, "data_capture_upload", metadata=metadata, sensor_contents=contents)


def triggers_of(count: int, url: str, cooldown: int) -> str:
    """A configuration with so many conditional triggers, of which the first holds for every upload."""

    def one(number: int) -> dict[str, Any]:
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

    return json.dumps({"triggers": [one(number) for number in range(count)]})


def template_for(what: str, part: str) -> Template:
    """Of KINDS, for one part: encoded once for all."""
    return _common(what).of(part)


@cache
def _common(what: str) -> Template:
    made: Template = KINDS[what](ANY_PART)
    return made


KINDS: Final[Mapping[str, Any]] = {"config": config, "log": log, "upload": upload}
__all__ = ["AUTHENTICATE", "KINDS", "Template", "sign_in", "template_for", "triggers_of", "upload"]
