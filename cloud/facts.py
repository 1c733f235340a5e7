"""What a machine is told: its configuration, who it is, whose keys it accepts, and what it should trust."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cloud.access import Of, place_of
from cloud.certificates.authorities import PORT, trusted
from cloud.configurations import resolution
from cloud.keys import keys_with_roles
from cloud.machines import part
from cloud.registry.resolution import with_sources
from cloud.sharing import digests_at
from cloud.store.sql import Sql


def roots(sql: Sql, subject: str, now: datetime, *, port: bool) -> dict[str, str]:
    """What a part should trust, as PEM: `machines` of its organization, and with `port` the `cloud` itself.

    The one that signs comes first; "" where there is none yet.
    """
    scopes = {"machines": part(sql, subject).organization_id, **({"cloud": PORT} if port else {})}
    return {whose: "".join(one.pair.certificate for one in trusted(sql, scope, now)) for whose, scope in scopes.items()}


def facts(sql: Sql, subject: str) -> dict[str, Any]:
    """Everything of one part, as JSON; NOT_FOUND.

    `keys` are those with a role at the machine: each id with the digest of its key, so that clients reach the machine
    with the keys of the cloud, also while the cloud is away; so are the secrets of its location. Packages and modules
    of the registry in `document` have a `source`: where the machine gets them (see cloud.registry.resolution).
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
            "location_secrets": [{"secret": one} for one in digests_at(sql, subject)],
        },
        "keys": keys,
        "restart": found.restart,
    }
