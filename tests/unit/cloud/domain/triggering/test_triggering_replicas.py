"""Two replicas on one PostgreSQL share trigger work: nothing is done twice or left undone."""

from __future__ import annotations

import json

import trio

from cloud.domain.configurations import configurations
from cloud.domain.data.readings import new_reading
from cloud.domain.machines import machines
from cloud.domain.organizations.first import create_owner
from cloud.domain.triggering import deliveries, queue
from cloud.domain.triggering.evaluation import evaluate
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.domain.triggering.outbox import Outbox
from cloud.store.events import Events
from cloud.store.postgres import PostgresStore
from cloud.store.sql import Sql
from cloud.values.author import THE_PROGRAM
from cloud.values.times import now
from tests.postgresql import Cluster
from tests.unit.cloud.triggering_help import Receiver, tabular

PARTS, UPLOADS = 4, 12


def begin(sql: Sql) -> list[str]:
    place = create_owner(sql, "Test", now()).location
    results = []
    for number in range(PARTS):
        (part,) = machines.parts(sql, machines.create_machine(sql, place, f"rover {number}", now()))
        configurations.save(sql, part.id, {"triggers": [tabular("all")]}, THE_PROGRAM, now())
        results.append(part.id)
    return results


async def test_replicas_evaluate_and_send_every_event_once_in_order(postgresql: Cluster) -> None:
    url = postgresql.fresh()
    first, two = Events(), Events()
    receiver = Receiver()
    order: dict[str, list[int]] = {}
    finished = trio.Event()

    async def note(delivery: deliveries.Delivery) -> None:
        readings = json.loads(delivery.body)["data"]["data"]["readings"]
        order.setdefault(delivery.part, []).append(readings["number"])
        if sum(map(len, order.values())) >= PARTS * UPLOADS:
            finished.set()

    receiver.before = note
    async with PostgresStore(url, first).opened() as left, PostgresStore(url, two).opened() as right:
        parts = await left.write(begin)

        async def upload(part: str, number: int) -> None:
            moment = now()
            came = (new_reading(moment, moment, {"readings": {"number": number}}),)
            what = Ingestion(part, "sensor", "a", "Readings", "tabular", str(number), moment, moment, came)
            await (left, right)[number % 2].write(lambda sql: ingested(sql, what))

        async def uploads(part: str) -> None:
            for number in range(UPLOADS):
                await upload(part, number)

        async with trio.open_nursery() as nursery:
            for store, events in ((left, first), (right, two)):
                await nursery.start(evaluate, store, events, str)
                await nursery.start(Outbox(store, events, now, {"webhook": receiver}).run)
            for part in parts:
                nursery.start_soon(uploads, part)
            with trio.fail_after(60), first.listening(deliveries.TOPIC) as news:
                await finished.wait()
                while await left.read(lambda sql: sql.rows("SELECT id FROM deliveries WHERE state = 'waiting'")):
                    await news.all()
            nursery.cancel_scope.cancel()
        assert await left.read(queue.waiting) == 0
    assert order == {part: list(range(UPLOADS)) for part in parts}
    ids = [name for name, _ in receiver.got]
    assert len(set(ids)) == len(ids) == PARTS * UPLOADS
