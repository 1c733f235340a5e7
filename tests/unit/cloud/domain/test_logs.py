"""Logs: pages, filters, live tail and expiry."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import trio

from cloud.domain.machines import logs
from cloud.domain.machines.logs import MAX_TEXT, RETENTION, LogQuery, LogRecord
from cloud.server.memory import APP, ROBOT, MemoryCloud
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.conftest import Clock

START = datetime(2026, 1, 1, tzinfo=UTC)


def entry(number: int, level: str = "info", **more: Any) -> dict[str, Any]:
    return {
        "host": "pi",
        "level": level,
        "time": START + timedelta(seconds=number // 2),  # two entries per second: equal times are the difficult case
        "logger_name": "rdk.motor",
        "message": f"message {number}",
        **more,
    }


async def send(cloud: MemoryCloud, part: str, *entries: dict[str, Any]) -> None:
    await cloud.client(part, "robot-secret").call(ROBOT, "", "log", id=part, logs=list(entries))


async def messages(cloud: MemoryCloud, part: str, **query: Any) -> list[str]:
    return [item["message"] for item in (await cloud.app("get_robot_part_logs", id=part, **query))["logs"]]


async def test_an_entry_is_read_back_completely(cloud: MemoryCloud, part: str) -> None:
    sent = entry(1, "error", caller={"File": "a.go", "Line": 3.0}, stack="at a.go", fields=[{"key": "x", "value": 1.0}])
    await send(cloud, part, sent)
    assert (await cloud.app("get_robot_part_logs", id=part))["logs"] == [sent]


async def test_integers_stay_integers(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, entry(1, caller={"Line": 3.0}, fields=[{"Key": "n", "Value": [25.0, {"x": 2.5}]}]))
    (row,) = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT caller, fields FROM log_entries"))
    assert row["caller"] == '{"Line": 3}'
    assert '"Value": [25, {"x": 2.5}]' in row["fields"]  # a Struct does not preserve the order of keys


async def test_an_entry_without_a_source_has_an_empty_source(cloud: MemoryCloud, part: str) -> None:
    """The official SDKs fail to write a log to a file if these keys are missing."""
    await send(cloud, part, entry(1))
    (item,) = (await cloud.app("get_robot_part_logs", id=part))["logs"]
    assert item["caller"] == {"File": "", "Line": 0}


async def test_repeated_entries_are_recognized_in_any_order_of_fields(cloud: MemoryCloud, part: str) -> None:
    """A Struct has no order of keys, so another process may decode the same message in a different order."""
    places = ({"File": "a.go", "Line": 3}, {"Line": 3, "File": "a.go"})
    for place, values in zip(places, ({"x": 1, "y": 2}, {"y": 2, "x": 1}), strict=True):
        record = LogRecord(START, "info", "rdk", "m", caller=place, fields=(values,))
        await cloud.cloud.store.write(lambda sql, item=record: logs.append(sql, part, [item], START))  # type: ignore[misc]
    assert len(await messages(cloud, part)) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 10, 11])
@pytest.mark.parametrize("order", ["ASCENDING", "DESCENDING", None])
async def test_pages_contain_every_entry_once_in_order(
    cloud: MemoryCloud, part: str, limit: int, order: str | None
) -> None:
    await send(cloud, part, *(entry(number) for number in range(10)))
    seen: list[str] = []
    token, pages = None, 0
    while token != "" and pages < 20:
        page = await cloud.app("get_robot_part_logs", id=part, limit=limit, page_token=token, order=order)
        seen += [item["message"] for item in page["logs"]]
        token, pages = page["next_page_token"], pages + 1
    expected = [f"message {number}" for number in range(10)]
    assert seen == (expected if order == "ASCENDING" else expected[::-1])


async def test_a_repeated_batch_is_stored_once(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, *(entry(number) for number in range(4)))
    await send(cloud, part, entry(100))  # an unrelated entry
    await send(cloud, part, *(entry(number) for number in range(7)), entry(1))
    seen = [item.message for item in await cloud.cloud.store.read(lambda sql: logs.arrived(sql, part, 0))]
    expected = [0, 1, 2, 3, 100, 4, 5, 6, 1]
    assert seen == [f"message {number}" for number in expected], "one that is there twice in a batch is kept twice"
    await send(cloud, part, *(entry(number) for number in (7, 8)), entry(2))
    assert (await cloud.cloud.store.read(lambda sql: logs.arrived(sql, part, 0)))[-1].message == "message 2", (
        "said again"
    )
    await send(cloud, part, entry(0, "error"))
    assert len(await cloud.cloud.store.read(lambda sql: logs.arrived(sql, part, 0))) == len(expected) + 4


async def test_filters(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    clock.now += timedelta(minutes=1)  # after the entries
    await send(
        cloud,
        part,
        entry(0, "debug"),
        entry(2, "warn", message="it is 100% full"),
        entry(4, "error", logger_name="rdk.camera"),
        entry(6, "info", fields=[{"key": "port"}]),
    )
    assert await messages(cloud, part, errors_only=True) == ["message 4"]
    assert await messages(cloud, part, levels=["debug", "WARN"]) == ["it is 100% full", "message 0"]
    assert await messages(cloud, part, filter="0%") == ["it is 100% full"]
    assert await messages(cloud, part, filter="%0") == []
    assert await messages(cloud, part, filter="port") == ["message 6"]
    assert await messages(cloud, part, source="camera") == ["message 4"]
    assert await messages(cloud, part, start=START + timedelta(seconds=1), end=START + timedelta(seconds=3)) == [
        "message 4",
        "it is 100% full",
    ]
    for wrong in ({"page_token": "x"}, {"range": "1h"}):
        with pytest.raises(MachineError):
            await messages(cloud, part, **wrong)


async def test_following_yields_entries_and_no_empty_lists(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, entry(0, "error", message="before"))
    send_batch, batches = trio.open_memory_channel[list[str]](100)

    async def tail() -> None:
        async for batch in cloud.client().stream(APP, "", "tail_robot_part_logs", id=part, errors_only=True):
            await send_batch.send([item["message"] for item in batch])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tail)
        first: list[str] = []
        with trio.fail_after(30):
            for number in itertools.count(100):  # until the tail listens; identical entries are stored once
                if first:
                    break
                await send(cloud, part, entry(number, "error", message="knock"))
                with trio.move_on_after(0.05):
                    first = await batches.receive()
            assert set(first) == {"knock"}
            await send(cloud, part, entry(2))
            await send(cloud, part, entry(3, "error"), entry(4), entry(5, "error"))
            got: list[str] = []
            while len(got) < 2:
                batch = await batches.receive()
                assert batch
                got += [element for element in batch if element != "knock"]
        nursery.cancel_scope.cancel()
    assert got == ["message 3", "message 5"]
    assert not cloud.cloud.events._listeners["logs"]


async def test_a_batch_with_too_many_entries_is_refused_completely(cloud: MemoryCloud, part: str) -> None:
    with pytest.raises(MachineError) as caught:
        await send(cloud, part, *(entry(number) for number in range(1001)))
    assert caught.value.kind is ErrorKind.INVALID
    assert await messages(cloud, part) == []


async def test_a_too_long_entry_is_truncated_with_a_note(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, entry(0, message="x" * (MAX_TEXT + 7)))
    (message,) = await messages(cloud, part)
    assert len(message) < MAX_TEXT + 60
    assert "7 characters cut off" in message


async def test_entries_expire_after_thirty_days_and_not_before(cloud: MemoryCloud, part: str, clock: Any) -> None:
    store = cloud.cloud.store
    await send(cloud, part, entry(0))
    clock.now += timedelta(days=29, hours=23)
    assert await store.write(lambda sql: logs.expire(sql, clock.now)) == 0
    await cloud.app("delete_robot", id=(await cloud.app("get_robot_part", id=part))["part"]["robot"])
    assert len(await store.read(lambda sql: logs.query(sql, part, LogQuery()))) == 1  # deleting the machine keeps logs
    clock.now += timedelta(hours=2)
    assert await store.write(lambda sql: logs.expire(sql, clock.now)) == 1
    assert timedelta(days=30) == RETENTION


async def test_late_entries_are_returned_by_arrival(cloud: MemoryCloud, part: str) -> None:
    store = cloud.cloud.store
    for moment in (5, 1):
        record = LogRecord(START + timedelta(seconds=moment), "INFO", "rdk", str(moment))
        await store.write(lambda sql, item=record: logs.append(sql, part, [item], START + timedelta(minutes=1)))
    assert [element.message for element in await store.read(lambda sql: logs.arrived(sql, part, 0))] == ["5", "1"]
    assert [result.message for result in await store.read(lambda sql: logs.query(sql, part, LogQuery()))] == ["5", "1"]
    assert (await store.read(lambda sql: logs.query(sql, part, LogQuery(ascending=True))))[0].level == "info"


async def test_an_entry_from_the_future_hides_no_newer_one(cloud: MemoryCloud, part: str) -> None:
    """A machine without a clock battery starts in 2031, and its clock is corrected after 40 s."""
    now = cloud.cloud.clock()
    future = [entry(number, time=now + timedelta(days=5 * 365, seconds=number)) for number in range(3)]
    await send(cloud, part, *future)
    await send(cloud, part, *future, entry(3, time=now + timedelta(days=5 * 365, seconds=3)))  # sent again, and longer
    await send(cloud, part, entry(4, time=now), entry(5, time=cloud.cloud.clock()))
    newest = (await cloud.app("get_robot_part_logs", id=part, limit=1))["logs"]
    assert [item["message"] for item in newest] == ["message 5"]
    assert sorted(await messages(cloud, part)) == [f"message {number}" for number in range(6)]
    soon = cloud.cloud.clock() + timedelta(minutes=1)
    assert len(await messages(cloud, part, start=now - timedelta(minutes=1), end=soon)) == 6
    assert await messages(cloud, part, start=soon) == []
    (shown,) = (await cloud.app("get_robot_part_logs", id=part, filter="message 3"))["logs"]
    assert shown["time"] == now + timedelta(days=5 * 365, seconds=3), "what was logged stays visible"
    seen: list[str] = []
    token: str | None = None
    while token != "":
        page = await cloud.app("get_robot_part_logs", id=part, limit=2, page_token=token, order="ASCENDING")
        seen += [item["message"] for item in page["logs"]]
        token = page["next_page_token"]
    assert sorted(seen) == [f"message {number}" for number in range(6)]
