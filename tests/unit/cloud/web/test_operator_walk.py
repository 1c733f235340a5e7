"""An operator who submits every form of every page changes nothing that only owners may change."""

from __future__ import annotations

import re

from starlette.routing import Route

from cloud.server.memory import MemoryCloud
from cloud.web.app import application
from tests.unit.cloud.pages import post, signed_in
from tests.unit.cloud.web.test_web_fleet import key_at

ALLOWED = {
    "add_binary_data_to_dataset_by_ids": "labelling is an operator's work",
    "create_dataset": "labelling is an operator's work",
    "add_tags_to_binary_data_by_ids": "labelling is an operator's work",
    "remove_tags_from_binary_data_by_ids": "labelling is an operator's work",
    "set_fleet_view": "a view of the operator's own",
    "mark_part_for_restart": "operators control machines",
}
"""Actions that the audit log may have in an operator's name."""

FIELDS = {
    "name": "renamed",
    "text": '{"components": []}',
    "document": '{"components": []}',
    "configuration": '{"components": []}',
    "role": "owner",
    "email": "somebody@example.com",
    "days": "1",
    "confirm": "yes",
}


async def test_an_operator_cannot_do_what_needs_an_owner(cloud: MemoryCloud, machine: str, part: str) -> None:
    first = cloud.first
    key = await key_at(cloud, "organization", first.organization)
    fragment = await cloud.app("create_fragment", name="shared", organization_id=first.organization, config={})
    subjects = {
        "machine": machine,
        "part": part,
        "fragment": fragment["id"],
        "key": first.id,
        "location": first.location,
        "organization": first.organization,
    }
    person = await signed_in(cloud, key)
    routes = [route for route in application(cloud.cloud, loopback=True)._app.routes if isinstance(route, Route)]
    posts = [
        route.path for route in routes if "POST" in (route.methods or ()) and not route.path.startswith("/invites/")
    ]
    assert len(posts) > 15
    before = await state(cloud)
    for path in posts:
        for action in ("rename", "rotate", "delete", "add-role", "remove-role", "restart", "setup", "parts", "save"):
            for subject in subjects.values():
                filled = re.sub(r"\{action[^}]*\}", action, path)
                filled = re.sub(r"\{[^}]*\}", subject, filled)
                form = {**FIELDS, "place": f"organization/{first.organization}", "organization": first.organization}
                reply = await post(person, filled, **form)
                offline = filled.endswith("/stop-all") and reply.status == 503  # operators may stop machines
                assert reply.status < 500 or offline, f"{filled}: {reply.text}"
                if filled == re.sub(r"\{action[^}]*\}", action, path):
                    break  # the path has no id
            if "{action" not in path:
                break
    assert await state(cloud) == before
    noted = await cloud.cloud.store.read(
        lambda sql: sql.rows("SELECT action, subject FROM audit WHERE author = ?", key[0])
    )
    assert [row for row in noted if row["action"] not in ALLOWED] == []


async def state(cloud: MemoryCloud) -> dict[str, list[object]]:
    """Return what only owners may change."""
    tables = {
        "organizations": "id, name, namespace",
        "locations": "id, name, parent_id",
        "machines": "id, name, location_id",
        "parts": "id, name, main, revision",
        "part_secrets": "id, secret",
        "configurations": "part_id, revision, document",
        "keys": "id, name, digest",
        "grants": "key_id, role, kind, subject",
        "fragments": "id, name",
    }
    return await cloud.cloud.store.read(
        lambda sql: {
            table: [tuple(row.values()) for row in sql.rows(f"SELECT {columns} FROM {table} ORDER BY 1, 2")]
            for table, columns in tables.items()
        }
    )
