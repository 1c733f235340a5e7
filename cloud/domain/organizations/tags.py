"""Tags of machines: the texts in the list `tags` of the metadata of a machine and of its parts.

`machine_tags` is an index of them; changes of such metadata call `index`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from cloud.store.sql import Row, Sql
from cloud.values.limits import MACHINE_TAGS, TAG
from schema import ErrorKind, MachineError

BATCH: Final = 500  # ids in one query
KEY: Final = "tags"


def tags_in(metadata: Mapping[str, Any]) -> frozenset[str]:
    """Return the tags in the metadata of a machine or part."""
    tags = metadata.get(KEY)
    return frozenset(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else frozenset()


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Return tags in order, each once; INVALID for one that is empty, too long or has blanks at its ends."""
    distinct = sorted(set(tags))
    for tag in distinct:
        TAG.check(len(tag), "the tag")
        if not tag or tag != tag.strip() or not tag.isprintable() or "," in tag:
            raise MachineError(
                f"{tag[:40]!r} is not a tag",
                kind=ErrorKind.INVALID,
                remedy="write a word or several, without commas, such as `greenhouse` or `batch 7`",
            )
    return distinct


def index(sql: Sql, machine: str) -> None:
    """Bring the index of a machine's tags up to date, and notify pages if it changed."""
    rows = sql.rows(
        "SELECT metadata FROM machines WHERE id = ? UNION ALL SELECT metadata FROM parts WHERE machine_id = ?",
        machine,
        machine,
    )
    all_tags = frozenset[str]().union(*(tags_in(json.loads(row["metadata"])) for row in rows))
    valid = frozenset(sorted(tag for tag in all_tags if 0 < len(tag) <= TAG.value)[: MACHINE_TAGS.value])
    before = frozenset(tags_of(sql, [machine]).get(machine, ()))
    for tag in sorted(before - valid):
        sql.run("DELETE FROM machine_tags WHERE machine_id = ? AND tag = ?", machine, tag)
    for tag in sorted(valid - before):
        sql.run("INSERT INTO machine_tags (machine_id, tag) VALUES (?, ?)", machine, tag)
    if valid != before:
        sql.notify("fleet", machine)


def tags_of(sql: Sql, machines: Sequence[str]) -> dict[str, list[str]]:
    """Return the tags of machines, in order; machines without tags are left out."""
    by_machine: dict[str, list[str]] = {}
    for start in range(0, len(machines), BATCH):
        batch = machines[start : start + BATCH]
        marks = ", ".join("?" * len(batch))
        query = f"SELECT machine_id, tag FROM machine_tags WHERE machine_id IN ({marks}) ORDER BY machine_id, tag"
        for row in sql.rows(query, *batch):
            by_machine.setdefault(row["machine_id"], []).append(row["tag"])
    return by_machine


def change(sql: Sql, machine: str, add: Collection[str] = (), remove: Collection[str] = ()) -> tuple[list[str], ...]:
    """Add tags to a machine, and remove others from it and its parts; return those added, and those removed.

    EXHAUSTED if the machine would have too many.
    """
    before = frozenset(tags_of(sql, [machine]).get(machine, ()))
    added, removed = sorted(set(add) - before), sorted(set(remove) & before)
    if not added and not removed:
        return [], []
    MACHINE_TAGS.check_count(len(before) + len(added) - len(removed) - 1, "the machine")
    own = sql.row("SELECT id, metadata FROM machines WHERE id = ?", machine)
    assert own is not None
    _write(sql, "machines", own, added, removed)
    for row in sql.rows("SELECT id, metadata FROM parts WHERE machine_id = ?", machine):
        _write(sql, "parts", row, [], removed)
    index(sql, machine)
    return added, removed


def _write(sql: Sql, table: str, row: Row, add: Collection[str], remove: Collection[str]) -> None:
    metadata = json.loads(row["metadata"])
    before = metadata.get(KEY)
    kept = [tag for tag in before if tag not in remove] if isinstance(before, list) else []
    after = [*kept, *add]
    if after == (before if isinstance(before, list) else []):
        return
    metadata[KEY] = after
    if not after:
        del metadata[KEY]
    text = json.dumps(metadata, ensure_ascii=False)
    sql.run(f"UPDATE {table} SET metadata = ? WHERE id = ?", text, row["id"])


def forget(sql: Sql, machine: str) -> None:
    """Delete the index of a machine that is deleted."""
    sql.run("DELETE FROM machine_tags WHERE machine_id = ?", machine)
