"""-output-telemetry and `tracing` on the real process: what is printed, stored, and sent to a test collector."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import pytest
import trio

from tests.e2e.options.support import motor
from tests.e2e.server.process import Server, server
from tests.loopback import listening

MOTOR = "rdk:component:motor"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
LIMIT_S = 60.0


class Receiver:
    """An OTLP receiver over HTTP: stores the requests and answers `status`."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[tuple[str, Any]] = []
        self.port = 0

    async def serve(self, stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        body, target = b"", ""
        async with stream:
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(await stream.receive_some(65536))
                elif isinstance(event, h11.Request):
                    target = event.target.decode()
                elif isinstance(event, h11.Data):
                    body += bytes(event.data)
                else:
                    break
            if self.status == 200:
                self.requests.append((target, json.loads(body)))
            head = h11.Response(status_code=self.status, headers=[("content-length", "2")])
            data = [connection.send(part) for part in (head, h11.Data(data=b"{}"), h11.EndOfMessage())]
            await stream.send_all(b"".join(part for part in data if part))

    def spans(self) -> list[dict[str, Any]]:
        bodies = [body for target, body in self.requests if target == "/v1/traces"]
        return [span for body in bodies for span in spans_of(body)]

    def metrics(self) -> dict[str, dict[str, Any]]:
        bodies = [body for target, body in self.requests if target == "/v1/metrics"]
        return {
            metric["name"]: metric
            for body in bodies
            for metric in body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        }


def spans_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [span for item in request["resourceSpans"] for scope in item["scopeSpans"] for span in scope["spans"]]


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    result = Receiver()
    async with listening(result.serve) as result.port:
        yield result


async def until(look: Any, running: Server) -> Any:
    """Return the result of `look` once it is true."""
    with trio.move_on_after(LIMIT_S):
        while not (result := look()):  # noqa: ASYNC110 - another process does not notify this one
            await trio.sleep(0.02)
        return result
    raise AssertionError(running.log())


async def call(running: Server, **metadata: str) -> None:
    async with running.client(metadata) as client:
        await client.call(MOTOR, "m", "set_power", power_pct=0.5)


async def test_metrics_and_spans_are_printed(tmp_path: Path) -> None:
    async with server(tmp_path, {"components": [motor("m")]}, "-output-telemetry", running=True) as running:
        await call(running, traceparent=f"00-{TRACE}-{PARENT}-01")
        line = await until(lambda: said(running, f"{MOTOR}/m.set_power"), running)
        assert "rdk.spans" in line
        assert json.loads(line.split("\t")[-1])["trace"] == TRACE
        assert json.loads(line.split("\t")[-1])["parent"] == PARENT
        assert "start rdk:component:motor/m" in running.log()
        line = await until(lambda: said(running, "rdk.metrics\t\tproc.machine-server"), running)
        assert json.loads(line.split("\t")[-1])["RssMB"] > 10
        assert await running.stop() == 0


def said(running: Server, words: str) -> str:
    return next((line for line in running.log().splitlines() if words in line), "")


async def test_without_option_and_tracing_nothing_is_printed(tmp_path: Path) -> None:
    async with server(tmp_path, {"components": [motor("m")]}, running=True) as running:
        await call(running)
        assert await running.stop() == 0
        assert "rdk.spans" not in running.log()
        assert "rdk.metrics" not in running.log()


async def test_spans_and_metrics_reach_a_collector(tmp_path: Path) -> None:
    async with receiver() as collector:
        tracing = {"otlpendpoint": f"http://127.0.0.1:{collector.port}"}
        document = {"components": [motor("m")], "tracing": tracing}
        async with server(tmp_path, document, "-output-telemetry", running=True) as running:
            await call(running, traceparent=f"00-{TRACE}-{PARENT}-01")
            span = await until(
                lambda: next((item for item in collector.spans() if item["name"] == f"{MOTOR}/m.set_power"), None),
                running,
            )
            assert (span["traceId"], span["parentSpanId"], span["kind"]) == (TRACE, PARENT, 2)
            assert int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"])
            metrics = await until(collector.metrics, running)
            assert metrics["proc.machine-server.RssMB"]["gauge"]["dataPoints"][0]["asDouble"] > 10
            calls = metrics[f"rpc.{MOTOR}/m.set_power.Calls"]["sum"]
            assert (calls["isMonotonic"], calls["dataPoints"][0]["asDouble"]) == (True, 1.0)
            assert await running.stop() == 0


async def test_spans_wait_for_a_collector_and_an_outage_is_logged_once(tmp_path: Path) -> None:
    async with receiver() as collector:
        collector.status = 503
        tracing = {"enabled": True, "otlpendpoint": f"127.0.0.1:{collector.port}"}
        async with server(tmp_path, {"components": [motor("m")], "tracing": tracing}, running=True) as running:
            await call(running)
            await until(lambda: "telemetry cannot be delivered" in running.log(), running)
            collector.status = 200
            await until(lambda: any(span["name"] == f"{MOTOR}/m.set_power" for span in collector.spans()), running)
            await until(lambda: "telemetry is delivered again" in running.log(), running)
            assert running.log().count("telemetry cannot be delivered") == 1


async def test_spans_are_kept_on_disk_and_shown_on_the_console(tmp_path: Path) -> None:
    tracing = {"enabled": True, "disk": True, "console": True}
    async with server(tmp_path, {"components": [motor("m")], "tracing": tracing}, running=True) as running:
        await call(running)
        await until(lambda: said(running, f"rdk.spans\t\t{MOTOR}/m.set_power"), running)
        assert await running.stop() == 0
    (file,) = (tmp_path / "home/traces/local-config").glob("machine-server-*.jsonl")
    spans = [span for line in file.read_text().splitlines() for span in spans_of(json.loads(line))]
    assert f"{MOTOR}/m.set_power" in {span["name"] for span in spans}


async def test_an_invalid_address_is_logged_and_stops_nothing(tmp_path: Path) -> None:
    tracing = {"enabled": True, "otlpendpoint": "ftp://nowhere"}
    async with server(tmp_path, {"components": [motor("m")], "tracing": tracing}, running=True) as running:
        await until(lambda: "tracing.otlpendpoint" in running.log(), running)
        await call(running)


pytestmark = pytest.mark.slow
