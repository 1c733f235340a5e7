"""machine.cloud.v1.TriggerService over RPC: messages, roles, another tenant, and readings that are not valid."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest
from grpclib.const import Cardinality

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from rpc.access.credential_types import API_KEY
from rpc.api.client import ApiClient, find_method
from rpc.api.cloud_v1 import TRIGGERS
from rpc.api.memory import MemoryChannel
from rpc.carrier import Identity
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.triggering_help import (
    URL,
    Receiver,
    configure,
    evaluated,
    hotter,
    log,
    sent,
    tabular,
    upload,
    webhook,
)
from tests.unit.cloud.web.test_web_fleet import key_at
from triggers.retry import of_status


async def call(client: ApiClient, part: str, method: str, **arguments: Any) -> Any:
    return await client.call(TRIGGERS, "", method, part_id=part, **arguments)


async def kind_of(client: ApiClient, part: str, method: str, **arguments: Any) -> ErrorKind:
    with pytest.raises(MachineError) as caught:
        await call(client, part, method, **arguments)
    return caught.value.kind


async def test_triggers_with_conditions_problems_and_pauses(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    paused = webhook(seconds_between_notifications=600)
    await configure(cloud, part, tabular("all", paused), hotter("hot", 30), {"name": "broken"})
    await upload(cloud, part, 10)
    await evaluated(cloud, part)
    reply = await call(cloud.client(), part, "list_triggers")
    assert [(trigger["name"], trigger["event"]) for trigger in reply["triggers"]] == [
        ("all", "part_data_ingested"),
        ("hot", "conditional_data_ingested"),
    ]
    assert reply["triggers"][1]["condition"] == {
        "data_capture_method": "sensor:oven:Readings",
        "evals": [{"operator": "gt", "value": {"celsius": 30}}],
    }
    (target,) = reply["triggers"][0]["targets"]
    assert (target["type"], target["value"], target["seconds"], target["signed"]) == ("webhook", URL, 600, False)
    assert target["until"] - clock() <= timedelta(seconds=600)
    assert "until" not in reply["triggers"][1]["targets"][0]
    assert any("triggers.2" in problem for problem in reply["problems"])


async def test_a_reading_is_explained_with_whole_numbers(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, hotter("hot", 30))
    reply = await call(cloud.client(), part, "explain_trigger", trigger="hot", reading={"celsius": 31})
    assert reply["explanation"]["fires"]
    (finding,) = reply["explanation"]["findings"]
    assert finding == {
        "path": "celsius",
        "operator": "gt",
        "value": 31,
        "right": 30,
        "holds": True,
        "reason": "31 is greater than 30",
    }
    assert reply["reading"] == {"celsius": 31}
    without = await call(cloud.client(), part, "explain_trigger", trigger="hot")
    assert (without["explanation"]["fires"], "reading" in without) == (False, False)


async def test_a_delivery_is_sent_listed_and_replayed(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, hotter("hot", 30))
    (id_,) = await call(cloud.client(), part, "send_test", trigger="hot", value=URL, reading={"celsius": 5})
    (waiting,) = await call(cloud.client(), part, "list_deliveries", trigger="hot")
    assert waiting["next"] == waiting["created"]
    await sent(cloud, Receiver(of_status(500)))
    (listed,) = await call(cloud.client(), part, "list_deliveries", state="failed", limit=500)
    assert (listed["id"], listed["test"], listed["attempts"], "next" in listed) == (id_, True, 1, False)
    assert listed["about"] == {"component": "oven", "method": "Readings"}
    assert await call(cloud.client(), part, "list_deliveries", before=listed["number"]) == []
    record = await call(cloud.client(), part, "get_delivery", delivery_id=id_)
    assert record["delivery"] == listed
    assert b'"celsius":5' in record["body"].replace(b" ", b"")
    assert record["headers"] == dict((await log(cloud, part))[0].headers) != {}
    (attempt,) = record["attempts"]
    assert (attempt["number"], attempt["status"], attempt["error"]) == (1, 500, of_status(500).error)
    assert attempt["duration"] >= timedelta(0)
    await call(cloud.client(), part, "replay_delivery", delivery_id=id_)
    await sent(cloud, Receiver(of_status(200)))
    assert [delivery.state.value for delivery in await log(cloud, part)] == ["delivered"]
    await call(cloud.client(), part, "start_trigger", trigger="hot")


CALLS: list[tuple[str, dict[str, Any], bool]] = [  # method, arguments, whether an operator may call it
    ("list_triggers", {}, True),
    ("list_deliveries", {}, True),
    ("get_delivery", {"delivery_id": "ID"}, True),
    ("explain_trigger", {"trigger": "all", "reading": {}}, True),
    ("send_test", {"trigger": "all"}, False),
    ("replay_delivery", {"delivery_id": "ID"}, False),
    ("start_trigger", {"trigger": "all"}, False),
]


@pytest.mark.parametrize(("method", "arguments", "operators"), CALLS)
async def test_roles(cloud: MemoryCloud, part: str, method: str, arguments: dict[str, Any], operators: bool) -> None:
    await configure(cloud, part, tabular("all"))
    await upload(cloud, part, 1)
    (delivery,) = await evaluated(cloud, part)
    await sent(cloud, Receiver(of_status(404)))
    named = {name: delivery.id if value == "ID" else value for name, value in arguments.items()}
    operator, _ = await key_at(cloud, "organization", cloud.first.organization)
    if operators:
        await call(cloud.client(operator), part, method, **named)
    else:
        assert await kind_of(cloud.client(operator), part, method, **named) is ErrorKind.PERMISSION
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    assert await kind_of(cloud.client(other.id), part, method, **named) is ErrorKind.NOT_FOUND
    assert await kind_of(cloud.client(part, "robot-secret"), part, method, **named) is ErrorKind.PERMISSION
    await call(cloud.client(), part, method, **named)


NESTED: Any = 1
for _ in range(31):
    NESTED = [NESTED]


@pytest.mark.parametrize("method", ["explain_trigger", "send_test"])
@pytest.mark.parametrize(
    ("reading", "kind"),
    [
        (None, None),
        ({"celsius": 31}, None),
        ({"celsius": NESTED}, None),
        ({"celsius": "\ud800"}, ErrorKind.INVALID),
        ({"\udfff": 1}, ErrorKind.INVALID),
        ({"celsius": math.nan}, ErrorKind.INVALID),
        ({"celsius": math.inf}, ErrorKind.INVALID),
        ({"celsius": 10**400}, ErrorKind.INVALID),
        ({"celsius": [NESTED]}, ErrorKind.INVALID),
        ({"celsius": [[[NESTED]]]}, ErrorKind.INVALID),
        ({"celsius": [0] * 40_000}, ErrorKind.INVALID),
        (5, ErrorKind.INVALID),
    ],
)
async def test_readings_that_json_cannot_represent(
    cloud: MemoryCloud, part: str, method: str, reading: Any, kind: ErrorKind | None
) -> None:
    await configure(cloud, part, hotter("hot", 30))
    if kind is None:
        await call(cloud.client(), part, method, trigger="hot", reading=reading)
    else:
        assert await kind_of(cloud.client(), part, method, trigger="hot", reading=reading) is kind
    assert len(await log(cloud, part)) == (method == "send_test" and kind is None)


async def test_other_arguments_that_are_not_valid(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, hotter("hot", 30))
    client = cloud.client()
    assert await kind_of(client, part, "send_test", trigger="hot", value="nobody") is ErrorKind.NOT_FOUND
    assert await kind_of(client, part, "send_test", trigger="cold") is ErrorKind.NOT_FOUND
    assert await kind_of(client, part, "list_deliveries", state="lost") is ErrorKind.INVALID
    assert await kind_of(client, part, "list_deliveries", limit=-1) is ErrorKind.INVALID
    assert await kind_of(client, part, "get_delivery", delivery_id="nothing") is ErrorKind.NOT_FOUND


async def test_a_value_without_a_kind_is_null(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, hotter("hot", 30))
    method = find_method(TRIGGERS, "explain_trigger")
    request: Any = method.request_class()
    request.part_id, request.trigger = part, "hot"
    request.reading.fields["celsius"].SetInParent()
    channel = MemoryChannel(cloud.router, identity=Identity(cloud.first.id, API_KEY))
    async with channel.request(
        method.path, Cardinality.UNARY_UNARY, method.request_class, method.reply_class
    ) as stream:
        await stream.send_message(request, end=True)
        reply: Any = await stream.recv_message()
    assert reply.explanation.findings[0].reason == "the field is null"
