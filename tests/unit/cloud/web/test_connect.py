"""The tab Connect: programs that are right whatever a machine is called, and a key for one machine."""

from __future__ import annotations

import ast
import json
import re
import shlex

import pytest

from cloud.server.memory import MemoryCloud
from cloud.web.views.connect import ConnectTarget, first_sensor, snippets
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.replicas import operator_key

NAMES = [
    "rover",
    "it's",
    'say "hi"',
    "$(touch /tmp/x)",
    "back\\slash",
    "a;b|c",
    "größe",
    "</pre><script>alert(1)</script>",
]
KEY = ("6f2d0c3a-0000-4000-8000-000000000000", "k'$(id)\"")


def texts(target: ConnectTarget) -> dict[str, str]:
    return {snippet.id: snippet.text for snippet in snippets(target, *KEY)}


def strings(program: str) -> set[str]:
    return {
        node.value
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize("name", NAMES)
def test_names_are_quoted_for_each_language(name: str) -> None:
    programs = texts(
        ConnectTarget(name, "part-1", "http://cloud.example:8090", pages="http://10.0.0.5:8080", sensor=name)
    )
    assert {name, *KEY, "10.0.0.5:8080"} <= strings(programs["python"])
    assert "insecure = True" in programs["python"]
    for text in ("command", "curl"):
        words = shlex.split(programs[text].replace("$(curl", "(curl"), comments=True)
        assert not any(word.startswith("$(touch") and word != name for word in words)
    assert name in shlex.split(programs["command"], comments=True)
    payload = re.search(r"payload: (.*),", programs["typescript"])
    assert payload
    assert json.loads(payload[1]) == KEY[1]
    assert json.dumps(name, ensure_ascii=False) in programs["typescript"]


def test_the_address_is_the_host_name_if_the_cloud_has_a_domain() -> None:
    target = ConnectTarget(
        "rover", "p", "https://cloud.example", host="rover-p.machines.example", pages="http://10.0.0.5:8080"
    )
    programs = texts(target)
    assert "rover-p.machines.example" in strings(programs["python"])
    assert "insecure" not in programs["python"]
    assert "disable_webrtc" not in programs["python"]
    assert 'host: "rover-p.machines.example"' in programs["typescript"]
    plain = texts(ConnectTarget("rover", "p", "http://cloud.example:8090", host="rover-p.machines.example"))
    assert "rover-p.machines.example:8090" in strings(plain["python"])
    assert "insecure = True" in plain["python"]


def test_a_machine_that_has_not_reported_its_address() -> None:
    by_id = {snippet.id: snippet for snippet in snippets(ConnectTarget("rover", "p", "https://cloud.example"))}
    assert by_id["python"].note == "The machine has not reported its address yet."
    assert "/viam/api/v1/resources/list" in by_id["curl"].text
    assert (
        first_sensor(["rdk:component:motor/m", "rdk:component:sensor/far:air", "rdk:component:sensor/b"]) == "far:air"
    )
    assert first_sensor([]) == ""


async def test_an_owner_gets_a_key_for_this_machine_only(cloud: MemoryCloud, part: str, machine: str) -> None:
    person = await signed_in(cloud)
    page = await person.get(f"/machines/{part}/connect")
    assert "Make a key for this machine" in page.text
    assert "YOUR KEY ID" in page.text
    reply = await post(person, f"/machines/{part}/connect")
    assert reply.status == 200
    assert "YOUR KEY" not in reply.text
    secret = re.search(r'aria-label="Key id">([0-9a-f-]{36})</pre>.*?aria-label="Key">([^<]+)</pre>', reply.text, re.S)
    assert secret
    assert reply.text.count(secret[2]) >= 4  # on its own, and in three programs
    assert secret[2] not in (await person.get(f"/machines/{part}/connect")).text
    other = await signed_in(cloud, (secret[1], secret[2]))
    assert (await other.get(f"/machines/{part}")).status == 200
    assert (await post(other, f"/machines/{part}/connect")).status == 403
    assert (await other.get("/keys")).status == 403


async def test_an_operator_sees_the_programs_and_makes_no_key(cloud: MemoryCloud, part: str) -> None:
    key = await cloud.cloud.store.write(lambda sql: operator_key(sql, cloud))
    person = await signed_in(cloud, key)
    page = await person.get(f"/machines/{part}/connect")
    assert (page.status, "Make a key" in page.text) == (200, False)
    refused = await post(person, f"/machines/{part}/connect")
    assert refused.status == 403
