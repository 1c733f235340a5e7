"""Work that can be done on many machines at once, and its effect on a configuration. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from cloud.documents.paths import changed, index_of
from cloud.domain.organizations.tags import checked_tags
from cloud.values.limits import MACHINE_TAGS
from schema import MASK, ErrorKind, MachineError, is_secret, masked, shortened, version_form


class WorkKind(StrEnum):
    """Kinds of work."""

    ADD_FRAGMENT = "add_fragment"
    REMOVE_FRAGMENT = "remove_fragment"
    SET_VALUE = "set_value"
    REMOVE_VALUE = "remove_value"
    PIN_VERSION = "pin_version"
    RESTART = "restart"
    ADD_TAGS = "add_tags"
    REMOVE_TAGS = "remove_tags"
    MOVE = "move"


CONFIGURES: Final = frozenset(
    {
        WorkKind.ADD_FRAGMENT,
        WorkKind.REMOVE_FRAGMENT,
        WorkKind.SET_VALUE,
        WorkKind.REMOVE_VALUE,
        WorkKind.PIN_VERSION,
    }
)
"""Kinds that save a configuration."""

LISTS: Final = frozenset({"components", "services", "modules", "remotes", "packages", "jobs", "fragments", "triggers"})
"""Sections that are lists of entries with names."""

MAX_SHOWN: Final = 120
"""Characters of a value in the description of work."""

PROGRAMS: Final = {"machine-server": "machine-server", "machine-agent": "agent"}
"""Programs whose version can be pinned, with their key in `agent.version_control`."""


class Work(Struct, frozen=True, omit_defaults=True):
    """Work on a machine. The arguments that belong to its kind are set."""

    kind: WorkKind
    fragment_id: str = ""
    fragment_version: str = ""  # tag or revision; empty for the newest
    path: str = ""
    value: Any = None
    program: str = ""
    version: str = ""
    tags: tuple[str, ...] = ()
    location_id: str = ""


def checked_work(work: Work) -> Work:
    """Return work whose arguments are complete; INVALID otherwise."""
    kind = work.kind
    if kind in (WorkKind.ADD_FRAGMENT, WorkKind.REMOVE_FRAGMENT) and not work.fragment_id:
        raise _incomplete("a fragment is missing", "give the id of a fragment")
    if kind in (WorkKind.SET_VALUE, WorkKind.REMOVE_VALUE):
        if not work.path:
            raise _incomplete("the path is missing", "give a path such as components.arm.attributes.speed")
        if kind is WorkKind.SET_VALUE and work.value is None:
            raise _incomplete("the value is missing", "give a value, or remove the value at the path")
    if kind is WorkKind.PIN_VERSION:
        if work.program not in PROGRAMS:
            raise _incomplete(f"{work.program[:40]!r} is not a program of machines", f"use {' or '.join(PROGRAMS)}")
        if version_form(work.version) is None:
            raise _incomplete(f"{work.version[:60]!r} is not a version", "use stable, dev, or a version such as 1.2.3")
    if kind in (WorkKind.ADD_TAGS, WorkKind.REMOVE_TAGS):
        if not work.tags:
            raise _incomplete("the tags are missing", "give at least one tag")
        MACHINE_TAGS.check(len(work.tags), "the work")
        checked_tags(work.tags)
    if kind is WorkKind.MOVE and not work.location_id:
        raise _incomplete("the location is missing", "give the id of a location")
    return work


def described(work: Work) -> str:
    """Return the work as a phrase: `set components.arm.attributes.speed to 3`."""
    version = f" {work.fragment_version}" if work.fragment_version else ""
    tags = ", ".join(work.tags)
    return {
        WorkKind.ADD_FRAGMENT: f"apply the fragment {work.fragment_id}{version}",
        WorkKind.REMOVE_FRAGMENT: f"remove the fragment {work.fragment_id}",
        WorkKind.SET_VALUE: f"set {work.path} to {shown_value(work)}",
        WorkKind.REMOVE_VALUE: f"remove {work.path}",
        WorkKind.PIN_VERSION: f"pin {work.program} to {work.version}",
        WorkKind.RESTART: "restart machine-server",
        WorkKind.ADD_TAGS: f"add the tags {tags}" if len(work.tags) > 1 else f"add the tag {tags}",
        WorkKind.REMOVE_TAGS: f"remove the tags {tags}" if len(work.tags) > 1 else f"remove the tag {tags}",
        WorkKind.MOVE: f"move to the location {work.location_id}",
    }[work.kind]


def shown_value(work: Work) -> str:
    """Return the value of the work as JSON, shortened and without secrets."""
    names = work.path.split(".")
    value = masked(work.value, names)
    if value == MASK or any(is_secret(name) for name in names):
        return MASK
    return shortened(json.dumps(value, ensure_ascii=False), MAX_SHOWN)


def changed_document(work: Work, document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a configuration after the work, equal if it has nothing to change. MachineError if it does not fit."""
    after: Mapping[str, Any] = document
    if work.kind is WorkKind.ADD_FRAGMENT:
        after = _with_fragment(document, work.fragment_id, work.fragment_version)
    elif work.kind is WorkKind.REMOVE_FRAGMENT:
        after = _without_fragment(document, work.fragment_id)
    elif work.kind is WorkKind.SET_VALUE:
        _check_entry(document, work.path)
        after = changed(document, work.path, work.value)
    elif work.kind is WorkKind.REMOVE_VALUE:
        after = changed(document, work.path, None) if _has(document, work.path.split(".")) else document
    elif work.kind is WorkKind.PIN_VERSION:
        after = changed(document, f"agent.version_control.{PROGRAMS[work.program]}", work.version)
    return after


def _check_entry(document: Mapping[str, Any], path: str) -> None:
    """Raise MachineError if a path leads into an entry of a list that the configuration does not have."""
    section, _, rest = path.partition(".")
    if section in LISTS and rest and not document.get(section):
        entry = f"{section}.{rest.partition('.')[0]}"
        raise MachineError(
            f"there is no {entry}", kind=ErrorKind.NOT_FOUND, remedy=f"the configuration has no {section}"
        )


def _with_fragment(document: Mapping[str, Any], fragment: str, version: str) -> Mapping[str, Any]:
    entries = _entries(document, "fragments")
    new = {"id": fragment, "version": version} if version else {"id": fragment}
    for index, entry in enumerate(entries):
        if _id_of(entry) == fragment:
            kept = (
                {key: value for key, value in entry.items() if key != "version"} if isinstance(entry, Mapping) else {}
            )
            if (entry.get("version", "") if isinstance(entry, Mapping) else "") == version:
                return document
            return {**document, "fragments": [*entries[:index], {**kept, **new}, *entries[index + 1 :]]}
    return {**document, "fragments": [*entries, new]}


def _without_fragment(document: Mapping[str, Any], fragment: str) -> Mapping[str, Any]:
    entries = _entries(document, "fragments")
    kept = [entry for entry in entries if _id_of(entry) != fragment]
    if len(kept) == len(entries):
        return document
    after = {**document, "fragments": kept}
    if mods := _entries(document, "fragment_mods"):
        after["fragment_mods"] = [
            entry for entry in mods if not isinstance(entry, Mapping) or entry.get("fragment_id") != fragment
        ]
    return {key: value for key, value in after.items() if value or key not in ("fragments", "fragment_mods")}


def _entries(document: Mapping[str, Any], key: str) -> list[Any]:
    entries = document.get(key)
    return list(entries) if isinstance(entries, list) else []


def _id_of(entry: Any) -> Any:
    return entry.get("id") if isinstance(entry, Mapping) else entry


def _has(container: Any, names: Sequence[str]) -> bool:
    """Return whether a path leads to a value."""
    for name in names:
        if isinstance(container, Mapping):
            if name not in container:
                return False
            container = container[name]
        elif isinstance(container, list):
            matches = [
                each for each in container if isinstance(each, Mapping) and name in (each.get("name"), each.get("id"))
            ]
            index = index_of(name)
            if matches:
                container = matches[0]
            elif index is not None and index < len(container):
                container = container[index]
            else:
                return False
        else:
            return False
    return True


def _incomplete(text: str, remedy: str) -> MachineError:
    return MachineError(text, kind=ErrorKind.INVALID, remedy=remedy)
