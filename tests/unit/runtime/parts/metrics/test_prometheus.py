"""`/metrics` of a machine, parsed with the client library's own parser."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse

from engine.calls.counts import Counts
from rpc.access.auth import Authenticator, Credential
from rpc.access.credential_types import API_KEY
from rpc.access.guard import Guard
from runtime.server.memory import open_machine
from runtime.server.pages.app import app
from telemetry.metrics.exposition import MAX_SAMPLES, Family, expose
from tests.unit.runtime.parts.web.client import Browser

MOTOR = "rdk:component:motor/left"
DOCUMENT = {
    "components": [
        {"name": "left", "api": "rdk:component:motor", "model": "fake"},
        {"name": "broken", "api": "rdk:component:motor", "model": "none"},
    ]
}


def samples(text: str) -> dict[tuple[str, tuple[str, ...]], float]:
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for item in parse(text)
        for sample in item.samples
    }


async def test_a_machine_is_scraped() -> None:
    async with open_machine(DOCUMENT) as memory:
        await memory.machine.lifecycle.running.wait()
        memory.machine.traffic.calls.by_method[MOTOR, "SetPower"] = Counts(calls=3, errors=1, active=2, seconds=0.5)
        reply = await Browser(app(memory.machine)).get("/metrics")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain; version=")
    result = samples(reply.text)
    assert result["machine_resource_state", (MOTOR, "ready")] == 1
    assert result["machine_resource_state", (MOTOR, "unhealthy")] == 0
    assert result["machine_resource_state", ("rdk:component:motor/broken", "unhealthy")] == 1
    names = ("calls_total", "call_errors_total", "calls_in_flight", "call_seconds_total")
    assert [result[f"machine_rpc_{name}", ("SetPower", MOTOR)] for name in names] == [3, 1, 2, 0.5]
    assert result["process_resident_memory_bytes", ()] > 1e6
    assert result["machine_network_receive_bytes_total", ("lo",)] >= 0


HOSTILE = ['a"b', "a\\b", "a\nb", "\N{SNOWMAN}", ""]


@pytest.mark.parametrize(
    ("accept", "read"), [("", parse), ("application/openmetrics-text; version=1.0.0", parse_openmetrics)]
)
def test_labels_are_escaped_in_both_formats(accept: str, read: object) -> None:
    family = Family(
        "counter", "machine_x", "Help\nof \\ it", [((label,), at) for at, label in enumerate(HOSTILE)], ("l",)
    )
    body, content_type = expose([family], accept, process=False)
    assert ("openmetrics" in content_type) == bool(accept)
    read_text = read(body.decode())  # type: ignore[operator]
    values = {sample.labels["l"]: sample.value for line in read_text for sample in line.samples}
    assert values == {label: at for at, label in enumerate(HOSTILE)}


def test_a_scrape_is_bounded() -> None:
    many: Iterable[tuple[tuple[str, ...], float]] = [((str(at),), at) for at in range(MAX_SAMPLES)]
    families = [Family("gauge", name, "", list(many), ("n",)) for name in ("machine_a", "machine_b")]
    body, _ = expose(families, "", process=False)
    assert body.count(b"\nmachine_a{") == MAX_SAMPLES
    assert b"\nmachine_b{" not in body


async def test_a_scraper_shows_a_key_by_basic_authentication() -> None:
    authenticator = Authenticator(credentials=[Credential(API_KEY, "scraper", "s3cret")])
    async with open_machine(DOCUMENT) as memory:
        browser = Browser(Guard(app(memory.machine), authenticator, names=None))
        for path, pair, status in (
            ("/metrics", "scraper:s3cret", 200),
            ("/metrics", "scraper:wrong", 401),
            ("/metrics", "s3cret", 401),
            ("/metrics", "", 401),
            ("/status.json", "scraper:s3cret", 401),  # browsers send it automatically, so pages do not accept it
        ):
            header = "Basic " + base64.b64encode(pair.encode()).decode()
            reply = await browser.get(path, {"authorization": header})
            assert reply.status == status, (path, pair)
        assert (await browser.get("/metrics", {"authorization": "Basic ###"})).status == 401
        assert (await browser.get("/metrics", {})).status == 401
