"""The pages of alerts: what is open, buttons, rules with a form, previews, tests and permissions."""

from __future__ import annotations

import html
import json
import re
from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

from cloud.server.memory import MemoryCloud
from cloud.web.views.alert_view import form_of, rule_of
from tests.unit.cloud.conftest import Clock
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.services.alerts.alert_help import RULE, call, measured, new_rule, warm
from tests.unit.cloud.triggering_help import Receiver, sending
from tests.unit.cloud.web.test_web_fleet import key_at

FORM = {
    "name": "freezer warm",
    "kind": "reading",
    "method": "sensor:s:Readings",
    "field": "celsius",
    "operator": "gt",
    "value": "-10",
    "recovery": "-15",
    "minutes": "5",
    "targets": "https://receiver.test/hook\nann@example.com",
    "zone": "Europe/Berlin",
    "quiet_start": "22:00",
    "quiet_end": "07:00",
    "quiet_mode": "delay",
    "days": "mon, tue",
    "scope": "{}",
    "no_data": "keep",
    "no_data_minutes": "60",
}


async def test_an_open_alert_has_its_value_place_and_links(cloud: MemoryCloud, part: str) -> None:
    await new_rule(cloud)
    await warm(cloud, part)
    browser = await signed_in(cloud)
    page = await browser.get("/alerts")
    assert "<b>1</b> alert is firing" in page.text
    for text in ("freezer warm", "-3", "rover", "celsius, alerts above -10", f"/machines/{part}"):
        assert text in page.text
    (plot,) = re.findall(r'href="(/data\?[^"]*)"', page.text)
    query = parse_qs(urlsplit(plot.replace("&amp;", "&")).query)
    assert (query["part"], query["component"], query["method"]) == ([part], ["s"], ["Readings"])
    assert json.loads((await browser.get("/alerts/count")).text) == {"firing": 1}


async def test_an_alert_is_acknowledged_and_silenced_by_buttons(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    await new_rule(cloud)
    await warm(cloud, part)
    browser = await signed_in(cloud)
    (alert,) = await call(cloud, "list_alerts")
    path = f"/alerts/{alert['id']}"
    assert (await post(browser, path, action="acknowledge", stay="1")).headers["location"] == path
    assert "acknowledged" in (await browser.get(path)).text
    assert json.loads((await browser.get("/alerts/count")).text) == {"firing": 0}
    for form, hours in (
        ({"for": "1"}, 1.0),
        ({"for": "4"}, 4.0),
        ({"for": "tomorrow", "offset": "60"}, 31.0),  # 2026-01-02 08:00 in UTC+1
        ({"until": "2026-01-01T05:00", "offset": "-60"}, 6.0),
    ):
        reply = await post(browser, path, action="silence", **form)
        assert reply.status == 303, reply.text
        (alert,) = await call(cloud, "list_alerts")
        assert abs((alert["silenced_until"] - clock()) / timedelta(hours=1) - hours) < 0.01
    assert (await post(browser, path, action="unsilence")).status == 303
    assert "silenced_until" not in (await call(cloud, "list_alerts"))[0]
    for wrong in ({"until": "yesterday"}, {"until": "2020-01-01T00:00"}):
        assert (await post(browser, path, action="silence", **wrong)).status == 400


async def test_a_rule_is_made_by_the_form_changed_and_deleted(cloud: MemoryCloud) -> None:
    browser, owner = await signed_in(cloud), cloud.first.organization
    sent = {**FORM, "organization": owner, "action": "save"}
    reply = await post(browser, "/alerts/rules", **sent)
    assert reply.status == 303, reply.text
    rule = (await call(cloud, "list_alert_rules", organization_id=owner))[-1]
    assert rule["rule"]["condition"] == {
        "path": "celsius",
        "comparison": "gt",
        "threshold": -10,
        "recovery": -15,
        "component": "s",
        "component_type": "sensor",
        "method": "Readings",
    }
    assert [target["type"] for target in rule["rule"]["targets"]] == ["webhook", "email"]
    page = await browser.get(f"/alerts/rules?edit={rule['id']}")
    assert "Change the rule" in page.text
    assert 'value="freezer warm"' in page.text
    assert (await post(browser, "/alerts/rules", organization=owner, action="switch", rule=rule["id"])).status == 303
    rule = (await call(cloud, "list_alert_rules", organization_id=owner))[-1]
    assert rule["rule"]["enabled"] is False
    assert (await post(browser, "/alerts/rules", organization=owner, action="delete", rule=rule["id"])).status == 303
    assert all(each["builtin"] for each in await call(cloud, "list_alert_rules", organization_id=owner))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"value": "warm"}, "condition.threshold"),
        ({"minutes": "five"}, "is not a number"),
        ({"method": "door"}, "is not a source of readings"),
        ({"scope": "["}, "the machines are not valid"),
        ({"name": ""}, "cannot be called"),
    ],
)
async def test_a_mistake_in_the_form_keeps_what_was_written(
    cloud: MemoryCloud, change: dict[str, str], words: str
) -> None:
    browser = await signed_in(cloud)
    sent = {**FORM, **change, "organization": cloud.first.organization, "action": "save"}
    reply = await post(browser, "/alerts/rules", **sent)
    assert reply.status == 400
    assert words in html.unescape(reply.text).lower()
    assert "https://receiver.test/hook" in reply.text


async def test_a_preview_is_shown_in_the_form(cloud: MemoryCloud, part: str, clock: Clock) -> None:
    for hours, celsius in ((30, -20.0), (20, -3.0), (19, -20.0)):
        await measured(cloud, part, clock() - timedelta(hours=hours), celsius=celsius)
    browser = await signed_in(cloud)
    sent = {**FORM, "organization": cloud.first.organization, "action": "preview"}
    reply = await post(browser, "/alerts/rules", **sent)
    assert "would have fired <strong>1</strong> time." in reply.text


async def test_a_test_shows_the_answer_of_the_receiver(cloud: MemoryCloud) -> None:
    rule, browser = await new_rule(cloud), await signed_in(cloud)
    async with sending(cloud, Receiver()):
        reply = await post(browser, "/alerts/rules", organization=cloud.first.organization, action="test", rule=rule)
    assert "accepted the test message, status 200" in reply.text


async def test_targets_of_the_organization_are_added_and_removed(cloud: MemoryCloud) -> None:
    browser, owner = await signed_in(cloud), cloud.first.organization
    assert "No target is set" in (await browser.get("/alerts/rules")).text
    target = {"organization": owner, "type": "email", "value": "ann@example.com"}
    assert (await post(browser, "/alerts/rules", action="notify", **target)).status == 303
    assert "ann@example.com" in (await browser.get("/alerts/rules")).text
    assert (await post(browser, "/alerts/rules", action="remove", **target)).status == 303
    assert (await post(browser, "/alerts/rules", action="notify", **{**target, "value": "x"})).status == 400


async def test_an_operator_sees_rules_without_buttons(cloud: MemoryCloud, part: str) -> None:
    await new_rule(cloud)
    await warm(cloud, part)
    key = await key_at(cloud, "organization", cloud.first.organization)
    browser = await signed_in(cloud, key)
    page = (await browser.get("/alerts/rules")).text
    assert "freezer warm" in page
    assert "Switch off" not in page
    assert "receiver.test" not in page
    assert "Acknowledge" in (await browser.get("/alerts")).text
    sent = {**FORM, "organization": cloud.first.organization, "action": "save"}
    assert (await post(browser, "/alerts/rules", **sent)).status == 403


async def test_the_page_is_live(cloud: MemoryCloud, part: str) -> None:
    await new_rule(cloud)
    browser = await signed_in(cloud)
    with trio.fail_after(20):
        async with browser.live("/live/alerts", {"origin": f"http://{HOST}"}) as page:
            assert "No alert is firing" in (await page.patch())["board"]
            await warm(cloud, part)
            assert "<b>1</b> alert is firing" in (await page.patch())["board"]


def test_the_form_of_a_rule_returns_the_rule() -> None:
    rule = {
        **RULE,
        "scope": {"locations": ["a"], "tags": ["cold"]},
        "for_seconds": 90,
        "no_data": "alert",
        "quiet": {"zone": "UTC", "start": "22:00", "end": "07:00", "days": ["mon"], "mode": "drop"},
        "message": "{machine} {value}",
    }
    again = rule_of(form_of(rule), enabled=True)
    again["condition"] = {name: value for name, value in again["condition"].items() if value != ""}
    for name, value in rule.items():
        assert again[name] == value, name


async def test_readings_lead_to_the_form_of_a_rule_about_them(cloud: MemoryCloud, part: str, machine: str) -> None:
    await measured(cloud, part, cloud.cloud.clock(), celsius=-3.0)
    browser = await signed_in(cloud)
    page = (await browser.get(f"/data?view=readings&part={part}&component=s&type=sensor")).text
    (link,) = re.findall(r'href="(/alerts/rules[^"]*)"', page)
    form = html.unescape((await browser.get(html.unescape(link).partition("#")[0])).text)
    assert 'value="sensor:s:Readings"' in form
    assert f'{{"machines": ["{machine}"]}}' in form
    assert "selected>rover" in form
