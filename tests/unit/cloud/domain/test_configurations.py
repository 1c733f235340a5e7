"""Configurations: saved, read, refused if they changed in the meantime, and kept forever."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cloud.domain.machines.hosts import MachineHosts
from cloud.domain.machines.machines import note_seen
from cloud.server.memory import ROBOT, MemoryCloud
from cloud.values.limits import HISTORY
from schema.errors import ErrorKind, MachineError


def document(speed: int) -> dict[str, Any]:
    motor = {"name": "wheel", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": speed}}
    return {"components": [motor]}


async def test_a_saved_document_is_read_back(cloud: MemoryCloud, part: str) -> None:
    saved = await cloud.app("update_robot_part", id=part, name="rover-main", robot_config=document(10))
    assert saved["robot_config"] == document(10)
    answer = await cloud.app("get_robot_part", id=part)
    assert answer["part"]["last_updated"] == saved["last_updated"]
    assert json.loads(answer["config_json"]) == document(10)


async def test_text_keeps_details_that_a_struct_cannot(cloud: MemoryCloud, part: str) -> None:
    text = '{"components": [], "big": 9007199254740993, "empty": {}}'
    await cloud.app("update_robot_part", id=part, name="", robot_config_json=text)
    answer = await cloud.app("get_robot_part", id=part)
    assert answer["config_json"] == '{"components":[],"big":9007199254740993,"empty":{}}'
    await cloud.app("update_robot_part", id=part, name="", robot_config_json="{}")
    assert (await cloud.app("get_robot_part", id=part))["config_json"] == "{}"


@pytest.mark.parametrize("text", ["{", "[]", '"text"', "null"])
async def test_a_document_that_is_not_an_object_is_refused(cloud: MemoryCloud, part: str, text: str) -> None:
    with pytest.raises(MachineError) as caught:
        await cloud.app("update_robot_part", id=part, name="", robot_config_json=text)
    assert caught.value.kind is ErrorKind.INVALID


async def test_the_slower_of_two_authors_gets_a_conflict(cloud: MemoryCloud, part: str) -> None:
    last_updated = (await cloud.app("get_robot_part", id=part))["part"]["last_updated"]
    fast = await cloud.app(
        "update_robot_part", id=part, name="", robot_config=document(1), last_known_update=last_updated
    )
    with pytest.raises(MachineError, match="changed in the meantime") as caught:
        await cloud.app("update_robot_part", id=part, name="", robot_config=document(2), last_known_update=last_updated)
    assert caught.value.kind is ErrorKind.PRECONDITION
    assert (await cloud.app("get_robot_part", id=part))["part"]["robot_config"] == document(1)
    await cloud.app(
        "update_robot_part", id=part, name="", robot_config=document(2), last_known_update=fast["last_updated"]
    )


async def test_history_has_previous_documents_and_authors(cloud: MemoryCloud, part: str) -> None:
    for speed in (1, 2, 2, 3):
        await cloud.app("update_robot_part", id=part, name="", robot_config=document(speed))
    history = (await cloud.app("get_robot_part_history", id=part))["history"]
    assert [item["old"]["robot_config"] for item in history] == [document(2), document(1), {}]
    assert {element["edited_by"]["value"] for element in history} == {cloud.first.id}
    assert {result["edited_by"]["type"] for result in history} == {"API_KEY"}
    assert history[0]["when"] > history[1]["when"] > history[2]["when"]
    await cloud.app("update_robot_part", id=part, name="", robot_config=history[1]["old"]["robot_config"])
    newest = (await cloud.app("get_robot_part_history", id=part))["history"][0]
    assert newest["old"]["robot_config"] == document(3)
    assert (await cloud.app("get_robot_part", id=part))["part"]["robot_config"] == document(1)


async def test_history_has_numbers_as_they_were_written(cloud: MemoryCloud, part: str) -> None:
    text = '{"components": [], "wide": 5, "exact": 1.0}'
    for saved in (text, "{}"):
        await cloud.app("update_robot_part", id=part, name="", robot_config_json=saved)
    newest = (await cloud.app("get_robot_part_history", id=part))["history"][0]
    assert newest["old"]["robot_config_json"] == text


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
async def test_history_is_paged(cloud: MemoryCloud, part: str, limit: int) -> None:
    for speed in range(7):
        await cloud.app("update_robot_part", id=part, name="", robot_config=document(speed))
    seen, token = [], None
    while token != "":
        page = await cloud.app("get_robot_part_history", id=part, page_limit=limit, page_token=token)
        assert len(page["history"]) <= limit
        seen += [entry["old"]["robot_config"] for entry in page["history"]]
        token = page["next_page_token"]
    assert seen == [*(document(speed) for speed in range(5, -1, -1)), {}]


async def test_a_page_of_the_history_ends_at_the_limit_of_bytes(
    cloud: MemoryCloud, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloud.domain.configurations.revisions.HISTORY", replace(HISTORY, value=1))
    for speed in range(4):
        await cloud.app("update_robot_part", id=part, name="", robot_config=document(speed))
    seen, token = [], None
    while token != "":
        page = await cloud.app("get_robot_part_history", id=part, page_token=token)
        assert len(page["history"]) == 1
        seen += [entry["old"]["robot_config"] for entry in page["history"]]
        token = page["next_page_token"]
    assert seen == [*(document(speed) for speed in range(2, -1, -1)), {}]


async def test_history_of_a_time_range(cloud: MemoryCloud, part: str) -> None:
    times = []
    for speed in range(4):
        saved = await cloud.app("update_robot_part", id=part, name="", robot_config=document(speed))
        times.append(saved["last_updated"])
    page = await cloud.app("get_robot_part_history", id=part, start=times[1], end=times[3])
    assert [entry["when"] for entry in page["history"]] == [times[2], times[1]]
    late = times[3] + timedelta(seconds=1)
    assert (await cloud.app("get_robot_part_history", id=part, start=late))["history"] == []


async def test_properties_are_set_all_or_none(cloud: MemoryCloud, part: str) -> None:
    await cloud.app("update_robot_part", id=part, name="", robot_config=document(1))
    good = {"path": "components.wheel.attributes.max_rpm", "value": 5.0}
    bad = {"path": "components.other.attributes.max_rpm", "value": 6.0}
    results = await cloud.app("set_config_property", robot_part_id=part, property_changes=[good, bad])
    assert [result["success"] for result in results] == [False, False]
    assert "another change" in results[0]["error"]
    assert "wheel" in results[1]["error"]
    assert (await cloud.app("get_robot_part", id=part))["part"]["robot_config"] == document(1)
    results = await cloud.app("set_config_property", robot_part_id=part, property_changes=[good])
    assert [item["success"] for item in results] == [True]
    assert (await cloud.app("get_robot_part", id=part))["part"]["robot_config"] == document(5)


async def test_a_polling_machine_gets_the_configuration(cloud: MemoryCloud, part: str) -> None:
    frame = {
        "parent": "world",
        "translation": {"x": 1, "y": 2, "z": 3},
        "orientation": {"type": "ov_degrees", "value": {"x": 0, "y": 0, "z": 1, "th": 90}},
        "geometry": {"type": "box", "x": 1, "y": 2, "z": 3},
    }
    expected = document(7)
    expected["components"][0] |= {"frame": frame, "depends_on": ["pi"], "log_configuration": {"level": "debug"}}
    expected |= {
        "components": [*expected["components"], {"name": "bad name!", "api": "rdk:component:motor", "model": "fake"}],
        "services": [{"name": "all", "api": "rdk:service:sensors", "model": "builtin"}],
        "modules": [{"name": "m", "executable_path": "/bin/m", "env": {"A": "b"}, "log_level": "debug"}],
        "maintenance": {"sensor_name": "rdk:component:sensor/s", "maintenance_allowed_key": "ok"},
        "log": [{"pattern": "rdk.*", "level": "warn"}],
        "jobs": [{"name": "j", "schedule": "1m", "resource": "wheel", "method": "Stop"}],
        "network": {"bind_address": ":8081", "sessions": {"heartbeat_window": "5s"}},
        "triggers": [],
    }
    await cloud.app("update_robot_part", id=part, name="", robot_config=expected)
    machine = cloud.client(part, "robot-secret")
    got = await machine.call(
        ROBOT, "", "config", id=part, agent_info={"host": "pi", "ips": ["10.0.0.5"], "os": "linux"}
    )
    motor = got["components"][0]
    assert (motor["name"], motor["api"], motor["model"]) == ("wheel", "rdk:component:motor", "rdk:builtin:fake")
    assert motor["attributes"] == {"max_rpm": 7}
    assert motor["frame"]["translation"] == {"x": 1, "y": 2, "z": 3}
    assert motor["frame"]["orientation"]["vector_degrees"]["theta"] == pytest.approx(90)
    assert len(got["components"]) == 1  # the other component is invalid
    assert got["services"][0]["name"] == "all"
    assert (got["modules"][0]["path"], got["modules"][0]["log_level"]) == ("/bin/m", "debug")
    assert got["maintenance"]["sensor_name"] == "rdk:component:sensor/s"
    assert got["revision"] == "2"
    assert got["cloud"]["id"] == part
    assert got["cloud"]["fqdn"] == "10.0.0.5:8081"
    seen = (await cloud.app("get_robot_part", id=part))["part"]
    assert seen["online_state"] == "ONLINE"
    assert seen["fqdn"] == "10.0.0.5:8081"


async def test_with_a_machine_domain_the_name_of_a_part_leads_to_the_cloud(cloud: MemoryCloud, part: str) -> None:
    named = MemoryCloud(replace(cloud.cloud, hosts=MachineHosts("machines.example")), cloud.first)
    got = await named.client(part, "robot-secret").call(ROBOT, "", "config", id=part, agent_info={"ips": ["10.0.0.5"]})
    seen = (await named.app("get_robot_part", id=part))["part"]
    for names in (got["cloud"], seen):
        assert names["fqdn"] == f"rover-main-{part}.machines.example:80"
        assert names["local_fqdn"] == "10.0.0.5:8080"


async def test_a_machine_is_informed_of_an_unusable_document(cloud: MemoryCloud, part: str) -> None:
    await cloud.app("update_robot_part", id=part, name="", robot_config_json='{"components": 5}')
    with pytest.raises(MachineError, match="components") as caught:
        await cloud.client(part, "robot-secret").call(ROBOT, "", "config", id=part)
    assert caught.value.kind is ErrorKind.INVALID


async def test_a_part_is_online_for_a_minute(cloud: MemoryCloud, part: str, clock: Any) -> None:
    async def state() -> tuple[str, int]:
        result = (await cloud.app("get_robot_part", id=part))["part"]
        return result["online_state"], result["seconds_since_online"]

    assert await state() == ("AWAITING_SETUP", 0)
    await cloud.client(part, "robot-secret").call(ROBOT, "", "needs_restart", id=part)
    assert await state() == ("ONLINE", 0)
    clock.now += timedelta(seconds=59)
    assert (await state())[0] == "ONLINE"
    clock.now += timedelta(seconds=31)
    assert await state() == ("OFFLINE", 90)


async def test_a_restart_is_requested_once(cloud: MemoryCloud, part: str) -> None:
    machine = cloud.client(part, "robot-secret")
    assert (await machine.call(ROBOT, "", "needs_restart", id=part))["must_restart"] is False
    await cloud.app("mark_part_for_restart", part_id=part)
    asked = [(await machine.call(ROBOT, "", "needs_restart", id=part))["must_restart"] for _ in range(2)]
    assert asked == [True, False]


async def test_errors_in_a_saved_document_are_in_the_log_of_the_part(cloud: MemoryCloud, part: str) -> None:
    wrong = {**document(1), "triggers": [{"name": "on", "event": {"type": "part_on"}, "notifications": []}]}
    wrong["components"][0]["attributes"] = {"max_rpm": "fast", "password": "correct horse"}
    for _ in range(2):  # the second document is identical, so nothing is saved
        saved = await cloud.app("update_robot_part", id=part, name="", robot_config=wrong)
        assert saved["robot_config"] == wrong
    logged = (await cloud.app("get_robot_part_logs", id=part))["logs"]
    texts = sorted(item["message"] for item in logged)
    assert len(texts) == 2
    assert "components.0.attributes.max_rpm" in texts[0]
    assert "triggers.0.event.type" in texts[1]
    assert {element["level"] for element in logged} == {"warn"}
    assert "correct horse" not in str(logged)


async def test_a_part_shows_the_reported_facts_of_its_machine(cloud: MemoryCloud, part: str) -> None:
    said = {"host": "rover", "os": "linux", "version": "0.9", "ips": ["10.0.0.2"], "rejected": "secret"}
    await cloud.cloud.store.write(lambda sql: note_seen(sql, part, cloud.cloud.clock(), said))
    info = (await cloud.app("get_robot_part", id=part))["part"]["user_supplied_info"]
    assert info == {"host": "rover", "os": "linux", "version": "0.9", "ips": ["10.0.0.2"]}
