"""Resolves modules and packages of a configuration to files, for the machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cloud.domain.organizations.tenants import missing
from cloud.domain.registry import files, items
from cloud.domain.registry.items import MODULE, PRIVATE
from cloud.store.sql import Sql
from schema.errors import MachineError


def with_sources(
    sql: Sql, document: Mapping[str, Any], organization: str, platform: str, tags: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return a copy of `document` where packages and registry modules have `source`: a file, or an error.

    An existing `source` in the document is replaced. Malformed entries stay as they are.
    """

    def resolved(named: Any, version: Any, kind: str) -> Mapping[str, Any]:
        try:
            return _source(sql, str(named or ""), str(version or ""), kind, organization, platform, tags)
        except MachineError as error:
            return {"error": str(error)}

    changed: dict[str, Any] = {}
    if isinstance(modules := document.get("modules"), list):
        changed["modules"] = [
            {**one, "source": resolved(one.get("module_id"), one.get("version"), MODULE)}
            if isinstance(one, dict) and one.get("type") == "registry"
            else one
            for one in modules
        ]
    if isinstance(packages := document.get("packages"), list):
        changed["packages"] = [
            {**one, "source": resolved(one.get("package"), one.get("version"), one.get("type") or "ml_model")}
            if isinstance(one, dict)
            else one
            for one in packages
        ]
    return {**document, **changed}


def _source(
    sql: Sql, named: str, version: str, kind: str, organization: str, platform: str, tags: Collection[str]
) -> Mapping[str, Any]:
    found = items.find(sql, named)
    if found.visibility == PRIVATE and found.organization_id != organization:
        raise missing(items.KIND, named)
    if found.type != kind:
        raise MachineError(f"{named} has the type {found.type}, not {kind}")
    best = files.best(files.files(sql, found.id), found, version, platform, tags)
    return {
        "package": found.wire_id,
        "version": best.version,
        "url": best.path,
        "sha256": best.digest,
        "size": best.size,
    }
