"""Sub-parts: the other parts of a machine, which its main part uses as remotes, as in the reference.

The cloud adds them to the configuration that it sends to the main part, not to the stored one. The main part may call
them with its own secret, and they accept it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cloud.domain.machines.machines import PartRecord, parts, secrets_of
from cloud.store.sql import Sql
from cloud.values.names import slug
from rpc.access import digest_of
from schema import ConfigError, check_name


def sub_parts(sql: Sql, part: PartRecord) -> list[PartRecord]:
    """Return the sub-parts of a main part, ordered by name; none for another part."""
    return [each for each in parts(sql, part.machine_id) if each.id != part.id] if part.main else []


def main_part(sql: Sql, part: PartRecord) -> Mapping[str, Any]:
    """Return the id and the digests of the secrets of the main part to a sub-part; empty for a main part."""
    main = next((each for each in parts(sql, part.machine_id) if each.main), part)
    if main.id == part.id:
        return {}
    return {"id": main.id, "secrets": [digest_of(secret) for _, secret, _ in secrets_of(sql, main.id)]}


def with_remotes(document: Mapping[str, Any], addresses: Iterable[tuple[str, str]]) -> Mapping[str, Any]:
    """Return a configuration with a remote for each sub-part, given by its name and address. Pure.

    A remote of the configuration with that name takes precedence, and so does an earlier sub-part.
    """
    remotes = document.get("remotes", [])
    if not isinstance(remotes, list):
        return document  # invalid, as the machine reports
    taken = {remote.get("name") for remote in remotes if isinstance(remote, Mapping)}
    added = []
    for name, address in addresses:
        if (remote := remote_name(name)) not in taken:
            taken.add(remote)
            added.append({"name": remote, "address": address})
    return {**document, "remotes": [*remotes, *added]} if added else document


def remote_name(name: str) -> str:
    """Return the name of the remote for a sub-part: its name, in a form for names of resources. Pure."""
    try:
        check_name(name, path="name")
    except ConfigError:
        return slug(name)[:60].strip("-")
    return name
