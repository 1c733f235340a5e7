"""The trigger pages: active triggers, dry runs, tests, deliveries, replays and permissions."""

from __future__ import annotations

import html
import json
import re

import pytest
import trio

from cloud.server.memory import MemoryCloud
from cloud.web.common.closing import GONE
from tests.unit.cloud.captured import Uploads, piece
from tests.unit.cloud.pages import HOST, post, signed_in
from tests.unit.cloud.triggering_help import (
    Receiver,
    configure,
    email,
    evaluated,
    hotter,
    log,
    sent,
    tabular,
    trigger,
    upload,
    webhook,
)
from tests.unit.cloud.web.test_web_fleet import key_at
from tests.unit.runtime.parts.web.client import HTML, Browser
from triggers.retry import of_status

LIMIT = 10.0
ORIGIN = {"origin": f"http://{HOST}"}


def shown(text: str) -> str:
    """Return the visible text without tags."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).replace("&gt;", ">").replace("&#34;", '"').split())


async def test_effective_triggers_and_their_errors(cloud: MemoryCloud, part: str) -> None:
    await configure(
        cloud,
        part,
        {
            **hotter("hot", 30.0, webhook(seconds_between_notifications=60), email("ann@example.com")),
            "notes": "Ask Ann.",
        },
        trigger("gone", "part_offline"),
        trigger("broken", "part_offline", webhook("ftp://x/")),
    )
    person = await signed_in(cloud)
    reply = await person.get(f"/machines/{part}/triggers", HTML)
    assert reply.status == 200
    text = shown(reply.text)
    assert "hot when data from sensor:oven:Readings meets a condition" in text
    assert "celsius > 30.0" in text
    assert "at most every 60 s" in text
    assert "ann@example.com" in text
    assert "Ask Ann." in text
    assert "gone when it goes offline" in text
    assert 'placeholder="{&#34;celsius&#34;: 30.0}"' in reply.text  # an example that matches the trigger
    assert "triggers.2.notifications.0.value: the scheme of the URL is ftp" in text
    overview = shown((await person.get("/triggers", HTML)).text)
    assert "rover" in overview
    assert overview.endswith(" 2 1")


async def test_a_page_without_triggers(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    assert "No triggers yet" in (await person.get(f"/machines/{part}/triggers", HTML)).text
    assert "No machine has triggers" in (await person.get("/triggers", HTML)).text


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (
            '{"celsius": 31}',
            "It would fire : the reading satisfies all comparisons. holds celsius 31 is greater",
        ),
        ('{"readings": {"celsius": 29}}', "It would not fire : all comparisons must hold: 1 of 1 do not."),
        ('{"fahrenheit": 90}', "the reading has no such field"),
        ("", "no reading has been captured yet: pass a reading to test the trigger with"),
        ("{", "Line 1, column 2: the document ends too early"),
        ("[1]", "The reading is not a JSON object"),
    ],
)
async def test_a_dry_run(cloud: MemoryCloud, part: str, reading: str, words: str) -> None:
    await configure(cloud, part, hotter("hot", 30.0))
    person = await signed_in(cloud)
    reply = await post(person, f"/machines/{part}/triggers", trigger="hot", action="explain", reading=reading)
    assert reply.status == (400 if words.startswith(("The ", "Line")) else 200)
    assert words in shown(reply.text)
    assert not await log(cloud, part)


async def test_a_failed_test_message_is_shown_and_replayed(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, hotter("hot", 30.0))
    person = await signed_in(cloud)
    path = f"/machines/{part}/triggers"
    reply = await post(person, path, trigger="hot", action="test", reading='{"celsius": 1}')
    assert (reply.status, reply.headers["location"]) == (303, f"{path}?sent=1#deliveries")
    receiver = Receiver(of_status(404))
    await sent(cloud, receiver)
    page = shown((await person.get(f"{path}?sent=1", HTML)).text)
    assert "Sending 1 test message" in page
    assert "hot test" in page
    assert "failed 1" in page

    (entry,) = await log(cloud, part)
    detail = f"{path}/deliveries/{entry.id}"
    text = shown((await person.get(detail, HTML)).text)
    assert "answered 404, the URL does not exist" in text
    assert '"celsius": 1' in text
    assert "Trigger-Name: hot" in text
    assert entry.id in text
    assert (await post(person, detail)).status == 303
    again = await post(person, detail)
    assert again.status == 409
    assert "This delivery is being sent" in again.text
    await sent(cloud, receiver)
    assert [name for name, _ in receiver.got] == [entry.id, entry.id]
    assert "delivered" in shown((await person.get(detail, HTML)).text)


async def test_a_stopped_target_is_started_again(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("any"))
    await upload(cloud, part, 1.0)
    await evaluated(cloud, part)
    await sent(cloud, Receiver(of_status(410)))
    person = await signed_in(cloud)
    path = f"/machines/{part}/triggers"
    assert "stopped: answered 410" in shown((await person.get(path, HTML)).text)
    assert (await post(person, path, trigger="any", action="start")).status == 303
    assert "stopped" not in shown((await person.get(path, HTML)).text)


async def test_the_log_is_filtered_and_paged(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("any"), hotter("hot", 30.0))
    for n in range(35):
        await upload(cloud, part, float(n))
    await evaluated(cloud, part)
    person = await signed_in(cloud)
    path = f"/machines/{part}/triggers"
    first = (await person.get(path, HTML)).text
    older = re.search(r'href="(\?[^"]*)">Older', first)
    assert older is not None
    second = (await person.get(path + older[1].replace("&amp;", "&"), HTML)).text
    links = re.compile(r"/deliveries/([\w-]+)")
    assert len(links.findall(first)) == 30
    assert len(links.findall(second)) == 9
    assert not set(links.findall(first)) & set(links.findall(second))
    assert len(links.findall((await person.get(f"{path}?trigger=hot", HTML)).text)) == 4
    assert not links.findall((await person.get(f"{path}?state=failed", HTML)).text)
    assert (await person.get(f"{path}?state=x", HTML)).status == 400


async def test_an_email_is_escaped(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, hotter("hot", 30.0, email("ann@example.com")))
    await upload(cloud, part, 31.0)
    (item,) = await evaluated(cloud, part)
    person = await signed_in(cloud)
    text = shown((await person.get(f"/machines/{part}/triggers/deliveries/{item.id}", HTML)).text)
    assert "celsius: 31.0 is greater than 30.0" in text
    assert "Content-Transfer-Encoding" not in text


async def test_configured_texts_are_escaped(cloud: MemoryCloud, part: str) -> None:
    evil = '<script>alert("x")</script>'
    await configure(cloud, part, {**hotter(evil, 30.0), "notes": evil})
    person = await signed_in(cloud)
    path = f"/machines/{part}/triggers"
    await post(person, path, trigger=evil, action="test", reading=json.dumps({"celsius": evil}))
    (entry,) = await log(cloud, part)
    for page in (path, f"{path}/deliveries/{entry.id}", "/triggers"):
        assert "<script>alert" not in (await person.get(page, HTML)).text


async def test_operators_read_and_owners_change(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("any"))
    await upload(cloud, part, 1.0)
    (item,) = await evaluated(cloud, part)
    await sent(cloud, Receiver())
    operator = await signed_in(cloud, await key_at(cloud, "organization", cloud.first.organization, "operator"))
    path = f"/machines/{part}/triggers"
    page = await operator.get(path, HTML)
    assert page.status == 200
    assert "Would it fire?" in page.text
    assert "Send a test" not in page.text
    assert (await post(operator, path, trigger="any", action="explain", reading="{}")).status == 200
    assert (await post(operator, path, trigger="any", action="test")).status == 403
    assert (await post(operator, path, trigger="any", action="start")).status == 403
    detail = await operator.get(f"{path}/deliveries/{item.id}", HTML)
    assert detail.status == 200
    assert "Send it again" not in detail.text
    assert (await post(operator, f"{path}/deliveries/{item.id}")).status == 403
    assert (await post(operator, path, trigger="any", action="x")).status == 400


async def test_missing_objects_are_not_found(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    assert (await person.get("/machines/nothing/triggers", HTML)).status == 404
    assert (await person.get(f"/machines/{part}/triggers/deliveries/nothing", HTML)).status == 404
    assert (await post(person, f"/machines/{part}/triggers", trigger="nothing", action="explain")).status == 404


# ---- live


async def live_of(created: Browser, path: str) -> str:
    """The address of a page's live connection."""
    result = re.search(r'data-live="([^"]+)"', (await created.get(path, HTML)).text)
    assert result is not None
    return html.unescape(result[1])


async def test_deliveries_and_pauses_are_shown_live(cloud: MemoryCloud, part: str) -> None:
    await configure(
        cloud, part, tabular("any", webhook(seconds_between_notifications=60)), trigger("gone", "part_offline")
    )
    person = await signed_in(cloud)
    path = f"/machines/{part}/triggers"
    with trio.fail_after(LIMIT):
        async with person.live(await live_of(person, path), ORIGIN) as page:
            first = await page.patch()
            assert set(first) == {"changed", "targets-1", "targets-2", "delivery-log"}
            assert "hidden" in first["changed"]
            await upload(cloud, part, 1.0)
            await evaluated(cloud, part)
            result = await page.patch()
            assert set(result) == {"targets-1", "delivery-log"}
            assert "Muted until" in result["targets-1"]
            assert "waiting" in shown(result["delivery-log"])
            await sent(cloud, Receiver(of_status(503)))
            assert "failing next attempt" in shown((await page.patch())["delivery-log"])
            await configure(cloud, part, trigger("gone", "part_offline"))
            result = await page.patch()
            assert "hidden" not in result["changed"]
            assert not [
                name for name in result if name.startswith("targets")
            ]  # on this page these numbers are other targets
        async with person.live(await live_of(person, path), ORIGIN) as page:
            assert set(await page.patch()) == {"changed", "targets-1", "delivery-log"}


async def test_one_delivery_and_the_list_of_all_are_live(cloud: MemoryCloud, part: str) -> None:
    await configure(cloud, part, tabular("any"))
    await upload(cloud, part, 1.0)
    await evaluated(cloud, part)
    (entry,) = await log(cloud, part)
    person = await signed_in(cloud)
    detail = f"/machines/{part}/triggers/deliveries/{entry.id}"
    with trio.fail_after(LIMIT):
        async with (
            person.live(await live_of(person, detail), ORIGIN) as page,
            person.live("/live/triggers", ORIGIN) as every,
        ):
            assert "Send it again" not in (await page.patch())["again"]
            assert "waiting" in shown((await every.patch())["overview"])
            await sent(cloud, Receiver(of_status(503)))
            result = await page.patch()
            assert set(result) == {"state", "facts", "again", "tries"}
            assert "Retry now" in result["again"]
            assert (await post(person, detail)).status == 303
            await sent(cloud, Receiver())
            while "delivered" not in result.get("state", ""):
                result = await page.patch()
            assert "Send it again" in result["again"]
            assert "delivered" in shown((await every.patch())["overview"])


async def test_a_part_of_another_organization_cannot_be_followed(cloud: MemoryCloud, part: str) -> None:
    other = await cloud.app("new_robot", name="other", location=cloud.first.location)
    person = await signed_in(cloud, await key_at(cloud, "robot", other))
    for path in (f"/live/triggers/{part}", f"/live/triggers/{part}/x"):
        with trio.fail_after(LIMIT):
            async with person.live(path, ORIGIN) as page:
                message = await page.message()
                assert (message["type"], message["code"]) == ("websocket.close", GONE)
    with trio.fail_after(LIMIT):
        async with person.live("/live/triggers", ORIGIN) as page:
            assert "No machine has triggers" in (await page.patch())["overview"]


async def test_the_list_of_all_has_fragments_triggers_and_the_newest_delivery(cloud: MemoryCloud, part: str) -> None:
    fragment = await cloud.app(
        "create_fragment",
        name="shared",
        organization_id=cloud.first.organization,
        config={"triggers": [trigger("of a fragment", "part_offline")]},
    )
    await cloud.app("update_robot_part", id=part, robot_config_json=json.dumps({"fragments": [fragment["id"]]}))
    person = await signed_in(cloud)
    assert "rover Test" in shown((await person.get("/triggers", HTML)).text)
    for _ in range(2):
        assert (await post(person, f"/machines/{part}/triggers", trigger="of a fragment", action="test")).status == 303
    newest = max(await log(cloud, part), key=lambda item: item.number)
    assert newest.id in (await person.get("/triggers", HTML)).text


FORM = {
    "action": "trigger", "name": "hot", "event": "conditional_data_ingested", "method": "sensor:oven:Readings",
    "field": "celsius", "operator": "gt", "value": "30", "to": "email", "address": "ann@example.com",
}  # fmt: skip


async def test_a_trigger_is_added_by_a_form_after_a_review(cloud: MemoryCloud, part: str) -> None:
    await Uploads(cloud, part).readings(piece(0, celsius=20.0), component_name="oven")
    person = await signed_in(cloud)
    path = f"/machines/{part}/triggers"
    page = (await person.get(path, HTML)).text
    assert '<option value="sensor:oven:Readings">' in page
    sent_on = await post(person, path, **FORM)
    assert (sent_on.status, sent_on.headers["location"]) == (307, f"/machines/{part}/config")
    review = await post(person, f"/machines/{part}/config", **FORM)
    assert review.status == 200
    text = re.search(r'<textarea[^>]*name="document"[^>]*>(.*?)</textarea>', review.text, re.DOTALL)
    assert text is not None, review.text
    document = html.unescape(text[1])
    base = re.search(r'name="base" value="(\d+)"', review.text)
    assert base is not None
    saved = await post(person, f"/machines/{part}/config", action="save", document=document, base=base[1])
    assert saved.status == 303
    shown_page = (await person.get(path, HTML)).text
    assert "hot when data from sensor:oven:Readings meets a condition" in shown(shown_page)
    edit = (await person.get(f"{path}?edit=hot", HTML)).text
    assert "Change the trigger" in edit
    assert 'name="old" value="hot"' in edit
    assert 'name="value" type="text" value="30"' in edit
    taken = await post(person, path, **FORM)
    assert taken.status == 400
    assert "already a trigger" in taken.text
    assert (await post(person, path, **FORM, old="hot")).status == 307


async def test_a_form_with_a_mistake_keeps_what_was_typed(cloud: MemoryCloud, part: str) -> None:
    person = await signed_in(cloud)
    reply = await post(person, f"/machines/{part}/triggers", **{**FORM, "address": '"><script>alert(1)</script>'})
    assert reply.status == 400
    assert "To: " in shown(reply.text)
    assert 'name="method" value="sensor:oven:Readings"' in reply.text
    assert "<script>alert" not in reply.text
    unknown = await person.get(f"/machines/{part}/triggers?edit=nothing", HTML)
    assert unknown.status == 400
    assert "has no trigger" in shown(unknown.text)


async def test_operators_get_no_form(cloud: MemoryCloud, machine: str, part: str) -> None:
    person = await signed_in(cloud, await key_at(cloud, "robot", machine))
    page = (await person.get(f"/machines/{part}/triggers?edit=hot", HTML)).text
    assert "New trigger" not in page
    assert 'name="address"' not in page
    refused = await post(person, f"/machines/{part}/config", **FORM)
    assert refused.status == 403
