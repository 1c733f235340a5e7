"""Data sent to a machine: its configuration, identity, accepted keys and trusted authorities."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from cloud.domain.certificates.authorities import PORT, trusted
from cloud.domain.configurations.configurations import resolution
from cloud.domain.machines.machines import PartRecord, part
from cloud.domain.machines.subparts import main_part, sub_parts, with_remotes
from cloud.domain.organizations.keys import keys_with_roles, operators_of
from cloud.domain.organizations.sharing import digests_at
from cloud.domain.permissions.access import ObjectKind, place_of
from cloud.domain.registry.resolution import with_sources
from cloud.store.sql import Sql


def roots(sql: Sql, subject: str, now: datetime, *, port: bool) -> dict[str, str]:
    """Return trusted roots (PEM) of a part: `machines` of its organization, and with `port` those of the `cloud`
    itself.

    The signing root comes first; "" if there is none yet.
    """
    scopes = {"machines": part(sql, subject).organization_id, **({"cloud": PORT} if port else {})}
    return {
        owner: "".join(root.pair.certificate for root in trusted(sql, scope, now)) for owner, scope in scopes.items()
    }


def facts(sql: Sql, subject: str, address: Callable[[PartRecord], str] | None = None) -> dict[str, Any]:
    """Return all data of a part as JSON; NOT_FOUND if it does not exist.

    For a main part, `document` has a remote for each sub-part, at its `address`. For a sub-part, `main_part` has the
    secrets with which the main part may call it.

    `keys` maps the ids of keys with a role at the machine to digests, so that the machine accepts them even if the
    cloud is unavailable; the same holds for the secrets of its location. `operators` are those of the keys that may
    only view and control the machine. Packages and modules of the registry in
    `document` have a `source`: where the machine downloads them (see cloud.domain.registry.resolution).
    """
    record = part(sql, subject)
    place = place_of(sql, ObjectKind.PART, subject)
    keys = keys_with_roles(sql, place.within)
    version, merged = resolution(sql, record)
    platform, tags = str(record.reported.get("platform", "")), record.reported.get("platform_tags") or ()
    remotes = [(each.name, address(each)) for each in sub_parts(sql, record)] if address is not None else []
    document = with_remotes(merged.document, remotes)
    return {
        "revision": version,
        "document": with_sources(sql, document, place.organization, platform, tags),
        "cloud": {
            "location_id": record.location_id,
            "primary_org_id": record.organization_id,
            "machine_id": record.machine_id,
            "machine_name": record.machine if record.main else f"{record.machine} / {record.name}",
            "location_secrets": [{"secret": digest} for digest in digests_at(sql, subject)],
            **({"main_part": main} if (main := main_part(sql, record)) else {}),
        },
        "keys": keys,
        "operators": [key for key in operators_of(sql, place.within) if key in keys],
        "restart": record.restart,
    }
