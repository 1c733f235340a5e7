"""Comments, order and spelling of configurations and fragments are saved with the text, and only owners read them."""

from __future__ import annotations

import json

import pytest

from cloud.domain.organizations.first import create_owner
from cloud.server.memory import MemoryCloud
from cloud.services.configurations.editing import Editor
from cloud.values.author import KEY, Author
from schema.errors import ErrorKind, MachineError
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.web.test_config_page import SENSOR, Rover, part_of, text_of

TEXT = """{
  // the shed, password hunter2hunter2
  "components": [
    {"name": "heat", "api": "rdk:component:sensor", "model": "fake", "attributes": {"a": 1e3, "b": 1.0}} /* spare */
  ],
  "debug" : true
}
"""
DOCUMENT = {"components": [{**SENSOR, "attributes": {"a": 1000.0, "b": 1.0}}], "debug": True}


@pytest.fixture
async def rover(cloud: MemoryCloud) -> Rover:
    return Rover(cloud, await part_of(cloud), await signed_in(cloud))


async def shown(rover: Rover) -> str:
    return text_of(await rover.get())


async def test_comments_are_kept_and_machines_receive_json(rover: Rover) -> None:
    reply = await rover.post("review", TEXT, 1)
    assert "Nothing is saved yet" in reply.text
    assert text_of(reply) == TEXT
    assert (await rover.post("save", TEXT, 1)).status == 303
    assert await rover.saved() == DOCUMENT
    assert await shown(rover) == TEXT


async def test_a_comment_alone_is_saved_without_a_revision(rover: Rover) -> None:
    await rover.post("save", TEXT, 1)
    changed = TEXT.replace("spare", "in use")
    reply = await rover.post("review", changed, 2)
    assert "Only comments" in reply.text
    assert (await rover.post("save", changed, 2)).status == 303
    assert await shown(rover) == changed
    assert "Revision 2" in (await rover.get()).text
    assert "Nothing has changed" in (await rover.post("review", changed, 2)).text


async def test_comments_return_with_a_reverted_revision(rover: Rover) -> None:
    await rover.post("save", TEXT, 1)
    await rover.post("save", {"debug": False}, 2)
    assert await shown(rover) == '{"debug": false}'
    await post(rover.browser, f"/machines/{rover.part}/history", number="2", base="3")
    assert await shown(rover) == TEXT


async def test_changes_of_other_pages_and_users_keep_comments(rover: Rover) -> None:
    await rover.post("save", TEXT, 1)
    device = [{"name": "eye", "api": "rdk:component:camera", "model": "webcam", "attributes": {"video_path": "/dev/v"}}]
    reply = await post(rover.browser, rover.path, action="insert", resources=json.dumps(device))
    inserted = text_of(reply)
    assert inserted.startswith(TEXT[: TEXT.index(" /* spare")])
    assert "/* spare */" in inserted
    assert '"name": "eye"' in inserted

    await rover.save({**DOCUMENT, "log": []})  # by a program
    mine = TEXT.replace("true", "false")
    merged = text_of(await rover.post("save", mine, 2))
    assert merged == mine.replace("false\n", 'false,\n  "log": []\n')


async def test_only_owners_read_and_change_the_text(cloud: MemoryCloud, rover: Rover) -> None:
    await rover.post("save", TEXT, 1)
    authorization = {
        "authorization_type": "role",
        "authorization_id": "organization_operator",
        "resource_type": "organization",
        "resource_id": cloud.first.organization,
        "organization_id": cloud.first.organization,
    }
    key = await cloud.app("create_key", authorizations=[authorization], name="guard")
    page = (await Rover(cloud, rover.part, await signed_in(cloud, (key["id"], key["key"]))).get()).text
    assert "hunter2" not in page
    assert "spare" not in page
    with pytest.raises(MachineError) as caught:
        await Editor(cloud.cloud, Author(KEY, key["id"])).keep_text(rover.part, DOCUMENT, "// mine")
    assert caught.value.kind is ErrorKind.PERMISSION
    other = await cloud.cloud.store.write(lambda sql: create_owner(sql, "Other", cloud.cloud.clock()))
    with pytest.raises(MachineError) as caught:
        await Editor(cloud.cloud, Author(KEY, other.id)).keep_text(rover.part, DOCUMENT, "// mine")
    assert caught.value.kind is ErrorKind.NOT_FOUND
    assert await shown(rover) == TEXT


async def test_a_comment_that_cannot_be_kept_is_refused_before_anything_is_saved(rover: Rover) -> None:
    reply = await rover.post("save", '{"debug": true} // \0', 1)
    assert reply.status == 400
    assert await rover.saved() == {}


async def test_a_deleted_machine_leaves_no_text(cloud: MemoryCloud, rover: Rover) -> None:
    await rover.post("save", TEXT, 1)
    count = "SELECT COUNT(*) AS count FROM written_texts"
    assert (await cloud.cloud.store.read(lambda sql: sql.row(count)))["count"] == 1  # type: ignore[index]
    machine = (await cloud.app("get_robot_part", id=rover.part))["part"]["robot"]
    await cloud.app("delete_robot", id=machine)
    assert (await cloud.cloud.store.read(lambda sql: sql.row(count)))["count"] == 0  # type: ignore[index]


async def test_a_fragment_keeps_its_comments(cloud: MemoryCloud, rover: Rover) -> None:
    reply = await post(rover.browser, "/fragments", name="base", organization=cloud.first.organization)
    path = reply.headers["location"]
    assert (await rover.post("save", TEXT, 1, path=path)).status == 303
    assert text_of(await rover.get(path)) == TEXT
    assert (await post(rover.browser, path, action="delete")).status == 303
    count = "SELECT COUNT(*) AS count FROM written_texts"
    assert (await cloud.cloud.store.read(lambda sql: sql.row(count)))["count"] == 0  # type: ignore[index]
