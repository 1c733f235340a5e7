"""The pages of configurations and fragments, as a browser without scripts sees them."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from cloud.domain.fleet import watching
from cloud.domain.machines.machines import note_seen
from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.services.configurations.editing import Editor
from cloud.values.author import KEY, Author
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.pages import HOST, browser, post, signed_in
from tests.unit.runtime.parts.web.client import HTML, Browser, Reply

SENSOR = {"name": "heat", "api": "rdk:component:sensor", "model": "fake"}
SECRET = "hunter2hunter2"


class Rover:
    """A machine part, and a browser for its pages."""

    def __init__(self, cloud: MemoryCloud, part: str, browser: Browser) -> None:
        self.cloud = cloud
        self.part = part
        self.browser = browser
        self.path = f"/machines/{part}/config"

    async def save(self, document: Any) -> None:
        await self.cloud.app("update_robot_part", id=self.part, robot_config_json=json.dumps(document))

    async def saved(self) -> Any:
        answer = await self.cloud.app("get_robot_part", id=self.part)
        return json.loads(answer["config_json"])

    async def get(self, path: str = "") -> Reply:
        return await self.browser.send("GET", path or self.path, HTML)

    async def post(self, action: str, document: Any, base: int, path: str = "", **more: str) -> Reply:
        text = document if isinstance(document, str) else json.dumps(document)
        return await post(self.browser, path or self.path, action=action, document=text, base=str(base), **more)

    async def ask(self, what: str, **sent: Any) -> Any:
        headers = {"origin": f"http://{HOST}", "accept": "application/json"}
        reply = await self.browser.send("POST", f"{self.path}/{what}", headers, json.dumps(sent).encode())
        return json.loads(reply.text)


async def part_of(cloud: MemoryCloud, name: str = "rover") -> str:
    robot = await cloud.app("new_robot", name=name, location=cloud.first.location)
    (part,) = await cloud.app("get_robot_parts", robot_id=robot)
    return str(part["id"])


@pytest.fixture
async def rover(cloud: MemoryCloud) -> Rover:
    return Rover(cloud, await part_of(cloud), await signed_in(cloud))


def text_of(reply: Reply) -> str:
    """Return the text of the editor, or of the draft on the review page."""
    result = re.search(r"<textarea[^>]*>\n?(.*?)</textarea>", reply.text, re.DOTALL)
    assert result, reply.text
    return html.unescape(result[1])


async def test_the_saved_document_is_shown_in_its_order(rover: Rover) -> None:
    document = {"services": [], "components": [{**SENSOR, "attributes": {"z": 1, "a": [1, 2]}}], "agent": {"ü": "<&>"}}
    await rover.save(document)
    reply = await rover.get()
    assert reply.status == 200
    assert json.loads(text_of(reply)) == document
    assert text_of(reply).index("services") < text_of(reply).index("components")
    assert '"a": [1, 2]' in text_of(reply)
    assert "unknown key" in reply.text


async def test_review_then_save(rover: Rover) -> None:
    await rover.save({"components": [SENSOR]})
    changed = {"components": [{**SENSOR, "attributes": {"password": SECRET}}, {**SENSOR, "name": "b"}]}
    reply = await rover.post("review", changed, 2)
    assert reply.status == 200
    assert "1 added, 1 changed" in reply.text
    assert await rover.saved() == {"components": [SENSOR]}
    shown = reply.text.replace(html.escape(text_of(reply)), "")
    assert SECRET in text_of(reply)
    assert SECRET not in re.sub(r"<textarea.*?</textarea>", "", shown, flags=re.DOTALL)
    reply = await rover.post("save", text_of(reply).replace("\n", "\r\n"), 2)
    assert (reply.status, reply.headers["location"]) == (303, rover.path)
    assert await rover.saved() == changed


async def test_unchanged_and_invalid_documents_are_reported(rover: Rover) -> None:
    await rover.save({"components": [SENSOR]})
    saved = text_of(await rover.get())
    assert "Nothing has changed" in (await rover.post("review", saved, 2)).text
    assert "Only comments" in (await rover.post("review", {"components": [SENSOR]}, 2)).text
    broken = '{\n "components": [\n}'
    reply = await rover.post("save", broken, 2)
    assert reply.status == 400
    assert "line 3" in reply.text
    assert text_of(reply) == broken
    assert (await rover.post("save", "[]", 2)).status == 400
    assert await rover.saved() == {"components": [SENSOR]}


@pytest.mark.parametrize("levels", [33, 400, 5000])
async def test_nesting_that_clients_cannot_read_is_named(rover: Rover, levels: int) -> None:
    deep = '{"a":' * levels + "1" + "}" * levels
    words = "more than 32 levels of objects and lists"
    for action in ("review", "save"):
        reply = await rover.post(action, deep, 1)
        assert (reply.status, words in reply.text) == (400, True)
        assert text_of(reply) == deep
    (finding,) = (await rover.ask("check", text=deep))["findings"]
    assert words in finding["text"]
    assert await rover.saved() == {}


async def test_two_concurrent_edits_lose_nothing(rover: Rover) -> None:
    """The draft has the changes of both; for a conflict it shows both values."""
    motor = {"name": "m", "api": "rdk:component:motor", "model": "fake", "attributes": {"max_rpm": 1}}
    await rover.save({"components": [motor]})
    theirs = {"components": [{**motor, "attributes": {"max_rpm": 2}}, SENSOR]}
    mine = {"components": [{**motor, "attributes": {"max_rpm": 3}}], "debug": True}
    await rover.save(theirs)
    for action in ("review", "save"):
        reply = await rover.post(action, mine, 2)
        assert reply.status == 409
        assert "Someone else has saved" in reply.text
        both = json.loads(text_of(reply))
        assert both == {"components": [{**motor, "attributes": {"max_rpm": 3}}, SENSOR], "debug": True}
        assert "components.m.attributes.max_rpm" in reply.text
        conflict = '<td data-label="Theirs"><code>2</code></td><td data-label="Yours"><code>3</code></td>'
        assert conflict in reply.text
        assert await rover.saved() == theirs
    assert 'name="base" value="3"' in reply.text
    assert (await rover.post("save", both, 3)).status == 303
    assert await rover.saved() == both


async def test_adding_a_resource_without_scripts(rover: Rover) -> None:
    reply = await rover.post("add", {"components": [SENSOR]}, 1, model="rdk:component:motor gpio", resource="left")
    created = json.loads(text_of(reply))["components"][1]
    assert created == {
        "name": "left",
        "api": "rdk:component:motor",
        "model": "gpio",
        "attributes": {"board": "", "pins": {}},
    }
    assert await rover.saved() == {}
    reply = await rover.post("add", {"components": [SENSOR]}, 1, model="rdk:component:motor gpio", resource="heat")
    assert "there is already a resource called" in html.unescape(reply.text).lower()
    assert (await rover.post("add", {}, 1, model="", resource="x")).status == 400


async def test_checks_and_completions_while_typing(rover: Rover) -> None:
    await rover.save({"components": [SENSOR]})
    answer = await rover.ask("check", text='{"components": [\n{"name": "ü", "x": 1}]}')
    assert {(finding["line"], finding["severity"]) for finding in answer["findings"]} == {(2, "error"), (2, "warning")}
    assert "name" in answer["patch"]["findings"]
    assert any("ü" in finding["sentence"] for finding in answer["findings"])
    answer = await rover.ask("complete", text='{"de', cursor=4)
    assert "debug" in [choice["label"] for choice in answer["choices"]]
    assert (answer["start"], answer["end"]) == (1, 4)
    assert "error" in await rover.ask("complete", text=1)
    assert "error" in await rover.ask("check", nothing="")


async def test_the_form_s_schema_is_kept_by_browsers_that_are_signed_in(cloud: MemoryCloud, rover: Rover) -> None:
    page = (await rover.get()).text
    match = re.search(r'data-schema="(/configuration/schema\?v=\w+)"', page)
    assert match is not None
    reply = await rover.get(match[1])
    assert any(model["word"] == "gpio" for model in json.loads(reply.text)["models"])
    assert "immutable" in reply.headers["cache-control"]
    assert (await rover.get("/configuration/schema?v=other")).headers["cache-control"] == "no-store"
    assert (await browser(cloud).send("GET", match[1], HTML)).status == 303


async def test_history_compares_and_reverts(rover: Rover) -> None:
    for number in range(3):
        await rover.save({"components": [{**SENSOR, "attributes": {"token": f"{SECRET}{number}", "n": number}}]})
    reply = await rover.get(f"/machines/{rover.part}/history?from=2&to=4")
    assert reply.status == 200
    assert "From revision 2 to revision 4" in reply.text
    assert SECRET not in reply.text
    assert "changed (hidden)" in reply.text
    assert reply.text.count(">Revert to this<") == 3
    path = f"/machines/{rover.part}/history"
    assert (await post(rover.browser, path, base="4", number="2")).status == 303
    assert (await rover.saved())["components"][0]["attributes"]["n"] == 0
    late = await post(rover.browser, path, base="4", number="3")
    assert late.status == 409
    assert "changed in the meantime" in late.text
    assert (await rover.saved())["components"][0]["attributes"]["n"] == 0
    assert (await post(rover.browser, path, base="5", number="77")).status == 404
    assert (await rover.get(f"{path}?from=x&to=1")).status == 400


async def test_an_operator_reads_but_does_not_change(cloud: MemoryCloud, rover: Rover) -> None:
    await rover.save({"components": [{**SENSOR, "attributes": {"api_key": SECRET}}]})
    authorization = {
        "authorization_type": "role",
        "authorization_id": "organization_operator",
        "resource_type": "organization",
        "resource_id": cloud.first.organization,
        "organization_id": cloud.first.organization,
    }
    key = await cloud.app("create_key", authorizations=[authorization], name="guard")
    browser = await signed_in(cloud, (key["id"], key["key"]))
    guard = Rover(cloud, rover.part, browser)
    reply = await guard.get()
    assert reply.status == 200
    assert "<textarea" not in reply.text
    assert SECRET not in reply.text
    assert (await guard.post("save", {}, 2)).status == 403
    assert (await post(browser, f"/machines/{rover.part}/history", base="2", number="1")).status == 403
    assert (await rover.saved())["components"]


async def test_another_organization_sees_nothing(cloud: MemoryCloud, rover: Rover) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    await cloud.cloud.authenticator.load()
    stranger = Rover(cloud, rover.part, await signed_in(cloud, (other.id, other.key)))
    fragment = await cloud.app("create_fragment", name="f", organization_id=cloud.first.organization)
    for path in (rover.path, f"/machines/{rover.part}/history", f"/fragments/{fragment['id']}"):
        assert (await stranger.get(path)).status == 404
    assert (await stranger.post("save", {}, 1)).status == 404
    assert "error" in await stranger.ask("check", text="{}")
    assert (await stranger.get("/fragments")).text.count(fragment["id"]) == 0


async def test_all_pages_need_a_login(cloud: MemoryCloud, rover: Rover) -> None:
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    fragment = (await cloud.app("create_fragment", name="f", organization_id=cloud.first.organization))["id"]
    free = {"organizations"}
    for name in Editor.rules.keys() - free:
        rule = Editor.rules[name]
        assert rule.of is not None
        subject = {"part": rover.part, "fragment": fragment}[rule.field]
        more: tuple[Any, ...] = {
            "revision": (1,),
            "revisions": (None, 5),
            "fragment_revisions": (None, 5),
            "keep_text": ({}, ""),
            "keep_fragment_text": ({}, ""),
        }.get(name, ())
        await getattr(Editor(cloud.cloud, Author(KEY, cloud.first.id)), name)(subject, *more)
        with pytest.raises(MachineError) as caught:
            await getattr(Editor(cloud.cloud, Author(KEY, other.id)), name)(subject, *more)
        assert caught.value.kind is ErrorKind.NOT_FOUND, name
    ((own, owned),) = await Editor(cloud.cloud, Author(KEY, other.id)).organizations()
    assert (own.id, owned) == (other.organization, True)
    assert await Editor(cloud.cloud, Author("robot-secret", rover.part)).organizations() == []


async def test_fragments_are_created_edited_tagged_and_used(cloud: MemoryCloud, rover: Rover) -> None:
    answer = await post(rover.browser, "/fragments", organization=cloud.first.organization, name="base")
    path = answer.headers["location"]
    again = await post(rover.browser, "/fragments", organization=cloud.first.organization, name="base")
    assert again.status == 400
    document = {"components": [SENSOR, {**SENSOR, "name": {"$variable": {"name": "n", "default": "x"}}}]}
    reply = await rover.post("review", document, 1, path)
    assert "No problems" in reply.text or "Problems" not in reply.text
    assert (await rover.post("save", text_of(reply), 1, path)).status == 303
    assert (await rover.post("tag", {}, 2, path, tag="stable", revision="2")).status == 303
    bad = await rover.post("tag", {}, 2, path, tag="9x", revision="2")
    assert bad.status == 400
    assert "is not a valid tag" in html.unescape(bad.text)
    await rover.save({"fragments": [{"id": path.rpartition("/")[2], "version": "stable"}]})
    shown = await rover.get(path)
    assert "stable" in shown.text
    assert f"/machines/{rover.part}/config" in shown.text
    resolved = await rover.get()
    assert "Configuration that the machine runs, including its fragments" in resolved.text
    assert resolved.text.count("&#34;heat&#34;") == 1
    refused = await rover.post("delete", {}, 2, path)
    assert refused.status == 400
    theirs = {"components": [], "debug": True}
    await cloud.app("update_fragment", id=path.rpartition("/")[2], fragment_config_json=json.dumps(theirs))
    for action in ("review", "save"):
        late = await rover.post(action, {**document, "agent": {}}, 2, path)
        assert late.status == 409
        assert "Someone else has saved" in late.text
    history = await rover.get(f"{path}/history?from=1&to=3")
    assert history.text.count(">Revert to this<") == 2
    assert (await post(rover.browser, f"{path}/history", base="3", number="2")).status == 303
    assert (await rover.post("settings", {}, 4, path, name="ground", visibility="public")).status == 303
    assert "ground" in (await rover.get("/fragments")).text


async def test_the_effective_configuration_is_shown(rover: Rover) -> None:
    store, clock = rover.cloud.cloud.store, rover.cloud.cloud.clock

    async def status() -> str:
        content = re.search(r'<section id="running".*?</section>', (await rover.get()).text, re.DOTALL)
        assert content
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", content[0]))

    async def report(**reported: Any) -> None:
        await store.write(lambda sql: note_seen(sql, rover.part, clock(), reported))

    async def tell(**snapshot: Any) -> None:
        def work(sql: Any) -> None:
            watching.watch(sql, rover.part, clock())
            assert watching.store_snapshot(sql, rover.part, snapshot, clock())

        await store.write(work)

    assert "has not connected yet" in await status()
    await rover.save({"components": [SENSOR]})
    await report(revision="1")
    assert "does not run revision 2 yet; it runs 1" in await status()
    await tell(revision="1", pending="maintenance is not allowed now", resources=[])
    assert "Maintenance is not allowed now" in await status()
    await report(revision="1", rejected="components: must be a list")
    assert "rejected revision 2" in await status()
    assert "must be a list" in await status()
    await report(revision="2")
    assert "The machine runs revision 2." in await status()
    name = "rdk:component:sensor/heat"
    await tell(revision="1", resources=[{"name": name, "state": "unhealthy", "reason": "old news"}])
    assert "old news" not in await status()
    await tell(
        revision="2",
        state="running",
        resources=[
            {"name": name, "state": "unhealthy", "reason": "no such bus"},
            {"name": "rdk:component:sensor/fine", "state": "ready", "reason": ""},
        ],
        problems=[{"path": "components.1", "message": "'name' is missing", "remedy": "add 'name'"}],
    )
    await report(revision="2", unhealthy=1, problems=1)
    result = html.unescape(await status())
    assert "but has 2 problems." in result
    assert "heat unhealthy no such bus" in result
    assert "'name' is missing: add 'name'" in result
    assert "fine" not in result
