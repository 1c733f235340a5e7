"""Changes are accepted only from a page of this server, and their result is shown."""

from __future__ import annotations

import pytest
import trio

from runtime.parts.web.pages import build
from schema.errors import ErrorKind, MachineError
from tests.unit.runtime.parts.web.client import HTML, JSON, Browser
from tests.unit.runtime.parts.web.machine_in_memory import MOTOR, MachineInMemory

CALL = f"/resources/{MOTOR}/call/set_power"
OWN = {"origin": "http://rover-7:8080", "sec-fetch-site": "same-origin"}


async def browser() -> tuple[Browser, MachineInMemory, str]:
    machine = MachineInMemory()
    first = Browser(build(machine))
    return first, machine, await first.token()


@pytest.mark.parametrize("target", [CALL, "/stop-all"])
@pytest.mark.parametrize(
    ("headers", "form"),
    [
        ({"origin": "http://evil.example"}, {}),
        ({"origin": "null"}, {}),
        ({"origin": "http://rover-7:8081"}, {}),
        ({"sec-fetch-site": "cross-site"}, {}),
        ({"sec-fetch-site": "same-site"}, {}),
        ({}, {"csrf": ""}),
        ({}, {"csrf": "0" * 64}),
        ({}, {"csrf": "€"}),
    ],
)
async def test_forged_requests_are_refused(target: str, headers: dict[str, str], form: dict[str, str]) -> None:
    page, machine, token = await browser()
    reply = await page.post(target, {"csrf": token, "power_pct": "1", **form}, {**JSON, **headers})
    assert reply.status == 403
    assert "reload the page" in reply.json()["error"]
    assert machine.calls == []
    assert machine.stops == 0


async def test_a_token_of_another_browser_or_another_server_is_refused() -> None:
    page, machine, _ = await browser()
    other, _, token = await browser()
    assert (await page.post(CALL, {"csrf": token}, JSON)).status == 403
    other.app = page.app
    assert (await other.post(CALL, {"csrf": token}, JSON)).status == 403
    page.cookies.clear()
    assert (await page.post(CALL, {"csrf": token}, JSON)).status == 403
    assert machine.calls == []


async def test_get_changes_nothing() -> None:
    page, machine, token = await browser()
    for target in (f"{CALL}?csrf={token}&power_pct=1", f"/stop-all?csrf={token}"):
        assert (await page.get(target)).status in (404, 405)
    assert (machine.calls, machine.stops) == ([], 0)


async def test_the_cookie_is_kept_from_scripts_and_other_sites() -> None:
    cookie = (await Browser(build(MachineInMemory())).get("/")).headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie


async def test_a_call_passes_its_fields_and_shows_its_result() -> None:
    page, machine, token = await browser()
    machine.results["set_power"] = {"applied": 0.5}
    reply = await page.post(CALL, {"csrf": token, "power_pct": "0.5", "note": ""}, {**JSON, **OWN})
    assert machine.calls == [(MOTOR, "set_power", {"power_pct": "0.5"})]
    assert reply.status == 200
    assert reply.json()["value"] == '{\n  "applied": 0.5\n}'
    assert reply.json()["error"] == ""


async def test_without_script_the_page_comes_back_with_fields_and_result() -> None:
    page, machine, token = await browser()
    machine.results["set_power"] = 17
    reply = await page.post(CALL, {"csrf": token, "power_pct": "0.25"}, HTML)
    assert reply.status == 200
    assert '<details id="method-set_power" open>' in reply.text
    assert 'value="0.25"' in reply.text
    assert ">17</pre>" in reply.text


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (MachineError("out of range", kind=ErrorKind.INVALID, remedy="use -1 to 1"), 400, "out of range: use -1 to 1"),
        (MachineError("stopping", kind=ErrorKind.UNAVAILABLE), 503, "stopping"),
        (MachineError("cannot", kind=ErrorKind.UNSUPPORTED), 501, "cannot"),
        (MachineError("bug", kind=ErrorKind.INTERNAL), 500, "bug"),
        (NotImplementedError(), 501, "this model does not support the method"),
        (ZeroDivisionError("division by zero"), 500, "ZeroDivisionError: division by zero"),
    ],
)
async def test_errors_reach_the_page(error: Exception, status: int, words: str) -> None:
    page, machine, token = await browser()
    machine.failure = error
    reply = await page.post(CALL, {"csrf": token}, JSON)
    assert (reply.status, reply.json()["error"]) == (status, words)
    shown = await page.post(CALL, {"csrf": token}, HTML)
    assert words in shown.text


async def test_a_page_that_goes_away_cancels_its_call(autojump_clock: trio.abc.Clock) -> None:
    page, machine, token = await browser()
    with trio.move_on_after(5):
        await page.post(f"/resources/{MOTOR}/call/go_for", {"csrf": token, "rpm": "1"}, JSON)
    assert machine.cancelled == [MOTOR]


async def test_stop_all_stops_and_says_what_could_not_be_stopped() -> None:
    page, machine, token = await browser()
    done = await page.post("/stop-all", {"csrf": token}, HTML)
    assert (done.status, done.headers["location"], machine.stops) == (303, "/", 1)
    machine.failure = MachineError("1 not stopped: left: i2c", kind=ErrorKind.INTERNAL)
    assert "1 not stopped: left: i2c" in (await page.post("/stop-all", {"csrf": token}, JSON)).json()["error"]
    failed = await page.post("/stop-all", {"csrf": token}, HTML)
    assert failed.status == 500
    assert "1 not stopped: left: i2c" in failed.text


async def test_a_form_has_bounds() -> None:
    page, machine, token = await browser()
    reply = await page.post(CALL, {"csrf": token, "x": "a" * (1 << 20)}, JSON)
    assert reply.status == 400
    assert machine.calls == []
