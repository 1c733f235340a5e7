"""Databases of an earlier version are migrated: a released step never changes."""

from __future__ import annotations

import hashlib
import sqlite3

import pytest

from cloud.store.migrations import STEPS, migrate, statements

HAD = {
    "core": "b3bd7a69da4857a9",
    "fragments": "d3e4b1a8edff9aeb",
    "registry": "8b12e6e87aa25f31",
    "data": "da26973792df012d",
    "triggers": "40dc9e7851bfaf55",
    "live": "e0dc824136d23ec6",
    "certificates": "1603ae5097a837d9",
    "people": "31f7c8faa5dba791",
    "sessions": "85873bbedf7e0e1e",
    "trash": "44a6c179d886f25a",
    "releases": "a7dffcf81a69b050",
    "requests": "da46805b8654fccf",
    "signalling": "60addb64be01cbff",
    "training": "d120feb8093cb6d0",
    "labelling": "68f5877b4f9ed370",
    "training keys": "8cc9ea819a36f1d9",
    "training notifications": "402ab984d510318b",
    "log times": "fe2ad39aee880d1a",
    "goodbyes": "976a4e79cff5473d",
    "tickets": "3ff50d9eff19b4e2",
    "expiry": "486ffb2df7db8b2d",
    "searches": "e6e29ddf7bd8899a",
    "searches of the registry": "65f5dc32fb8a083c",
    "searches of releases": "ebfbcf32823a96e1",
    "segments": "0dcd36479f4c0c9a",
    "counts of log entries": "29498b7d8d3ddc44",
    "arrangements": "160ea1dc94960491",
    "saved queries": "57dc632cfa148e72",
    "statistics of segments": "670085eaff29531d",
    "release keys of the cloud": "8bf8968e9484829a",
    "imports of releases": "de6b206a5f834711",
    "install codes": "4a0af120466126b9",
    "lists of machines": "e85edf30a3b488d4",
    "jobs of many machines": "c293d128bc99624f",
    "alerts": "249d18cf024c1488",
    "rollouts in stages": "f151e20da613af87",
    "written texts": "4b8d6c772243da72",
    "ends and silences of alerts": "5f74530e7df51544",
}
"""The first 16 digits of the SHA-256 of each step's statements. A change of tables is a new step with a new line."""


def test_migration_steps_are_unchanged() -> None:
    results = [hashlib.sha256("\n".join(statements(step)).encode()).hexdigest()[:16] for step in STEPS]
    assert dict(zip(HAD, results, strict=True)) == HAD


@pytest.mark.parametrize("had", range(len(STEPS)))
def test_missing_tables_are_created(had: int) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for step in STEPS[:had]:
        for statement in statements(step):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {had}")
    migrate(connection)
    whole = sqlite3.connect(":memory:", isolation_level=None)
    migrate(whole)
    query = "SELECT name, sql FROM sqlite_master ORDER BY name"
    assert connection.execute(query).fetchall() == whole.execute(query).fetchall()
    connection.close()
    whole.close()
