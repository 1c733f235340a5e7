"""What the machine page shows of the reports of an agent, also if they are hostile or old."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest
import trio

from agent.control.report import (
    AgentReport,
    ExitReport,
    InterfaceReport,
    NetworkReport,
    ProblemReport,
    ProgramReport,
    SystemReport,
    UnusedNetworkReport,
    WaitReport,
    encode,
)
from agent.update.record import QuarantinedRelease, UpdateOutcome, UpdateResult
from cloud.domain.organizations.first import create_owner
from cloud.domain.organizations.keys import Grant, create_key
from cloud.domain.releases import reports
from cloud.server.memory import MemoryCloud
from cloud.web.views.agent_view import SHOWN_OUTCOMES, agent_view
from rpc.access.credential_types import PART_SECRET
from rpc.api.cloud_v1 import AGENTS
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.runtime.parts.web.client import Browser

LIMIT = 30.0


@pytest.fixture(autouse=True)
def _real_time(clock: Clock) -> None:
    """Set the clock of the cloud to the time that pages are rendered with."""
    clock.now = datetime.now(UTC)


NOW = 1_700_000_000.0  # by a clock of the machine that is years behind
SERVER = ProgramReport(
    version="1.3.0", running=True, since=NOW - 7200, serving=True, previous="1.2.0", target="1.4.0", step="wait",
    step_since=NOW - 600, waiting_for=(WaitReport("the door is open", NOW - 600),),
    restart=WaitReport("its environment variables have changed", NOW - 60), hold_until=NOW + 86400, error="no space",
    quarantine=(QuarantinedRelease("b" * 64, "1.3.9", "it did not serve", NOW - 5000),),
    history=(UpdateOutcome("1.3.9", "1.3.0", "a" * 64, UpdateResult.ROLLED_BACK, "it hangs", NOW - 800, NOW - 700),),
    exits=(ExitReport(NOW - 7300, "killed by SIGKILL", 3600.0),),
)  # fmt: skip
OWN = ProgramReport(version="1.3.1", running=True, since=NOW - 60, serving=True, target="1.3.2", step="download",
                    pausing=True, deadline=NOW + 600)  # fmt: skip
PROBLEM = ProblemReport("agent.advanced_settings.debug", "must be true or false", "write true")
FULL = AgentReport(NOW, OWN, SERVER, problems=(PROBLEM,), system=SystemReport(("etc/systemd/journald.conf.d/x.conf",)))


async def send(cloud: MemoryCloud, part: str, report: bytes) -> None:
    await cloud.client(part, PART_SECRET).call(AGENTS, "", "report_agent", part_id=part, report_json=report)


async def page_of(cloud: MemoryCloud, part: str, person: Browser | None = None) -> str:
    """Return the section of the machine page about software."""
    reply = await (person or await signed_in(cloud)).get(f"/machines/{part}")
    assert reply.status == 200
    match = re.search(
        r'<section id="software".*?(?=<section aria-labelledby="(?:lines|actions)-title")', reply.text, re.DOTALL
    )
    assert match is not None
    return match[0]


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


async def test_a_machine_without_an_agent(cloud: MemoryCloud, part: str) -> None:
    assert "No machine-agent has reported yet" in await page_of(cloud, part)


async def test_everything_of_a_report_is_shown(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, encode(FULL))
    html = await page_of(cloud, part)
    text = text_of(html)
    for words in (
        "machine-agent 1.3.1",
        "machine-server 1.3.0 serves",
        "Target 1.4.0",
        "ready, waiting for maintenance since 10 min",
        "The update waits: the door is open since 10 min",
        "A restart waits for maintenance: its environment variables have changed since 1 min",
        "Updates are held until",
        "Next attempt",
        "Version before 1.2.0",
        "Last update 1.3.9 to 1.3.0 rolled back it hangs",
        "Last error of the update: no space",
        "1.3.9 is in quarantine: it did not serve 1 h ago",
        "killed by SIGKILL, after 1 h 2 h ago",
        "agent.advanced_settings.debug must be true or false Write true",
        "Updates that have ended: 1",
        "Files for the system configuration: 1 etc/systemd/journald.conf.d/x.conf",
        "reported 0 s ago",
        "Started 2 h ago",
    ):
        assert words in text, words
    assert f'href="/machines/{part}/config#agent.advanced_settings.debug"' in html


async def test_a_trial_is_not_shown_as_an_error_and_has_no_button_to_update(cloud: MemoryCloud, part: str) -> None:
    trial = ProgramReport(version="1.4.0", running=True, serving=True, target="1.4.0", step="trial", error="too early")
    await send(cloud, part, encode(AgentReport(NOW, OWN, trial)))
    html = await page_of(cloud, part)
    assert "The version is not confirmed yet: too early" in text_of(html)
    assert "Last error" not in html
    assert "Update machine-agent now" in html
    assert "Update machine-server now" not in html


async def test_the_last_report_of_an_offline_machine_is_shown_with_its_age(
    cloud: MemoryCloud, part: str, clock: Clock
) -> None:
    await send(cloud, part, encode(FULL))
    clock.now += timedelta(days=3)  # the machine has not called for so long
    text = text_of(await page_of(cloud, part))
    assert "last report" in text
    assert "machine-server 1.3.0" in text


async def test_a_hostile_report_cannot_break_the_page(cloud: MemoryCloud, part: str) -> None:
    bad = "<script>alert(1)</script>\"'\x1b[2J\u202e"
    program = {
        "version": bad, "running": True, "since": 1e308, "previous": bad, "target": bad, "step": bad,
        "step_since": -1e308, "deadline": 1e308, "pausing": True, "error": bad, "hold_until": 1e308,
        "waiting_for": [{"reason": bad, "since": 1e300}], "restart": {"reason": bad, "since": -5},
        "quarantine": [{"sha256": bad, "version": bad, "reason": bad, "time": 1e30}],
        "history": [{"version_to": bad, "sha256": bad, "result": bad, "ended": 1.0, "reason": bad}],
        "exits": [{"time": 1e300, "reason": bad, "ran": 1e308}],
    }  # fmt: skip
    problem = {"path": "javascript:alert(1)", "message": bad, "remedy": bad}
    other = {"path": 'agent."><script>alert(1)</script>', "message": "m"}
    report = {
        "format": 1,
        "time": -1e308,
        "agent": program,
        "server": program,
        "problems": [problem, other],
        "system": {"files": [bad]},
    }
    await send(cloud, part, json.dumps(report).encode())
    html = await page_of(cloud, part)
    assert "&lt;script&gt;" in html
    assert "<script" not in html
    assert "\x1b" not in html
    assert "\u202e" not in html
    assert 'href="javascript:' not in html


async def test_another_organization_sees_nothing(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    await send(cloud, part, encode(FULL))
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", clock()))
    person = await signed_in(cloud, (stranger.id, stranger.key))
    reply = await person.get(f"/machines/{part}")
    assert (reply.status, "1.3.0" in reply.text) == (404, False)


async def test_a_new_report_is_shown_on_an_open_page(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    with trio.fail_after(LIMIT):
        async with person.live(f"/live/machines/{part}", {"origin": f"http://{HOST}"}) as page:

            async def until(words: str) -> None:
                while words not in text_of((await page.next()).get("patch", {}).get("software", "")):
                    pass

            await until("No machine-agent has reported yet")
            await send(cloud, part, encode(FULL))
            await until("machine-server 1.3.0 serves")


def test_at_most_some_outcomes_are_shown(clock: Clock) -> None:
    now = clock()
    outcome = reports.RecordedOutcome("machine-server", "2", "1", "", "updated", "", now, now)
    view: Any = agent_view(None, [outcome] * (SHOWN_OUTCOMES + 5), now)
    assert (len(view.outcomes), view.more, view.received) == (SHOWN_OUTCOMES, 5, None)


def test_a_stored_report_that_cannot_be_read_any_more_is_not_shown(clock: Clock) -> None:
    assert agent_view(reports.Received(clock(), '{"format": 0}'), [], clock()).received is None


async def test_the_buttons_request_and_the_page_shows_what_has_not_arrived(
    cloud: MemoryCloud, part: str, clock: Clock
) -> None:
    owner = cloud.first.organization
    grants = [Grant("operator", "organization", owner)]
    key = await cloud.cloud.store.write(lambda sql: create_key(sql, owner, "op", grants, clock()))
    person = await signed_in(cloud, key)
    refused = await post(person, f"/machines/{part}/agent/check")
    assert (refused.status, "no machine-agent has reported" in refused.text.lower()) == (409, True)
    await send(cloud, part, encode(FULL))
    assert 'value="machine-server"' in await page_of(cloud, part, person)
    reply = await post(person, f"/machines/{part}/agent/update", program="machine-server")
    assert (reply.status, reply.headers["location"]) == (303, f"/machines/{part}?requested=update#requested")
    assert "Update requested" in (await person.get(f"/machines/{part}?requested=update")).text
    reply = await post(person, f"/machines/{part}/agent/check")
    assert (reply.status, reply.headers["location"]) == (303, f"/machines/{part}?requested=check#requested")
    assert "Check requested" in (await person.get(f"/machines/{part}?requested=check")).text
    assert 'id="requested"' not in (await person.get(f"/machines/{part}?requested=%3Cb%3E")).text
    text = text_of(await page_of(cloud, part, person))
    assert "Update of machine-server requested 0 s ago, not received by the machine yet" in text
    assert "Check requested 0 s ago" in text
    assert (await post(person, f"/machines/{part}/agent/update", program="<b>")).status == 400
    stranger = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Stranger", clock()))
    other = await signed_in(cloud, (stranger.id, stranger.key))
    assert (await post(other, f"/machines/{part}/agent/update", program="machine-server")).status == 404


async def test_a_request_disappears_from_an_open_page_when_it_has_arrived(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, encode(FULL))
    person, machine = await signed_in(cloud), cloud.client(part, PART_SECRET)
    await post(person, f"/machines/{part}/agent/check")
    (request,) = await machine.call(AGENTS, "", "wait_for_agent_requests", part_id=part, arrived=[])
    with trio.fail_after(LIMIT):
        async with (
            person.live(f"/live/machines/{part}", {"origin": f"http://{HOST}"}) as page,
            trio.open_nursery() as n,
        ):

            async def next_text() -> str:
                while not (html := (await page.next()).get("patch", {}).get("software", "")):
                    pass
                return text_of(html)

            assert "not received" in await next_text()
            arrived = partial(
                machine.call, AGENTS, "", "wait_for_agent_requests", part_id=part, arrived=[request["id"]]
            )
            n.start_soon(arrived)
            assert "not received" not in await next_text()
            n.cancel_scope.cancel()


NETWORK = NetworkReport(
    mode="online",
    next_step="Nothing: the device is online.",
    interfaces=(
        InterfaceReport(
            name="wlan0", manager="machine-agent", network="home", addresses=("192.168.1.5/24",),
            state="It has joined home.",
            unused=(UnusedNetworkReport("<b>garage</b>", "It was not heard.", "move closer"),),
        ),
    ),
)  # fmt: skip


async def test_the_network_of_a_machine_is_shown(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, encode(msgspec.structs.replace(FULL, network=NETWORK)))
    html = await page_of(cloud, part)
    text = text_of(html)
    for words in ("Network online", "wlan0", "192.168.1.5/24", "It has joined home.", "It was not heard. Move closer"):
        assert words in text, text
    assert "<b>garage" not in html


async def test_a_machine_without_a_report_of_its_network(cloud: MemoryCloud, part: str) -> None:
    await send(cloud, part, encode(FULL))
    assert 'id="network-title"' not in await page_of(cloud, part)
