"""The request of a webhook: methods, headers and keys of the specification, and a signature that receivers verify."""

from __future__ import annotations

import base64
import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.unit.triggers.make import HOOK, NOW, SECRET, WHERE, conditional, data, trigger, upload
from triggers.evaluate import fires
from triggers.events import Logged, LogLine, Presence
from triggers.webhook import MAX_DATA, MAX_LINES, WebhookRequest, header_safe, rfc3339, webhook

IDS = {"Org-Id": "org-1", "Location-Id": "loc-1", "Part-Id": "part-1", "Robot-Id": "robot-1", "Part-Name": "main"}
NAMES = {"Organization-Name", "Location-Name", "Machine-Name"}
EVAL = {"operator": "gt", "value": {"t": 30}}


def request(event: dict[str, Any], happening: Any, target: Any = HOOK, **more: Any) -> WebhookRequest:
    expected = trigger(event, target, **more)
    firing = fires(expected, happening)
    assert firing is not None
    return webhook(expected, expected.notifications[0], firing, WHERE, "msg_1", NOW)


def body_of(created: WebhookRequest) -> Any:
    return json.loads(created.body)


@pytest.mark.parametrize(("kind", "online"), [("part_online", True), ("part_offline", False)])
def test_presence_is_a_get_without_a_body(kind: str, online: bool) -> None:
    message = request({"type": kind}, Presence(online))
    headers = dict(message.headers)
    assert (message.method, message.body, message.url) == ("GET", b"", "https://example.com/hook")
    assert headers.items() >= IDS.items()
    assert {name: headers[name] for name in NAMES} == {
        "Organization-Name": "Org", "Location-Name": "Hall", "Machine-Name": "Mill",
    }  # fmt: skip
    assert headers["Trigger-Type"] == kind
    assert "Content-Type" not in headers


def test_ingested_data_is_a_post_with_its_keys() -> None:
    message = request(data("tabular"), upload({"readings": {"t": 1}}))
    headers = dict(message.headers)
    assert message.method == "POST"
    assert headers.items() >= IDS.items()
    assert headers["Content-Type"] == "application/json"
    assert not NAMES & headers.keys()
    assert body_of(message) == {
        "component_name": "t",
        "component_type": "sensor",
        "method_name": "Readings",
        "data_type": "tabular",
        "machine_name": "Mill",
        "part_name": "main",
        "location_name": "Hall",
        "org_name": "Org",
        "min_time_received": "2026-01-02T03:04:05.678901Z",
        "max_time_received": "2026-01-02T03:04:06.678901Z",
        "file_id": "file-1",
        "count": 1,
        "data": {
            "metadata": {
                "requested_at": "2026-01-02T03:04:05.678901Z",
                "received_at": "2026-01-02T03:04:06.178901Z",
            },
            "data": {"readings": {"t": 1}},
        },
    }


def test_a_file_has_no_data() -> None:
    assert "data" not in body_of(request(data("file"), upload(data_type="file")))


def test_a_condition_sends_itself_and_the_reading_that_met_it() -> None:
    result = body_of(request(conditional(EVAL), upload({"t": 1}, {"t": 31}, {"t": 32})))
    assert result["trigger_condition"] == EVAL
    assert result["data"]["data"] == {"t": 31}
    assert result["count"] == 2
    assert not {"min_time_received", "max_time_received", "file_id"} & result.keys()
    assert result["component_name"] == "t"


def test_several_conditions_and_none() -> None:
    two = {"operator": "lt", "value": {"t": 40}}
    assert body_of(request(conditional(EVAL, two), upload({"t": 31})))["trigger_condition"] == {"evals": [EVAL, two]}
    assert body_of(request(conditional(), upload({"t": 31})))["trigger_condition"] == {"evals": []}


def test_log_entries_are_a_list() -> None:
    lines = tuple(LogLine(NOW + timedelta(seconds=n), "error", "arm", f"failure {n}") for n in range(MAX_LINES + 5))
    message = request({"type": "conditional_logs_ingested", "log_levels": ["error"]}, Logged({"error": lines}))
    result = body_of(message)
    assert message.method == "POST"
    assert len(result) == MAX_LINES
    assert result[-1] == {
        "time": rfc3339(lines[-1].time), "level": "error", "logger_name": "arm", "message": f"failure {MAX_LINES + 4}",
    }  # fmt: skip


def test_numbers_that_json_does_not_have_are_null() -> None:
    result = body_of(request(data("tabular"), upload({"a": math.nan, "b": [math.inf], "c": {"d": 1.5}})))
    assert result["data"]["data"] == {"a": None, "b": [None], "c": {"d": 1.5}}


def test_a_reading_that_is_too_large_is_left_out_and_said_to_be() -> None:
    result = body_of(request(data("tabular"), upload({"a": "x" * MAX_DATA})))
    assert result["data"]["data"] == {}
    assert str(MAX_DATA) in result["data_omitted"]


def test_basic_authentication() -> None:
    auth = {"basic": {"username": "ann", "password": "hüsh:x"}}
    headers = dict(request({"type": "part_online"}, Presence(True), {**HOOK, "auth": auth}).headers)
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == "ann:hüsh:x"


# ---- signatures, verified by the published library


def now_signed(event: Any, happening: Any, target: Any, id_: str = "msg_1", **more: Any) -> WebhookRequest:
    expected = trigger(event, target, **more)
    firing = fires(expected, happening)
    assert firing is not None
    return webhook(expected, expected.notifications[0], firing, WHERE, id_, datetime.now(UTC))


@pytest.mark.parametrize(
    ("event", "happening"),
    [
        (data("tabular"), upload({"ü": "€"})),
        (conditional(EVAL), upload({"t": 31})),
        ({"type": "part_online"}, Presence(True)),
    ],
)
@pytest.mark.parametrize("more", [{}, {"secret": SECRET}])
def test_the_signature_is_verified_by_the_published_library(event: Any, happening: Any, more: Any) -> None:
    target = HOOK if more else {**HOOK, "secret": SECRET}
    message = now_signed(event, happening, target, **more)
    Webhook(SECRET).verify(message.body, dict(message.headers), json_parse=bool(message.body))
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(message.body + b" ", dict(message.headers), json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + "A" * 32).verify(message.body, dict(message.headers), json_parse=False)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(message.body, {**dict(message.headers), "webhook-id": "msg_2"}, json_parse=False)


def test_both_secrets_sign_while_one_takes_the_place_of_the_other() -> None:
    new = "whsec_" + "A" * 32
    message = now_signed(data("file"), upload(data_type="file"), {**HOOK, "secret": f"{new} {SECRET}"})
    for item in (new, SECRET):
        Webhook(item).verify(message.body, dict(message.headers))


def test_the_target_has_its_own_secret() -> None:
    own = "whsec_" + "A" * 32
    message = now_signed(data("file"), upload(data_type="file"), {**HOOK, "secret": own}, secret=SECRET)
    Webhook(own).verify(message.body, dict(message.headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(message.body, dict(message.headers))


def test_without_a_secret_there_is_an_id_and_no_signature() -> None:
    headers = dict(request({"type": "part_online"}, Presence(True)).headers)
    assert headers["webhook-id"] == "msg_1"
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    assert "webhook-signature" not in headers


# ---- names in headers, times


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("My machine #1 (100%)", "My machine #1 (100%)"),
        ("Halle Süd", "Halle S%C3%BCd"),
        ("a\r\nX-Evil: 1", "a%0D%0AX-Evil: 1"),
        ("a\x00b", "a%00b"),
        (" a ", "a"),
        ("100% ü", "100%25 %C3%BC"),
        ("", ""),
        ("\ud800", "?"),
    ],
)
def test_names_in_headers(text: str, safe: str) -> None:
    assert header_safe(text) == safe


@given(st.text(max_size=30))
def test_every_name_makes_a_header_that_http_takes(text: str) -> None:
    h11.Request(method="GET", target="/", headers=[("Host", "x"), ("Machine-Name", header_safe(text))])


def test_times_are_utc() -> None:
    berlin = timezone(timedelta(hours=1))
    assert rfc3339(datetime(2026, 1, 2, 4, 4, 5, tzinfo=berlin)) == "2026-01-02T03:04:05Z"
