"""The button STOP ALL of the cloud's pages: who may press it, what it says, and that each use is recorded."""

from __future__ import annotations

from typing import Any

import trio
from grpclib.const import Cardinality, Handler
from grpclib.exceptions import GRPCError

from cloud.domain.organizations.first import create_owner
from cloud.domain.permissions import audit
from cloud.services.reverse import stopping
from cloud.services.reverse.stopping import LIMIT, METHOD
from rpc.api.own import Raw
from rpc.call import ServerCore
from rpc.status import STATUS_OF_KIND
from schema.errors import ErrorKind
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.replicas import operator_key
from tests.unit.cloud.services.reverse.site import Machine, Site
from tests.unit.runtime.parts.web.client import JSON


def stoppable(machine: Machine, reason: str = "", *, hangs: bool = False) -> list[int]:
    """Let a machine answer StopAll, with an error for a `reason`. Return the list of the calls that it gets."""
    calls: list[int] = []

    async def stop(stream: Any) -> None:
        calls.append(len(await stream.recv_message() or b""))
        if hangs:
            await trio.sleep_forever()
        if reason:
            raise GRPCError(STATUS_OF_KIND[ErrorKind.INTERNAL], reason)
        await stream.send_message(Raw())

    machine.core = ServerCore({METHOD: Handler(stop, Cardinality.UNARY_UNARY, Raw, Raw)})  # type: ignore[arg-type]
    return calls


async def recorded(opened: Site) -> list[tuple[str, Any]]:
    query = audit.AuditQuery(action="call_machine")
    organization = opened.cloud.first.organization
    entries = await opened.cloud.cloud.store.read(lambda sql: audit.entries(sql, organization, query))
    return [(entry.author.name, entry.detail["method"]) for entry in entries]


async def test_the_machine_stops_and_each_stop_is_recorded(opened: Site, part: str) -> None:
    calls = stoppable(await opened.machine(part))
    operator = await opened.cloud.cloud.store.write(lambda sql: operator_key(sql, opened.cloud))
    person = await signed_in(opened.cloud, operator)
    for _ in range(2):
        reply = await post(person, f"/machines/{part}/stop-all")
        assert reply.status == 200
        assert "has stopped" in reply.text
    assert calls == [0, 0]
    assert await recorded(opened) == [(operator[0], METHOD)] * 2


async def test_failed_actuators_are_shown(opened: Site, part: str) -> None:
    stoppable(await opened.machine(part), "1 actuator could not be stopped: rdk:component:motor/<left>: no power")
    person = await signed_in(opened.cloud)
    reply = await post(person, f"/machines/{part}/stop-all")
    assert reply.status == 500
    assert "was not stopped" in reply.text
    assert "motor/&lt;left&gt;: no power" in reply.text
    headers = {**JSON, "origin": f"http://{HOST}"}
    answer = await person.send("POST", f"/machines/{part}/stop-all", headers)
    assert answer.json()["error"].startswith("1 actuator could not be stopped")
    assert len(await recorded(opened)) == 2


async def test_a_machine_that_cannot_be_reached(opened: Site, part: str) -> None:
    reply = await post(await signed_in(opened.cloud), f"/machines/{part}/stop-all")
    assert reply.status == 503
    assert "is offline" in reply.text
    assert await recorded(opened) == []


async def test_a_machine_that_does_not_answer(opened: Site, part: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(stopping, "LIMIT", 0.1)
    stoppable(await opened.machine(part), hangs=True)
    reply = await post(await signed_in(opened.cloud), f"/machines/{part}/stop-all")
    assert reply.status == 504
    assert "may be moving: stop it at the machine" in reply.text
    assert len(await recorded(opened)) == 1
    assert LIMIT > 10  # the machine gives its actuators 10 s


async def test_callers_without_a_role_cannot_stop_the_machine(opened: Site, part: str) -> None:
    calls = stoppable(await opened.machine(part))
    other = await opened.cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", opened.cloud.cloud.clock()))
    stranger = await signed_in(opened.cloud, (other.id, other.key))
    assert (await post(stranger, f"/machines/{part}/stop-all")).status == 404
    person = await signed_in(opened.cloud)
    foreign = await person.send("POST", f"/machines/{part}/stop-all", {"origin": "http://evil.example"})
    assert foreign.status == 403
    assert calls == []


async def test_every_page_of_a_machine_has_the_button(opened: Site, part: str, machine: str) -> None:
    person = await signed_in(opened.cloud)
    for path in ("", "/control", "/statistics", "/config", "/history", "/logs", "/triggers"):
        page = (await person.get(f"/machines/{part}{path}")).text
        assert f'action="/machines/{part}/stop-all"' in page, path
        assert 'class="has-stop"' in page
    assert f'action="/machines/{part}/stop-all"' in (await person.get(f"/data?part={part}")).text
    calls = stoppable(await opened.machine(part))
    assert (await post(person, f"/machines/{machine}/stop-all")).status == 200  # by the id of the machine, too
    assert calls == [0]
    for path in ("/", "/keys", "/machines/nothing"):
        assert "stop-all" not in (await person.get(path)).text, path
