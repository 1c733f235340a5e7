"""Situations in the store: the rule of a situation in a cloud, with a virtual clock."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from cloud.domain.alerts import changing, deadlines, states
from cloud.domain.alerts.life import Acknowledged, Event, Silenced
from cloud.domain.alerts.observing import Observer
from cloud.domain.alerts.rule import decoded, encoded
from cloud.domain.alerts.rules import rule
from cloud.domain.alerts.subjects import subject_of
from cloud.domain.alerts.wording import STATES
from cloud.domain.data.readings import new_reading
from cloud.domain.triggering import deliveries
from cloud.domain.triggering.evaluation import evaluate_some
from cloud.domain.triggering.ingestion import Ingestion, ingested
from cloud.server.memory import MemoryCloud
from cloud.store.sql import Sql
from cloud.values.times import moment_of
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.domain.alerts.situations import RULE, Situation, steps_of

REPLICAS = 2


class Kitchen:
    """A cloud with a rule and two machines."""

    def __init__(self, cloud: MemoryCloud, clock: Clock) -> None:
        self.cloud = cloud
        self.clock = clock
        self.epoch = clock.now
        self.owner = cloud.first.organization
        self.rule = ""
        self.machines: list[str] = []
        self.parts: list[str] = []
        self.up: datetime | None = clock.now

    async def prepare(self, situation: Situation) -> None:
        self.epoch = self.clock.now = datetime.fromisoformat(situation.start)
        self.up = self.epoch - timedelta(days=9)
        for name in ("freezer", "other"):
            machine = await self.cloud.app(
                "new_robot", name=f"{name} in {situation.name}", location=self.cloud.first.location
            )
            await self.cloud.app("update_robot_metadata", id=machine, data={"tags": ["cold"]})
            self.machines.append(machine)
            self.parts.append((await self.cloud.app("get_robot_parts", robot_id=machine))[0]["id"])
        new = decoded({**RULE, **situation.rule, "name": situation.name})
        self.rule = await self.write(lambda sql: changing.change(sql, self.owner, "", new, self.epoch))

    async def write(self, work: Any) -> Any:
        return await self.cloud.cloud.store.write(work)

    def at(self, minute: float) -> datetime:
        return self.epoch + timedelta(minutes=minute)

    def minute_of(self, moment: datetime) -> int:
        return round((moment - self.epoch) / timedelta(minutes=1))

    async def run(self) -> None:
        """Do what waits, as each of the replicas."""
        page, observe = self.cloud.cloud.links.page, Observer(self.clock)
        for _ in range(REPLICAS):
            while await self.write(lambda sql: evaluate_some(sql, page, observe=observe)):
                pass
            while self.up is not None and await self.write(
                lambda sql: deadlines.come_due(sql, self.clock(), page, self.up)
            ):
                pass

    async def wait(self, until: datetime) -> None:
        while self.up is not None:
            moment = await self.cloud.cloud.store.read(deadlines.next_deadline)
            if moment is None or moment > until:
                return
            self.clock.now = max(self.clock.now, moment)
            await self.run()

    async def upload(self, part: str, pairs: list[tuple[float, float]]) -> None:
        now = self.clock()
        readings = tuple(new_reading(self.at(minute), now, {"readings": {"celsius": value}}) for minute, value in pairs)
        what = Ingestion(part, "sensor", "probe", "Readings", "tabular", "f", now, now, readings, alerts=True)
        await self.write(lambda sql: ingested(sql, what, now))

    async def happen(self, event: Event) -> None:
        def work(sql: Sql) -> None:
            for row in sql.rows("SELECT id FROM alerts WHERE rule_id = ?", self.rule):
                alert = states.alert(sql, self.owner, row["id"])
                subject, _ = subject_of(sql, self.owner, alert.part, alert.source)
                states.apply(sql, rule(sql, self.owner, self.rule), subject, [event], self.clock())

        await self.write(work)

    async def edit(self, what: str) -> None:
        def work(sql: Sql) -> None:
            if what == "deleted":
                changing.remove(sql, self.owner, self.rule, self.clock())
                return
            data = encoded(rule(sql, self.owner, self.rule).rule)
            if what == "threshold":
                data["condition"]["threshold"] = 20.0
            data |= {"name": {"name": f"{data['name']}, renamed"}, "disabled": {"enabled": False}}.get(what, {})
            changing.change(sql, self.owner, self.rule, decoded(data), self.clock())

        await self.write(work)

    async def play(self, situation: Situation) -> None:
        for minute, (word, *rest) in steps_of(situation):
            await self.wait(self.at(minute))
            self.clock.now = self.at(minute)
            await self.step(minute, word, rest)
            await self.run()

    async def step(self, minute: float, word: str, rest: list[str]) -> None:
        match word:
            case "read" | "other":
                part = self.parts[word == "other"]
                await self.upload(part, [(float(rest[2]) if rest[1:] else minute, float(rest[0]))])
            case "upload":
                pairs = [pair.partition(":") for pair in rest]
                await self.upload(self.parts[0], [(float(when), float(value)) for when, _, value in pairs])
            case "ack":
                await self.happen(Acknowledged("ann"))
            case "silence":
                await self.happen(Silenced(self.clock() + timedelta(minutes=float(rest[0])), "ann"))
            case "unsilence":
                await self.happen(Silenced(None, "ann"))
            case "tick":
                await self.write(lambda sql: states.expire(sql, self.clock()))
            case "clock":
                self.clock.now += timedelta(minutes=float(rest[0]))
            case "down":
                self.up = None
            case "up":
                self.up = self.clock.now
            case "edit":
                await self.edit(rest[0])
            case "move":
                await self.cloud.app("update_robot_metadata", id=self.machines[0], data={})
            case "vanish":
                await self.cloud.app("delete_robot", id=self.machines[0])

    async def events(self) -> str:
        statement = "SELECT happened, kind FROM alert_events WHERE rule_id = ? ORDER BY number"
        rows = await self.cloud.cloud.store.read(lambda sql: sql.rows(statement, self.rule))
        return " | ".join(f"{self.minute_of(moment_of(row['happened']))} {row['kind']}" for row in rows)

    async def messages(self) -> str:
        log = await self.cloud.cloud.store.read(
            lambda sql: deliveries.deliveries(sql, self.owner, trigger=self.rule, limit=500)
        )
        words = []
        for delivery in reversed(log):
            shown = " ".join(each["state"] for each in json.loads(delivery.body)["alerts"])
            words.append(f"{self.minute_of(delivery.created)} {shown}")
        assert set(STATES.values()) >= {word for text in words for word in text.split()[1:]} - {"still"}
        return " | ".join(words)
