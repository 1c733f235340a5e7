"""Trace headers, OTLP JSON, endpoints, and which metrics are rates."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.parts.metrics.exporters import kind_of
from runtime.parts.metrics.post import CollectorEndpoint
from telemetry.metrics.otlp import metrics_request, spans_request
from telemetry.metrics.spans import Span, parse_traceparent

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (f"00-{TRACE}-{PARENT}-01", (TRACE, PARENT)),
        (f"00-{TRACE}-{PARENT}-00", (TRACE, PARENT)),
        (f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be", (TRACE, PARENT)),
        (f"ff-{TRACE}-{PARENT}-01", None),
        (f"00-{'0' * 32}-{PARENT}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{PARENT}-01", None),
        (f"00-{TRACE}-{PARENT}", None),
        ("", None),
        (None, None),
        (b"bytes", None),
    ],
)
def test_traceparent(text: object, result: tuple[str, str] | None) -> None:
    """W3C Trace Context, section 3.2."""
    assert parse_traceparent(text) == result


def test_a_span_as_otlp_writes_it() -> None:
    span = Span(
        TRACE, PARENT, "", "motor.set_power", 1_000, 2_500, server=True, attributes={"a": 1, "b": 0.5, "c": True}
    )
    request = spans_request([span], {"service.name": "machine-server"})
    assert json.loads(json.dumps(request)) == {
        "resourceSpans": [
            {
                "resource": {
                    "attributes": [{"key": "service.name", "value": {"stringValue": "machine-server"}}],
                },
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": TRACE,
                                "spanId": PARENT,
                                "name": "motor.set_power",
                                "kind": 2,
                                "startTimeUnixNano": "1000",
                                "endTimeUnixNano": "2500",
                                "attributes": [
                                    {"key": "a", "value": {"intValue": "1"}},
                                    {"key": "b", "value": {"doubleValue": 0.5}},
                                    {"key": "c", "value": {"boolValue": True}},
                                ],
                            }
                        ]
                    }
                ],
            }
        ]
    }


def test_parent_and_error_are_there_if_there_are_any() -> None:
    span = Span(TRACE, PARENT, "1" * 16, "x", 1, 2, error="it broke")
    (written,) = spans_request([span], {})["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert (written["parentSpanId"], written["kind"]) == ("1" * 16, 1)
    assert written["status"] == {"code": 2, "message": "it broke"}


def test_metrics_are_gauges_or_sums_and_never_infinite() -> None:
    values = {"a.RssMB": 5.0, "a.Calls": 3, "a.Broken": math.nan}
    request = metrics_request(values, start=1, now=9, kind=kind_of, resource={})
    gauge, total = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    assert gauge == {
        "name": "a.RssMB",
        "unit": "MiB",
        "gauge": {"dataPoints": [{"timeUnixNano": "9", "asDouble": 5.0}]},
    }
    assert total["sum"]["isMonotonic"]
    assert total["sum"]["aggregationTemporality"] == 2
    assert total["sum"]["dataPoints"] == [{"startTimeUnixNano": "1", "timeUnixNano": "9", "asDouble": 3.0}]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("x.UserCPUSecs", ("s", True)), ("x.RxBytes", ("B", True)), ("x.TimeMs", ("ms", True)), ("x.State", ("", False))],
)
def test_counters_are_recognized_by_their_last_word(name: str, kind: tuple[str, bool]) -> None:
    assert kind_of(name)[1] is kind[1]
    assert kind_of(name)[0] == kind[0]


@pytest.mark.parametrize(
    ("text", "shown", "path"),
    [
        ("http://collector:4318", "http://collector:4318", ""),
        ("http://collector", "http://collector:4318", ""),
        ("collector:4318", "http://collector:4318", ""),
        ("https://api.example.com/otlp/", "https://api.example.com:443/otlp", "/otlp"),
        ("https://api.example.com/otlp/v1/traces", "https://api.example.com:443/otlp", "/otlp"),
        ("http://[::1]:9", "http://[::1]:9", ""),
    ],
)
def test_endpoints(text: str, shown: str, path: str) -> None:
    endpoint = CollectorEndpoint.parse(text)
    assert (str(endpoint), endpoint.path) == (shown, path)


@pytest.mark.parametrize("text", ["", "ftp://x", "http://", "http://user@host", "http://x?y=1", "http://x:port"])
def test_invalid_endpoints(text: str) -> None:
    with pytest.raises(ValueError, match=re.compile("collector|ort")):
        CollectorEndpoint.parse(text)


@given(st.text(max_size=60))
def test_any_header_is_read_or_refused(text: str) -> None:
    parsed = parse_traceparent(text)
    assert parsed is None or (len(parsed[0]), len(parsed[1])) == (32, 16)
