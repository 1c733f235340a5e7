"""HTTP requests to webhooks. Pure.

Methods, headers and keys follow sections 4.2 and 6 of the specification; `Trigger-Name`, `Trigger-Type`, `count`,
`part_name` and the signature of Standard Webhooks 1.0 are additions.
"""

from __future__ import annotations

import base64
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from triggers.document import DATA, OFFLINE, ONLINE, Notification, Trigger, signing_keys
from triggers.events import Firing, Ingested, LogLine, TabularReading, TrainingEnded, Where

TRAINING: Final = "training_job_ended"
"""Type of the events that are not selected by triggers of a part, but by the notifications of an organization."""
USER_AGENT: Final = "machine-cloud"
MAX_DATA: Final = 256 * 1024  # bytes of a reading as JSON; a larger reading is omitted and noted in the body
MAX_LINES: Final = 100  # log entries in one body; the newest are kept
_PRESENCE: Final = frozenset({ONLINE, OFFLINE})
_SAFE: Final = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """HTTP request. All attempts send the same request except for timestamp and signature."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


def webhook(
    trigger: Trigger, notification: Notification, firing: Firing, where: Where, id_: str, now: datetime
) -> WebhookRequest:
    """Return the request for a notification. `id_` is the same on every attempt; `now` is the time of the attempt."""
    request = unsigned_request(trigger, notification, firing, where)
    return signed_request(notification, trigger.secret, request, id_, now)


def signed_request(
    notification: Notification, secret: str, request: WebhookRequest, id_: str, now: datetime
) -> WebhookRequest:
    """Return the request from `unsigned_request` with id, timestamp, credentials and signature; once for each attempt.

    `secret` signs if the notification has no own one.
    """
    added = [("webhook-id", id_), ("webhook-timestamp", str(int(now.timestamp())))]
    if notification.auth is not None:
        basic = notification.auth.basic
        credentials = base64.b64encode(f"{basic.username}:{basic.password}".encode()).decode()
        added.append(("Authorization", f"Basic {credentials}"))
    if keys := signing_keys(notification.secret or secret):
        content = b".".join((id_.encode(), added[1][1].encode(), request.body))
        signatures = (base64.b64encode(hmac.digest(key, content, "sha256")).decode() for key in keys)
        added.append(("webhook-signature", " ".join(f"v1,{signature}" for signature in signatures)))
    return WebhookRequest(request.method, request.url, (*request.headers, *added), request.body)


def unsigned_request(trigger: Trigger, notification: Notification, firing: Firing, where: Where) -> WebhookRequest:
    """Return the request without secrets, which can be stored until it is sent."""
    presence = firing.type in _PRESENCE
    headers = [
        ("Org-Id", where.organization_id),
        ("Location-Id", where.location_id),
        ("Part-Id", where.part_id),
        ("Robot-Id", where.machine_id),
        ("Part-Name", where.part_name),
        ("Trigger-Name", trigger.name),
        ("Trigger-Type", firing.type),
        ("User-Agent", USER_AGENT),
    ]
    if presence:
        headers += [
            ("Organization-Name", where.organization_name),
            ("Location-Name", where.location_name),
            ("Machine-Name", where.machine_name),
        ]
    else:
        headers.append(("Content-Type", "application/json"))
    body = b"" if presence else msgspec.json.encode(payload(firing, where))
    safe = tuple((name, header_safe(value)) for name, value in headers)
    return WebhookRequest("GET" if presence else "POST", notification.value, safe, body)


def about_training(event: TrainingEnded, url: str, organization: str, name: str, link: str) -> WebhookRequest:
    """Return the request, without secrets, to `url` about the end of a training job. `link` is the page of the job."""
    headers = [
        ("Org-Id", organization),
        ("Organization-Name", name),
        ("Trigger-Type", TRAINING),
        ("User-Agent", USER_AGENT),
        ("Content-Type", "application/json"),
    ]
    times = {"created": event.created, "started": event.started, "ended": event.ended}
    body = {
        "type": TRAINING,
        "job_id": event.job_id,
        "state": event.state,
        "error": event.error,
        "model_name": event.model_name,
        "model_version": event.model_version,
        "model_type": event.model_type,
        "package": event.package,
        "dataset_id": event.dataset_id,
        "organization_id": organization,
        "org_name": name,
        **{key: None if moment is None else rfc3339(moment) for key, moment in times.items()},
        "url": link,
    }
    safe = tuple((key, header_safe(value)) for key, value in headers)
    return WebhookRequest("POST", url, safe, msgspec.json.encode(body))


def alert_request(url: str, organization: str, name: str, body: Mapping[str, Any]) -> WebhookRequest:
    """Return the request, without secrets, to `url` about alerts of an organization with this name."""
    headers = [
        ("Org-Id", organization),
        ("Organization-Name", name),
        ("Trigger-Type", "alert"),
        ("User-Agent", USER_AGENT),
        ("Content-Type", "application/json"),
    ]
    safe = tuple((key, header_safe(value)) for key, value in headers)
    return WebhookRequest("POST", url, safe, msgspec.json.encode(body))


def header_safe(text: str) -> str:
    """Encode text for a header: characters other than printable ASCII are percent-encoded as UTF-8."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    return text if plain else quote(text.strip(), safe=_SAFE, errors="replace")


def payload(firing: Firing, where: Where) -> Any:
    """Return the JSON value of a POST body; for logs, a list of entries."""
    happening = firing.happening
    if not isinstance(happening, Ingested):
        return [_line(line) for line in firing.lines[-MAX_LINES:]]
    body: dict[str, Any] = {
        "component_name": happening.component_name,
        "component_type": happening.component_type,
        "method_name": happening.method,
        "data_type": happening.data_type,
        "machine_name": where.machine_name,
        "part_name": where.part_name,
        "location_name": where.location_name,
        "org_name": where.organization_name,
    }
    if firing.type == DATA:
        body["min_time_received"] = rfc3339(happening.first)
        body["max_time_received"] = rfc3339(happening.last)
        body["file_id"] = happening.file_id
    else:
        evals = [{"operator": item.operator, "value": item.value} for item in firing.condition]
        body["trigger_condition"] = evals[0] if len(evals) == 1 else {"evals": evals}
    if firing.reading is not None:
        body["count"] = firing.count
        body |= _data(firing.reading)
    return body


def _data(reading: TabularReading) -> dict[str, Any]:
    data = finite(reading.data)
    size = len(msgspec.json.encode(data))
    metadata = {"received_at": rfc3339(reading.received), "requested_at": rfc3339(reading.requested)}
    if size > MAX_DATA:
        return {
            "data": {"metadata": metadata, "data": {}},
            "data_omitted": f"{size} bytes; {MAX_DATA} are sent at most",
        }
    return {"data": {"metadata": metadata, "data": data}}


def _line(line: LogLine) -> dict[str, Any]:
    return {"time": rfc3339(line.time), "level": line.level, "logger_name": line.logger, "message": line.message}


def finite(value: Any) -> Any:
    """Copy a JSON-like value, replacing non-finite numbers by null."""
    if isinstance(value, Mapping):
        return {str(key): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def rfc3339(moment: datetime) -> str:
    """Format a time as `2026-01-02T03:04:05.678901Z`, without a fraction if it is zero."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
