"""What a machine is told: its configuration, who it is, and whose keys it accepts."""

from __future__ import annotations

from typing import Any

from cloud.access import Of, place_of
from cloud.configurations import resolution
from cloud.keys import keys_with_roles
from cloud.machines import part
from cloud.registry.resolution import with_sources
from cloud.store.sql import Sql


def facts(sql: Sql, subject: str) -> dict[str, Any]:
    """Everything of one part, as JSON; NOT_FOUND.

    `keys` are those with a role at the machine: each id with the digest of its key, so that clients reach the machine
    with the keys of the cloud, also while the cloud is away. Packages and modules of the registry in `document` have a
    `source`: where the machine gets them (see cloud.registry.resolution).
    """
    found = part(sql, subject)
    place = place_of(sql, Of.PART, subject)
    keys = keys_with_roles(sql, place.within)
    version, merged = resolution(sql, found)
    platform, tags = str(found.reported.get("platform", "")), found.reported.get("platform_tags") or ()
    return {
        "revision": version,
        "document": with_sources(sql, merged.document, place.organization, platform, tags),
        "cloud": {
            "location_id": found.location_id,
            "primary_org_id": found.organization_id,
            "machine_id": found.machine_id,
        },
        "keys": keys,
        "restart": found.restart,
    }
