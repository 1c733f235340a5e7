"""What a machine is told: its configuration, who it is, and whose keys it accepts."""

from __future__ import annotations

from typing import Any

from cloud.access import Of, Role, best, place_of
from cloud.configurations import resolution
from cloud.keys import grants_of
from cloud.machines import part
from cloud.store.sql import Sql
from cloud.tenants import location


def facts(sql: Sql, subject: str) -> dict[str, Any]:
    """Everything of one part, as JSON; NOT_FOUND.

    `keys` are those with a role at the machine: each id with the digest of its key, so that clients reach the machine
    with the keys of the cloud, also while the cloud is away.
    """
    found = part(sql, subject)
    place = place_of(sql, Of.PART, subject)
    keys = {
        row["id"]: row["digest"]
        for row in sql.rows("SELECT id, digest FROM keys WHERE organization_id = ? ORDER BY id", place.organization)
        if best(grants_of(sql, row["id"]), place) >= Role.OPERATOR
    }
    version, merged = resolution(sql, subject)
    return {
        "revision": version,
        "document": merged.document,
        "cloud": {
            "location_id": found.location_id,
            "primary_org_id": location(sql, found.location_id).organization_id,
            "machine_id": found.machine_id,
        },
        "keys": keys,
        "restart": found.restart,
    }
