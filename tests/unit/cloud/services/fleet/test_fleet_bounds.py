"""Bounds of jobs on many machines: values, sizes, and jobs that are deleted meanwhile."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from cloud.domain.fleet import jobs
from cloud.domain.fleet.fleet import FleetLocation
from cloud.domain.fleet.listing import SORTS, FleetFilter, Listing
from cloud.domain.fleet.positions import Position, position_text
from cloud.domain.machines.machines import create_machine
from cloud.domain.organizations.tenants import create_location
from cloud.server.memory import MemoryCloud
from cloud.services.fleet.runner import run_machine
from cloud.services.machines.following import Following
from cloud.store.sql import Sql
from cloud.values.author import KEY, THE_PROGRAM, Author
from cloud.values.limits import FLEET_VIEWS
from schema import ErrorKind, MachineError
from tests.unit.cloud.conftest import BOTH
from tests.unit.cloud.services.fleet.fleet_help import ARM, SPEED, call, configuration, fill, key_with, main_part


@pytest.mark.parametrize("value", ["NaN", '{"low": -Infinity}', "1e999", '"\\ud800"', "[" * 40 + "]" * 40])
async def test_values_that_json_cannot_represent_are_refused(cloud: MemoryCloud, value: str) -> None:
    ids = await fill(cloud, 1, ARM)
    for name in ("preview_fleet_job", "start_fleet_job"):
        with pytest.raises(MachineError) as caught:
            await call(cloud, name, machine_ids=ids, work={**SPEED, "value_json": value})
        assert caught.value.kind is ErrorKind.INVALID
    assert (await configuration(cloud, ids[0]))["components"][0]["attributes"] == {"speed": 1}


@pytest.mark.parametrize(
    "work",
    [
        {**SPEED, "value_json": f'"{"x" * 70_000}"'},
        {"kind": "add_tags", "tags": [f"tag {number}" for number in range(51)]},
    ],
)
async def test_a_preview_has_the_limits_of_a_job(cloud: MemoryCloud, work: dict[str, Any]) -> None:
    ids = await fill(cloud, 1, ARM)
    with pytest.raises(MachineError) as caught:
        await call(cloud, "preview_fleet_job", machine_ids=ids, work=work)
    assert caught.value.kind in (ErrorKind.INVALID, ErrorKind.EXHAUSTED)


async def test_a_job_that_is_deleted_meanwhile_is_left(cloud: MemoryCloud) -> None:
    ids = await fill(cloud, 2, ARM)
    subject = await call(cloud, "start_fleet_job", machine_ids=ids, work=SPEED)
    claimed = await cloud.cloud.store.write(lambda sql: jobs.claim(sql, cloud.cloud.clock()))
    assert claimed is not None

    def delete(sql: Sql) -> None:
        sql.run("DELETE FROM fleet_job_machines WHERE job_id = ?", subject)
        sql.run("DELETE FROM fleet_jobs WHERE id = ?", subject)

    await cloud.cloud.store.write(delete)
    assert not await run_machine(cloud.cloud, claimed)


async def test_views_of_a_key_count_for_it_only_and_are_deleted_with_it(cloud: MemoryCloud) -> None:
    (machine,) = await fill(cloud, 1)
    limited = await key_with(cloud, ("operator", "robot", machine))
    for number in range(FLEET_VIEWS.value):
        await call(cloud, "set_fleet_view", limited, name=f"view {number}", query="state=online")
    with pytest.raises(MachineError) as caught:
        await call(cloud, "set_fleet_view", limited, name="another", query="state=online")
    assert caught.value.kind is ErrorKind.EXHAUSTED
    await call(cloud, "set_fleet_view", name="broken", query="state=degraded")
    await cloud.app("delete_key", id=limited)
    rows = await cloud.cloud.store.read(lambda sql: sql.rows("SELECT name FROM fleet_views"))
    assert [row["name"] for row in rows] == ["broken"]


@pytest.mark.parametrize(
    ("number", "problems"), [("NaN", 0), ("1e999", 1_000_000), ("1e300", 1_000_000), ("-1e300", 0)]
)
async def test_reports_with_odd_numbers_of_problems(cloud: MemoryCloud, number: str, problems: int) -> None:
    (machine,) = await fill(cloud, 1)
    part = await main_part(cloud, machine)
    await Following(cloud.cloud, THE_PROGRAM, part).keep(json.loads(f'{{"problems": {number}}}'), None)
    reply = await call(cloud, "list_fleet_machines", sort="problems")
    assert [each["problems"] for each in reply["machines"]] == [problems]


@pytest.mark.parametrize("position", ['["online","","a","\\ud800"]', '["\\ud800",0,"a","b"]', "[" * 1000, "3"])
async def test_page_tokens_that_no_page_has(cloud: MemoryCloud, position: str) -> None:
    await fill(cloud, 1)
    token = base64.urlsafe_b64encode(position.encode()).decode()
    for sort in SORTS:
        with pytest.raises(MachineError) as caught:
            await call(cloud, "list_fleet_machines", sort=sort, page_token=token)
        assert caught.value.kind is ErrorKind.INVALID


@BOTH
@pytest.mark.parametrize(("sort", "value"), [("version", 3), ("problems", "x"), ("name", 3)])
async def test_page_tokens_of_another_order(cloud: MemoryCloud, sort: str, value: int | str) -> None:
    await fill(cloud, 1)
    token = position_text(Position("", value, "a", "b"))
    assert (await call(cloud, "list_fleet_machines", sort=sort, page_token=token))["machines"] == []


async def test_words_are_looked_for_in_locations_once_for_a_page(cloud: MemoryCloud) -> None:
    places = []

    def work(sql: Sql) -> int:
        for number in range(20):
            places.append(create_location(sql, cloud.first.organization, f"l{number}", "", cloud.cloud.clock()))
            create_machine(sql, places[-1], "m", cloud.cloud.clock())
        listing, looks = Listing(sql, Author(KEY, cloud.first.id)), 0

        class Counted(dict[str, FleetLocation]):
            def values(self) -> Any:
                nonlocal looks
                looks += 1
                return super().values()

        listing.places = Counted(listing.places)
        assert listing.page(FleetFilter(text="another"), "location") == []
        return looks

    assert await cloud.cloud.store.write(work) == 1
