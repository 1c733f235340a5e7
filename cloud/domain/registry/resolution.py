"""Resolves modules and packages of a configuration to files, for the machine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from cloud.domain.organizations.tenants import missing
from cloud.domain.registry import files, items
from cloud.domain.registry.items import MODULE, PRIVATE
from cloud.store.sql import Sql
from schema import MachineError


def with_sources(
    sql: Sql, document: Mapping[str, Any], organization: str, platform: str, tags: Collection[str] = ()
) -> Mapping[str, Any]:
    """Return a copy of `document` where packages and registry modules have `source`: a file, or an error.

    An existing `source` in the document is replaced. Malformed entries stay as they are.
    """

    def resolved(name: Any, version: Any, kind: str) -> Mapping[str, Any]:
        try:
            return _source(sql, str(name or ""), str(version or ""), kind, organization, platform, tags)
        except MachineError as error:
            return {"error": str(error)}

    changed: dict[str, Any] = {}
    if isinstance(modules := document.get("modules"), list):
        changed["modules"] = [
            {**entry, "source": resolved(entry.get("module_id"), entry.get("version"), MODULE)}
            if isinstance(entry, dict) and entry.get("type") == "registry"
            else entry
            for entry in modules
        ]
    if isinstance(packages := document.get("packages"), list):
        changed["packages"] = [
            {**entry, "source": resolved(entry.get("package"), entry.get("version"), entry.get("type") or "ml_model")}
            if isinstance(entry, dict)
            else entry
            for entry in packages
        ]
    return {**document, **changed}


def _source(
    sql: Sql, name: str, version: str, kind: str, organization: str, platform: str, tags: Collection[str]
) -> Mapping[str, Any]:
    item = items.find(sql, name)
    if item.visibility == PRIVATE and item.organization_id != organization:
        raise missing(items.KIND, name)
    if item.type != kind:
        raise MachineError(f"{name} has the type {item.type}, not {kind}")
    best = files.best(files.files(sql, item.id), item, version, platform, tags)
    return {
        "package": item.wire_id,
        "version": best.version,
        "url": best.path,
        "sha256": best.digest,
        "size": best.size,
    }
