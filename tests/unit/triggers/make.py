"""Triggers, events and places in short form for tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from triggers.document import Trigger, decode
from triggers.events import Ingested, TabularReading, Where

NOW: Final = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
HOOK: Final[Mapping[str, Any]] = {"type": "webhook", "value": "https://example.com/hook"}
WHERE: Final = Where("org-1", "Org", "loc-1", "Hall", "robot-1", "Mill", "part-1", "main")


def raw(event: Mapping[str, Any], *targets: Mapping[str, Any], name: str = "t", **more: Any) -> dict[str, Any]:
    """Return an entry of `triggers`, with a webhook unless there is a target."""
    return {"name": name, "event": event, "notifications": list(targets or (HOOK,)), **more}


def trigger(event: Mapping[str, Any], *targets: Mapping[str, Any], **more: Any) -> Trigger:
    """Return the trigger of such an entry."""
    decoded, problems = decode([raw(event, *targets, **more)])
    assert problems == ()
    return decoded[0]


def conditional(*evals: Mapping[str, Any], method: str = "sensor:t:Readings") -> dict[str, Any]:
    """Return an event of data with a condition."""
    inner: dict[str, Any] = {"data_capture_method": method}
    if evals:
        inner["conditions"] = {"evals": list(evals)}
    return {"type": "conditional_data_ingested", "conditional": inner}


def data(*types: str) -> dict[str, Any]:
    """Return an event of data."""
    return {"type": "part_data_ingested", "data_ingested": {"data_types": list(types)}}


def upload(*readings: Any, **changes: Any) -> Ingested:
    """Return an upload of readings of sensor t, one second apart."""
    captured = tuple(
        TabularReading(NOW + timedelta(seconds=index), NOW + timedelta(seconds=index + 0.5), values)
        for index, values in enumerate(readings)
    )
    facts: dict[str, Any] = {
        "component_type": "sensor",
        "component_name": "t",
        "method": "Readings",
        "data_type": "tabular",
        "file_id": "file-1",
        "first": NOW,
        "last": NOW + timedelta(seconds=len(captured)),
        "readings": captured,
    }
    return Ingested(**{**facts, **changes})
