"""The search over the cloud: words of machines, their pages, actions and help; nothing of other organizations."""

from __future__ import annotations

import json
from urllib.parse import urlencode

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.web.common.site import TABS
from cloud.web.pages.finding.targets import SearchTarget, machine_targets, matching, split_tab
from tests.unit.cloud.pages import signed_in
from tests.unit.runtime.parts.web.client import Browser

DATASETS = "viam.app.dataset.v1.DatasetService"
JSON = {"accept": "application/json"}


@pytest.mark.parametrize(
    ("text", "words", "tab"),
    [
        ("rover lo", "rover", "Logs"),
        ("rover", "rover", None),
        ("left rover control", "left rover", "Control"),
        ("rover x", "rover x", None),
        ("logs", "logs", None),
    ],
)
def test_the_last_word_is_a_page_of_a_machine(text: str, words: str, tab: str | None) -> None:
    result, chosen = split_tab(text, TABS)
    assert (result, chosen and chosen[0]) == (words, tab)


def test_targets_of_machines() -> None:
    machines = [("rover", "Home", "p1")]
    assert list(machine_targets(machines, TABS, None)) == [SearchTarget("Machine", "rover", "/machines/p1", "Home")]
    (log,) = machine_targets(machines, TABS, ("Logs", "/machines/{id}/logs"))
    assert (log.title, log.href) == ("rover: Logs", "/machines/p1/logs")


def test_titles_that_begin_with_the_text_come_first() -> None:
    targets = [SearchTarget("Page", title, "/", detail) for title, detail in (("a data", ""), ("Data", ""), ("x", "y"))]
    assert [target.title for target in matching("data", targets)] == ["Data", "a data"]
    assert [target.title for target in matching("y x", targets)] == ["x"]


async def search(person: Browser, text: str, status: int = 200) -> dict[str, str]:
    """Return the address of the first target of each title."""
    answer = await person.send("GET", f"/search?{urlencode({'text': text})}", JSON)
    assert answer.status == status, answer.text
    return {target["title"]: target["href"] for target in reversed(json.loads(answer.text))} if status == 200 else {}


async def test_machines_pages_and_help(cloud: MemoryCloud, machine: str, part: str) -> None:
    person = await signed_in(cloud)
    assert (await search(person, "rover"))["rover"] == f"/machines/{part}"
    assert (await search(person, "rover contr"))["rover: Control"] == f"/machines/{part}/control"
    assert (await search(person, "audit"))["Audit"] == "/audit"
    assert (await search(person, "train"))["Train a model"] == "/datasets"
    assert "/help/howto/triggers" in (await search(person, "notified when something")).values()
    assert "/sql" in (await search(person, "")).values()
    assert await search(person, "xyzzy") == {}
    page = await person.get("/search?text=rover%20contr")
    assert f'href="/machines/{part}/control"' in page.text


async def test_fragments_and_datasets(cloud: MemoryCloud, machine: str) -> None:
    owner = cloud.first.organization
    fragment = await cloud.app("create_fragment", name="Wheeled base", organization_id=owner, config={})
    dataset = await cloud.client().call(DATASETS, "", "create_dataset", name="Wheels 50%", organization_id=owner)
    person = await signed_in(cloud)

    async def objects(browser: Browser, text: str) -> dict[str, str]:
        return {title: href for title, href in (await search(browser, text)).items() if not href.startswith("/help")}

    both = {"Wheeled base": f"/fragments/{fragment['id']}", "Wheels 50%": f"/datasets/{dataset}"}
    assert await objects(person, "wheel") == both
    assert await objects(person, "base WHEEL") == {"Wheeled base": both["Wheeled base"]}
    assert await objects(person, "50%") == {"Wheels 50%": both["Wheels 50%"]}
    assert await objects(person, "w_eel") == {}
    practice = await cloud.app("create_fragment", name="Übung Größe", organization_id=owner, config={})
    for text in ("Übung", "übung", "GRÖ", "g üb"):
        assert await objects(person, text) == {"Übung Größe": f"/fragments/{practice['id']}"}
    assert await objects(person, "äbung") == {}
    for role, kind, place in (("operator", "organization", owner), ("owner", "location", cloud.first.location)):
        grant = {"resource_type": kind, "resource_id": place, "authorization_id": f"{kind}_{role}"}
        created = await cloud.app("create_key", authorizations=[{**grant, "authorization_type": "role"}], name=role)
        seen = await objects(await signed_in(cloud, (created["id"], created["key"])), "wheel")
        assert seen == (both if kind == "organization" else {})
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    assert await objects(await signed_in(cloud, (other.id, other.key)), "wheel") == {}


async def test_machines_of_others_are_not_listed(cloud: MemoryCloud, machine: str) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    person = await signed_in(cloud, (other.id, other.key))
    assert "rover" not in await search(person, "rover")


async def test_a_search_that_is_too_long(cloud: MemoryCloud) -> None:
    person = await signed_in(cloud)
    await search(person, "x" * 101, 400)
    assert await search(person, "%_\\' OR 1=1") == {}
