"""What RobotService answers about the cloud, which traces it accepts and what it refuses, on a machine in memory."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from runtime.parts.metrics.received import MOST_SPANS, spans_of
from runtime.programs.command import machine_facts
from runtime.server.memory import open_machine
from schema.document.cloud import Cloud
from schema.document.machine import MachineDocument
from schema.errors import ErrorKind, MachineError
from schema.secrets import Masker
from telemetry.metrics.spans import Span

ROBOT = "viam.robot.v1.RobotService"
CLOUD = Cloud(id="part-1", secret="not-shown", machine_id="machine-1", location_id="home", primary_org_id="org-1")


async def test_a_machine_of_a_cloud_says_its_ids(autojump_clock: object) -> None:
    async with open_machine({}) as memory:
        await memory.machine.lifecycle.running.wait()
        memory.machine.configured.document = MachineDocument(cloud=CLOUD)
        answer = await memory.client().call(ROBOT, "", "get_cloud_metadata")
    assert answer == {
        "primary_org_id": "org-1",
        "location_id": "home",
        "machine_id": "machine-1",
        "machine_part_id": "part-1",
    }


@pytest.mark.parametrize(
    ("address", "name", "page"),
    [
        ("http://cloud.example:8090/", "bench", "http://cloud.example:8090/machines/part-1"),
        ("https://cloud.example", "", ""),  # a cloud that names no machines is another program
        ("javascript:alert(1)//", "bench", ""),
    ],
)
async def test_a_machine_of_a_cloud_has_its_name_there(
    autojump_clock: object, address: str, name: str, page: str
) -> None:
    async with open_machine({}) as memory:
        await memory.machine.lifecycle.running.wait()
        joined = Cloud(id="part-1", secret="not-shown", app_address=address, machine_name=name)
        memory.machine.configured.document = MachineDocument(cloud=joined)
        status = memory.machine.status()
    assert (status.name, status.page) == (name or status.host, page)


async def test_a_machine_of_a_file_has_none(autojump_clock: object) -> None:
    async with open_machine({}) as memory:
        await memory.machine.lifecycle.running.wait()
        with pytest.raises(MachineError, match="not managed by a cloud") as caught:
            await memory.client().call(ROBOT, "", "get_cloud_metadata")
    assert caught.value.kind is ErrorKind.PRECONDITION


def span(number: int = 1, **keys: Any) -> dict[str, Any]:
    return {
        "trace_id": (7).to_bytes(16, "big"),
        "span_id": number.to_bytes(8, "big"),
        "name": "look",
        "kind": "SPAN_KIND_SERVER",
        "start_time_unix_nano": 10,
        "end_time_unix_nano": 30,
        **keys,
    }


def group(*spans: dict[str, Any]) -> list[dict[str, Any]]:
    name = {"key": "service.name", "value": {"string_value": "demo"}}
    return [{"resource": {"attributes": [name]}, "scope_spans": [{"spans": list(spans)}]}]


async def test_spans_of_a_module_go_where_the_machines_own_go(autojump_clock: object) -> None:
    taken: list[Span] = []
    failed = span(
        2,
        parent_span_id=(1).to_bytes(8, "big"),
        status={"code": "STATUS_CODE_ERROR", "message": "gone"},
        attributes=[{"key": "n", "value": {"int_value": 3}}, {"key": "ok", "value": {"bool_value": True}}],
    )
    async with open_machine({}) as memory:
        await memory.machine.lifecycle.running.wait()
        client = memory.client({"modname": "demo"})
        await client.call(ROBOT, "", "send_traces", resource_spans=group(span()))  # no consumer is active yet
        memory.machine.traffic.calls.tracer.start(taken.append)
        await client.call(ROBOT, "", "send_traces", resource_spans=group(span(), failed))
        memory.machine.traffic.calls.tracer.stop()
    first, second = (item for item in taken if item.name == "look")
    assert (first.trace, first.id, first.parent) == (f"{7:032x}", f"{1:016x}", "")
    assert (first.start, first.end, first.server, first.error) == (10, 30, True, "")
    assert first.attributes == {"module": "demo", "service.name": "demo"}
    assert (second.parent, second.error) == (f"{1:016x}", "gone")
    assert second.attributes == {"n": 3, "ok": True, "module": "demo", "service.name": "demo"}


async def test_one_request_may_not_bring_more_than_the_queue_holds(autojump_clock: object) -> None:
    taken: list[Span] = []
    many = group(*(span(number) for number in range(1, MOST_SPANS + 11)), span(trace_id=b"?"))
    async with open_machine({}) as memory:
        await memory.machine.lifecycle.running.wait()
        memory.machine.traffic.calls.tracer.start(taken.append)
        with structlog.testing.capture_logs() as logs:
            await memory.client().call(ROBOT, "", "send_traces", resource_spans=many)
        memory.machine.traffic.calls.tracer.stop()
    assert sum(item.name == "look" for item in taken) == MOST_SPANS
    assert [entry["dropped"] for entry in logs if "dropped" in entry] == [11]


@pytest.mark.parametrize(
    "ids", [{"trace_id": b""}, {"trace_id": bytes(16)}, {"span_id": b"1"}, {"parent_span_id": b"1"}]
)
def test_ids_that_cannot_be(ids: dict[str, bytes]) -> None:
    assert list(spans_of(group(span(**ids)), sender="", masker=Masker())) == [None]


def test_secrets_and_length_of_what_is_sent() -> None:
    masker = Masker().and_those_of({"password": "correct-horse"})
    result = span(
        name="login with correct-horse",
        attributes=[
            {"key": "line", "value": {"string_value": "x" * 5000}},
            *({"key": f"k{number}", "value": {"string_value": "correct-horse"}} for number in range(100)),
        ],
    )
    (item,) = spans_of(group(result), sender="demo", masker=masker)
    assert item is not None
    assert "correct-horse" not in item.name + repr(item.attributes)
    assert len(item.attributes["line"]) == 1024
    assert len(item.attributes) <= 66


async def test_a_path_of_the_machine_is_not_read_for_clients(autojump_clock: object) -> None:
    async with open_machine({}) as memory:
        await memory.machine.lifecycle.running.wait()
        with pytest.raises(MachineError, match="not supported") as caught:
            await memory.client().call(ROBOT, "", "upload_data_from_path", path="/etc/shadow")
    assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert "additional_sync_paths" in str(caught.value)


def test_modules_are_asked_to_trace() -> None:
    assert "VIAM_MODULE_TRACING" not in machine_facts(MachineDocument())
    assert machine_facts(MachineDocument(), tracing=True)["VIAM_MODULE_TRACING"] == "1"
