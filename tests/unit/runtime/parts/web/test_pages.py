"""The pages as a browser receives them."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import pytest
from starlette.applications import Starlette

from engine.views.status import ConfigProblem, ConfigStatus, DownloadStatus, MachineState
from runtime.parts.web.pages import PUBLIC, build
from support.text.words import dom_id
from tests.unit.runtime.parts.web.client import HTML, JSON, Browser
from tests.unit.runtime.parts.web.machine_in_memory import (
    BASE,
    BOARD,
    CAMERA,
    MOTOR,
    SENSOR,
    MachineInMemory,
    machine_status,
    node,
)

EVIL = '<img src=x onerror="alert(1)">&\'"</script>'


def site(machine: MachineInMemory | None = None) -> tuple[Browser, MachineInMemory, Starlette]:
    machine = machine or MachineInMemory()
    app = build(machine)
    return Browser(app), machine, app


async def test_overview_shows_every_state_problem_and_resource() -> None:
    browser, machine, _ = site()
    page = (await browser.get("/")).text
    for state in ("ready", "configuring", "unhealthy", "removing", "unconfigured"):
        assert f'class="state is-{state}"' in page
    for resource in machine.now.resources:
        assert f'id="{dom_id(resource.name)}"' in page
        assert f'href="/resources/{resource.name}"' in page
    assert "no acknowledge from 0x40" in page
    assert "components.3.attributes.pins.a" in page
    assert "Use a pin from 1 to 40" in page
    assert "STOP ALL" in page
    assert "6 ready" in page


async def test_the_name_in_the_cloud_and_the_health_are_shown() -> None:
    browser, machine, _ = site()
    here = (await browser.get("/")).text
    assert "<title>● rover-7: degraded</title>" in here
    assert "Page in the cloud" not in here
    machine.now = replace(machine.now, machine="bench <1>", page="https://cloud.example/machines/part-1")
    page = (await browser.get("/")).text
    assert "<title>● bench &lt;1&gt;: degraded</title>" in page
    assert "<h1>bench &lt;1&gt;</h1>" in page
    assert "<dt>Host</dt><dd>rover-7</dd>" in page
    assert '<a href="https://cloud.example/machines/part-1" rel="noopener">Page in the cloud</a>' in page
    first, _, _ = page.partition('id="graph"')
    assert "no acknowledge from 0x40" in first
    assert "https://cloud.example/machines/part-1/config#resource=right-encoder" in first
    assert "https://cloud.example/machines/part-1/config#components.3.attributes.pins.a" in first
    machine.now = replace(machine_status(), machine="bench")
    well = (await browser.get("/")).text
    assert "<title>bench</title>" in well
    assert "Not working" not in well


@pytest.mark.parametrize("state", ["ready", "configuring", "unhealthy", "removing", "unconfigured", "something new"])
async def test_every_state_has_a_page_even_an_unknown_one(state: str) -> None:
    browser, _, _ = site(MachineInMemory(machine_status(node(MOTOR, state, "because"))))
    for target in ("/", f"/resources/{MOTOR}"):
        reply = await browser.get(target)
        assert reply.status == 200
        assert f">{state}</span>" in reply.text
        assert "because" in reply.text


@pytest.mark.parametrize("state", list(MachineState))
async def test_every_machine_state_has_a_page(state: MachineState) -> None:
    browser, _, _ = site(MachineInMemory(machine_status(state=state)))
    page = (await browser.get("/")).text
    assert state.value in page
    assert "No resources are configured." in page


async def test_a_rejected_and_a_waiting_configuration_are_named() -> None:
    config = ConfigStatus(
        "/etc/machine.json", "", None, rejected="line 3: a comma is missing", pending="the sensor says no"
    )
    browser, _, _ = site(MachineInMemory(machine_status(config=config)))
    page = (await browser.get("/")).text
    assert "line 3: a comma is missing" in page
    assert "the sensor says no" in page


async def test_packages_on_their_way_are_shown() -> None:
    some = (DownloadStatus("acme:smooth", "1.2.0", 1_500_000, 6_000_000), DownloadStatus("b<c", "", 999, 0))
    browser, _, _ = site(MachineInMemory(machine_status(downloads=some)))
    page = (await browser.get("/")).text
    for text in ('value="1500000" max="6000000"', "25 % of 6 MB", "1.2.0", "b&lt;c", "999 B"):
        assert text in page


async def test_names_reasons_attributes_logs_and_readings_are_escaped() -> None:
    class Hostile(MachineInMemory):
        def attributes(self, name: str) -> dict[str, object]:
            return {EVIL: EVIL}

    name = f"rdk:component:motor/{EVIL.replace('/', '')}"
    problem = ConfigProblem(EVIL, EVIL, EVIL)
    status = machine_status(
        node(
            name, "unhealthy", EVIL, needs=[f"{EVIL.replace('/', '')}-gone"], model=EVIL, revision=EVIL, tasks=(EVIL,)
        ),
        host=EVIL,
        addresses=(EVIL,),
        config=ConfigStatus(EVIL, EVIL, None, (problem,), EVIL, EVIL),
    )
    machine = Hostile(status)
    machine.results["get_position"] = {EVIL: EVIL}
    machine.write(EVIL, fields=EVIL, resource=name)
    browser, _, _ = site(machine)
    pages = [await browser.get(target) for target in ("/", f"/resources/{name}", f"/logs?text={EVIL.replace('&', '')}")]
    pages.append(await browser.post(f"/resources/{name}/call/get_position", {"csrf": await browser.token()}, HTML))
    assert [page.status for page in pages] == [200, 200, 200, 200]
    for page in pages:
        assert "<img src=x" not in page.text
        assert "alert(1)" in unescape(page.text)  # it is shown as text


async def test_errors_are_escaped_and_readable() -> None:
    browser, machine, _ = site()
    machine.failure = RuntimeError(EVIL)
    reply = await browser.post(f"/resources/{MOTOR}/call/get_position", {"csrf": await browser.token()})
    assert reply.status == 500
    assert "<img src=x" not in reply.text
    missing = await browser.get("/resources/<script>")
    assert missing.status == 404
    assert "<script>" not in missing.text.split("</head>")[1]


async def test_no_page_needs_anything_that_its_policy_forbids() -> None:
    browser, machine, _ = site()
    machine.write("hello", resource=MOTOR)
    for target in ("/", f"/resources/{MOTOR}", f"/resources/{CAMERA}", f"/resources/{SENSOR}", "/logs", "/nowhere"):
        reply = await browser.get(target)
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        page = reply.text
        assert " style=" not in page
        assert " onclick=" not in page
        assert "<script>" not in page
        assert "http://" not in page
        assert "https://" not in page
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cache-control"] == "no-store"


async def test_the_assets_that_pages_name_exist_and_may_be_kept() -> None:
    browser, _, _ = site()
    page = (await browser.get("/")).text
    urls = [part.partition('"')[0] for part in page.split('="')[1:] if part.startswith("/static/")]
    assert {url.partition("?")[0] for url in urls} == {
        "/static/app.css",
        "/static/base.css",
        "/static/app.js",
        "/static/call.js",
        "/static/morph.js",
        "/static/page.js",
        "/static/icon-degraded.svg",
    }
    for url in urls:
        reply = await browser.get(url)
        assert reply.status == 200
        assert "immutable" in reply.headers["cache-control"]
    assert (await browser.get("/static/../render.py")).status == 404
    assert (await browser.get("/static/nothing.js")).status == 404


async def test_resource_page_has_forms_links_and_masked_attributes() -> None:
    browser, _, _ = site()
    page = (await browser.get(f"/resources/{MOTOR}")).text
    assert f'action="/resources/{MOTOR}/call/go_for"' in page
    assert '<input name="rpm" autocomplete="off" spellcheck="false" value="" required type="number"' in page
    assert "rev/min" in page
    assert "machine call left stream_ticks" in page
    assert f'href="/resources/{BOARD}"' in page
    assert f'href="/resources/{BASE}"' in page
    assert "***" in page
    assert "STOP left" in page
    assert "Readings" not in page


async def test_sensor_and_camera_pages_have_their_live_parts() -> None:
    browser, _, _ = site()
    assert "data-readings" in (await browser.get(f"/resources/{SENSOR}")).text
    camera = (await browser.get(f"/resources/{CAMERA}")).text
    assert f'src="/resources/{CAMERA}/image"' in camera
    assert "STOP front" not in camera
    image = await browser.get(f"/resources/{CAMERA}/image")
    assert image.headers["content-type"] == "image/png"
    assert image.body.startswith(b"\x89PNG")
    assert (await browser.get(f"/resources/{MOTOR}/image", JSON)).status == 501


@pytest.mark.parametrize("kind", ["image/svg+xml", "text/html", "", "image/png; charset=x"])
async def test_camera_data_is_shown_only_if_it_is_a_plain_picture(kind: str) -> None:
    machine = MachineInMemory()
    machine.picture_type = kind
    browser, _, _ = site(machine)
    assert (await browser.get(f"/resources/{CAMERA}/image", JSON)).status == 501


async def test_a_simple_name_is_enough_if_it_is_the_only_one() -> None:
    browser, _, _ = site()
    assert "rdk:component:motor" in (await browser.get("/resources/left")).text
    twice = machine_status(node("rdk:component:motor/x"), node("rdk:component:servo/x"))
    browser, _, _ = site(MachineInMemory(twice))
    assert (await browser.get("/resources/x")).status == 404


async def test_logs_are_filtered_by_level_resource_and_text() -> None:
    browser, machine, _ = site()
    machine.write("quiet", "debug")
    machine.write("the Motor turns", "info", resource=MOTOR)
    machine.write("trouble", "error", resource=SENSOR, fields='{"code":17}')
    assert "quiet" not in (await browser.get("/logs")).text
    assert "quiet" in (await browser.get("/logs?level=debug")).text
    only = (await browser.get("/logs?level=warn")).text
    assert "trouble" in only
    assert "the Motor turns" not in only
    assert "trouble" not in (await browser.get(f"/logs?resource={MOTOR}")).text
    assert "the Motor turns" in (await browser.get("/logs?text=motor")).text
    assert "trouble" in (await browser.get("/logs?text=17")).text
    assert "No matching lines" in (await browser.get("/logs?text=zebra")).text
    assert (await browser.get("/logs?level=nonsense")).status == 200


async def test_logs_as_data_continue_where_the_last_answer_ended() -> None:
    browser, machine, _ = site()
    machine.write("one", "debug")
    machine.write("two")
    first = (await browser.get("/logs.json")).json()
    assert [entry["message"] for entry in first["entries"]] == ["one", "two"]
    machine.write("three")
    second = (await browser.get(f"/logs.json?since={first['last']}")).json()
    assert [entry["message"] for entry in second["entries"]] == ["three"]
    assert (await browser.get("/logs.json?since=x", JSON)).status == 400


async def test_statistics_have_a_page_and_numbers() -> None:
    browser, _, _ = site()
    page = await browser.get("/statistics")
    assert 'data-island="plot"' in page.text
    assert '"/statistics/series"' in page.text.replace("&#34;", '"')
    asked = "/statistics/series?from=2026-01-31T12:00:00Z&to=2026-01-31T12:00:01.5&points=7"
    assert (await browser.get(asked, JSON)).json() == {"from": 1769860800000, "to": 1769860801500, "points": 7}
    hour = (await browser.get("/statistics/series", JSON)).json()
    assert hour["to"] - hour["from"] == 3_600_000
    for query in ("from=yesterday", "points=-1", "points=x", "from=2026-01-31&to=2026-01-30", "from=" + "9" * 99):
        assert (await browser.get(f"/statistics/series?{query}", JSON)).status == 400, query


async def test_status_and_resources_as_data() -> None:
    browser, machine, _ = site()
    status = (await browser.get("/status.json")).json()
    assert status["host"] == "rover-7"
    assert len(status["resources"]) == len(machine.now.resources)
    body = (await browser.get(f"/resources/{MOTOR}.json")).json()
    assert body["state"] == "ready"
    assert body["attributes"]["api_key"] == "***"
    assert [method["name"] for method in body["methods"]][:2] == ["get_position", "go_for"]
    nothing = await browser.get("/resources/none.json", JSON)
    assert nothing.status == 404
    assert "there is no resource 'none'" in nothing.json()["error"]


async def test_a_program_gets_one_line_and_a_browser_the_page() -> None:
    browser, _, _ = site()
    for accept in ({}, {"accept": "*/*"}, {"accept": "text/plain"}):
        reply = await browser.get("/", accept)
        assert reply.status == 200
        assert reply.text == "machine-server 0.1.0 is running\n"
        assert reply.headers["content-type"].startswith("text/plain")
    assert (await browser.get("/")).headers["content-type"].startswith("text/html")


async def test_with_keys_the_first_page_sends_a_browser_to_the_login() -> None:
    app = build(MachineInMemory())
    stranger = Browser(app, state={"authentication": True, "identity": None})
    reply = await stranger.get("/")
    assert (reply.status, reply.headers["location"]) == (303, "/login?next=/")
    assert (await stranger.get("/", {})).status == 200
    browser = Browser(app, state={"authentication": True, "identity": object()})
    page = (await browser.get("/")).text
    assert 'action="/logout"' in page
    assert "/logs" not in PUBLIC


async def test_healthz_names_what_does_not_work() -> None:
    browser, machine, _ = site()
    sick = await browser.get("/healthz")
    assert sick.status == 503
    reasons = {reason["name"]: reason["reason"] for reason in sick.json()["reasons"]}
    assert reasons["rdk:component:encoder/right-encoder"].startswith("unhealthy: i2c bus 1")
    assert "components.3.attributes.pins.a" in reasons
    assert MOTOR not in reasons
    machine.set(machine_status(node(MOTOR)))
    well = await browser.get("/healthz")
    assert (well.status, well.json()) == (200, {"healthy": True, "state": "running", "reasons": []})
    machine.set(replace(machine.now, state=MachineState.INITIALIZING))
    assert (await browser.get("/healthz")).status == 503


@pytest.mark.parametrize(
    ("client", "status"),
    [
        (("127.0.0.1", 1), 200),
        (("127.8.9.10", 1), 200),
        (("::1", 1), 200),
        (("::ffff:127.0.0.1", 1), 200),
        (("192.168.1.9", 1), 403),
        (("::ffff:192.168.1.9", 1), 403),
        (("fe80::1%eth0", 1), 403),
        (("localhost", 1), 403),  # a name is not an address, so the client has invented it
        (None, 403),
    ],
)
async def test_restart_status_is_for_processes_of_this_machine(client: tuple[str, int] | None, status: int) -> None:
    reply = await Browser(build(MachineInMemory()), client=client, host="localhost").get("/restart_status", {})
    assert reply.status == status
    if status == 200:
        assert reply.json() == {
            "restart_allowed": True,
            "does_not_handle_needs_restart": True,
            "module_server_tcp_addr": "127.0.0.1:40001",
            "reason": "",
            "configured": True,
        }


async def test_unknown_pages_and_wrong_methods_say_so() -> None:
    browser, _, _ = site()
    assert "there is no page /nowhere" in (await browser.get("/nowhere")).text
    assert (await browser.get("/nowhere", {})).status == 404
    assert (await browser.get("/stop-all")).status == 405
    assert (await browser.send("DELETE", "/logs")).status == 405
