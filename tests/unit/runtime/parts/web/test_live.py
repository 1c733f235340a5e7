"""The live connection sends each change once, the newest state last, and nothing without a listener."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from runtime.parts.web.pages import build
from support.text.words import dom_id
from tests.unit.runtime.parts.web.client import Browser
from tests.unit.runtime.parts.web.machine_in_memory import CAMERA, MOTOR, SENSOR, MachineInMemory, machine_status, node

OVERVIEW = "/live?view=overview"


def site() -> tuple[Browser, MachineInMemory]:
    machine = MachineInMemory()
    return Browser(build(machine)), machine


async def test_the_first_patch_is_the_whole_page_and_the_next_only_what_changed(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live(OVERVIEW) as page:
        first = await page.patch()
        assert {"summary", "problems", "downloads", "counts", "resources", "modules", "internal", "graph"} == set(first)
        for name, html in first.items():  # the browser finds the replaced element by its id
            assert f' id="{name}"' in html.partition(">")[0], html
        machine.set_state(CAMERA, "ready")
        second = await page.patch()
        assert set(second) == {"counts", dom_id(CAMERA), "g" + dom_id(CAMERA)}
        assert second[dom_id(CAMERA)].startswith(f'<tr id="{dom_id(CAMERA)}"')
        assert "is-ready" in second["g" + dom_id(CAMERA)]


async def test_a_slow_client_skips_what_lies_between_and_gets_the_last_state(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live(OVERVIEW) as page:
        await page.patch()
        machine.set_state(MOTOR, "removing")
        await trio.sleep(60)  # one patch is now being sent, and the client does not read it
        for number in range(1000):
            machine.set_state(MOTOR, "unhealthy", f"failure {number}")
            await trio.sleep(0.01)
        machine.set_state(MOTOR, "ready")
        stale = await page.patch()
        assert "removing" in stale[dom_id(MOTOR)]
        last = await page.patch()
        assert "is-ready" in last[dom_id(MOTOR)]
        with trio.move_on_after(60) as quiet:
            await page.patch()
        assert quiet.cancelled_caught  # nothing was queued


async def test_a_burst_is_one_patch(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live(OVERVIEW) as page:
        await page.patch()
        for number in range(100):
            machine.set_state(MOTOR, "unhealthy", f"failure {number}")
        patch = await page.patch()
        assert "failure 99" in patch[dom_id(MOTOR)]
        with trio.move_on_after(60) as quiet:
            await page.patch()
        assert quiet.cancelled_caught


async def test_new_and_vanished_resources_replace_table_and_graph(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live(OVERVIEW) as page:
        await page.patch()
        machine.set(machine_status(node(MOTOR), node("rdk:component:servo/new", needs=[MOTOR])))
        patch = await page.patch()
        assert "new" in patch["resources"]
        assert "thermometer" not in patch["graph"]
        assert dom_id(MOTOR) not in patch  # it is part of the table that was sent


async def test_sent_text_is_escaped(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live(OVERVIEW) as page:
        await page.patch()
        machine.set_state(MOTOR, "unhealthy", "<script>alert(1)</script>")
        for html in (await page.patch()).values():
            assert "<script>" not in html


async def test_a_resource_page_follows_its_resource_and_neighbours(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live(f"/live?view=resource&name={MOTOR}") as page:
        assert set(await page.patch()) == {"head", "dependencies", "dependents"}
        machine.set_state("rdk:component:encoder/left-encoder", "unhealthy", "unplugged")
        assert set(await page.patch()) == {"dependencies"}
        machine.set(machine_status())  # the resource is gone: the page keeps its content
        with trio.move_on_after(60) as quiet:
            await page.next()
        assert quiet.cancelled_caught


async def test_a_sensor_is_read_once_a_second_while_watched_and_not_otherwise(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    await trio.sleep(10)
    assert machine.calls == []
    start = trio.current_time()
    async with browser.live(f"/live?view=resource&name={SENSOR}") as page:
        got = []
        while len(got) < 5:
            message = await page.next()
            if "readings" in message:
                got.append(message["readings"])
        assert trio.current_time() - start == pytest.approx(4, abs=0.2)
    assert got[0]["values"] == [["door.open", "false", 0.0], ["note", "ok", None], ["temperature_c", "21.5", 21.5]]
    await wait_all_tasks_blocked()
    read = len(machine.calls)
    await trio.sleep(10)
    assert len(machine.calls) == read


async def test_several_watchers_share_the_readings(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    target = f"/live?view=resource&name={SENSOR}"

    async def follow(page: object) -> None:
        while True:
            await page.next()  # type: ignore[attr-defined]

    async with browser.live(target) as first, browser.live(target) as two, browser.live(target) as three:
        with trio.move_on_after(9.5):
            async with trio.open_nursery() as nursery:
                for page in (first, two, three):
                    nursery.start_soon(follow, page)
    assert 9 <= len(machine.calls) <= 11


async def test_a_hung_sensor_is_cancelled_when_its_watcher_leaves_and_the_next_one_reads(
    autojump_clock: trio.abc.Clock,
) -> None:
    class Hung(MachineInMemory):
        async def call(self, name: str, method: str, arguments: Mapping[str, str]) -> object:
            self.calls.append((name, method, arguments))
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                self.cancelled.append(name)
                raise

    machine = Hung()
    browser = Browser(build(machine))
    target = f"/live?view=resource&name={SENSOR}"
    async with browser.live(target) as second:
        async with browser.live(target):
            await wait_all_tasks_blocked()
            assert len(machine.calls) == 1
        await second.patch()
        await trio.sleep(10)
    assert len(machine.cancelled) == len(machine.calls) >= 1


async def test_a_failing_sensor_shows_its_error_and_comes_back(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    machine.failure = RuntimeError("i2c: no acknowledge")
    async with browser.live(f"/live?view=resource&name={SENSOR}") as page:
        message = await page.next()
        while "readings" not in message:
            message = await page.next()
        assert message["readings"]["error"] == "RuntimeError: i2c: no acknowledge"
        machine.failure = None
        message = await page.next()
        while "readings" not in message or message["readings"]["error"]:
            message = await page.next()
        assert message["readings"]["values"]


async def test_log_lines_follow_the_filter_and_start_after_those_of_the_page(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    machine.write("old", "error")
    async with browser.live("/live?view=logs&level=warn&since=1") as page:
        machine.write("quiet", "info")
        machine.write("<b>loud</b>", "error")
        (line,) = (await page.next())["log"]
        assert "&lt;b&gt;loud" in line
        assert 'data-seq="3"' in line


async def test_a_client_that_lags_gets_the_newest_lines(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live("/live?view=logs&level=info&since=0") as page:
        machine.write("first")
        await trio.sleep(1)
        for number in range(2000):
            machine.write(f"line {number}")
        assert "first" in (await page.next())["log"][0]
        lines = (await page.next())["log"]
        assert len(lines) == 500
        assert "line 1999" in lines[-1]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://rover-7:9999"])
async def test_pages_of_other_sites_may_not_listen(origin: str, autojump_clock: trio.abc.Clock) -> None:
    browser, _ = site()
    async with browser.live(OVERVIEW, {"origin": origin}) as page:
        assert page.first["type"] == "websocket.close"
    async with browser.live(OVERVIEW, {"origin": "http://rover-7:8080"}) as page:
        assert page.first["type"] == "websocket.accept"


async def test_a_page_that_leaves_while_it_is_sent_to_ends_its_tasks(autojump_clock: trio.abc.Clock) -> None:
    browser, machine = site()
    async with browser.live(OVERVIEW):
        machine.set_state(MOTOR, "removing")
        await wait_all_tasks_blocked()
    # leaving the block waits until the application has ended


@pytest.mark.parametrize("target", [OVERVIEW, "/live?view=logs", f"/live?view=resource&name={SENSOR}"])
async def test_a_page_that_closes_during_a_patch_does_not_fail(autojump_clock: trio.abc.Clock, target: str) -> None:
    browser, _ = site()
    arriving = [{"type": "websocket.disconnect", "code": 1001}, {"type": "websocket.connect"}]
    sent: list[str] = []

    async def receive() -> dict[str, Any]:
        if len(arriving) == 1:
            await trio.sleep(5)  # the end of the connection is noticed by sending first
        return arriving.pop()

    async def send(message: Any) -> None:
        sent.append(message["type"])
        if message["type"] == "websocket.send":
            raise OSError("the WebSocket is closed")

    await browser.app(browser._scope("websocket", target, {}), receive, send)
    assert sent[0] == "websocket.accept"
    assert sent.count("websocket.send") <= 2, "one for each stream"
