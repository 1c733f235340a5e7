"""Difference of two machine documents as text that is safe to log: for secrets it says only that they changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from schema.document.machine import MachineDocument
from schema.document.resources import ResourceEntry
from schema.secrets import is_private_path, is_secret_pair, masked

HIDDEN: Final = "changed (hidden)"

_ABSENT: Final = "(none)"
_NAMED: Final = ("components", "services", "modules", "remotes", "packages", "jobs")
_OTHERS: Final = (
    "cloud",
    "network",
    "auth",
    "debug",
    "enable_web_profile",
    "log",
    "maintenance",
    "disable_log_deduplication",
    "tracing",
    "agent",
)


@dataclass(frozen=True, slots=True)
class Change:
    """Difference of an entry or key that both documents have."""

    path: str  # components.left, network
    lines: tuple[str, ...]  # components.left.attributes.max_rpm: 60 -> 90


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference of two documents. An entry that became broken counts as removed.

    Entries are named `section.name`; each is in only one of `added`, `removed` and `changed`.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[Change, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    """Pairs of removed and added entries that are equal except for the name; both are also in `removed` and `added`."""
    revision: tuple[str, str] | None = None
    """Old and new revision, if they differ."""

    def __bool__(self) -> bool:
        """True if anything but the revision differs."""
        return bool(self.added or self.removed or self.changed)

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each difference: `+` added, `-` removed, `~` changed, `>` renamed, `#` revision."""
        return (
            *(
                [f"# revision: {' -> '.join(revision_text or _ABSENT for revision_text in self.revision)}"]
                if self.revision
                else ()
            ),
            *(f"> {old} was renamed to {new.partition('.')[2]}" for old, new in self.renamed),
            *(f"- {path}" for path in self.removed),
            *(f"+ {path}" for path in self.added),
            *(f"~ {line}" for change in self.changed for line in change.lines),
        )

    def __str__(self) -> str:
        return "\n".join(self.lines)


def difference(old: MachineDocument, new: MachineDocument, *, reveal: bool = False) -> Difference:
    """Return the changes from `old` to `new`. Secrets are shown only if `reveal` is true."""
    added: list[str] = []
    removed: list[str] = []
    changed: list[Change] = []
    renamed: list[tuple[str, str]] = []
    for section in _NAMED:
        before, after = _by_name(getattr(old, section)), _by_name(getattr(new, section))
        old_names = [name for name in before if name not in after]
        new_names = [name for name in after if name not in before]
        removed += [f"{section}.{name}" for name in old_names]
        added += [f"{section}.{name}" for name in new_names]
        renamed += _renames(section, {n: before[n] for n in old_names}, {n: after[n] for n in new_names})
        common = [name for name in before if name in after]
        changed += [_change((section, name), before[name], after[name], reveal) for name in common]
    _keyed("triggers", "name", old.triggers, new.triggers, (added, removed, changed), reveal)
    changed += [_change((key,), _plain(getattr(old, key)), _plain(getattr(new, key)), reveal) for key in _OTHERS]
    revision = None if old.revision == new.revision else (old.revision, new.revision)
    differing = tuple(change for change in changed if change.lines)
    return Difference(tuple(added), tuple(removed), differing, tuple(renamed), revision)


def fragments_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Difference:
    """Return the differences of fragments and fragment modifications in two cloud documents, by fragment id."""
    added: list[str] = []
    removed: list[str] = []
    changed: list[Change] = []
    for section, key in (("fragments", "id"), ("fragment_mods", "fragment_id")):
        _keyed(section, key, old.get(section), new.get(section), (added, removed, changed), reveal=False)
    return Difference(tuple(added), tuple(removed), tuple(change for change in changed if change.lines))


def difference_lines(old: Any, new: Any) -> tuple[str, ...]:
    """Return the differences of two JSON values, a line for each path; for documents that cannot be decoded."""
    return tuple(f"~ {'.'.join(path)}: {text}" for path, text in _compare((), old, new, reveal=False))


def _keyed(
    section: str, key: str, old: Any, new: Any, result: tuple[list[str], list[str], list[Change]], reveal: bool
) -> None:
    """Compare free-form entries, which are identified by their value of `key`, or by their index without one."""
    added, removed, changed = result
    before, after = _by_key(old, key), _by_key(new, key)
    removed += [f"{section}.{name}" for name in before if name not in after]
    added += [f"{section}.{name}{_version(after[name])}" for name in after if name not in before]
    changed += [_change((section, name), before[name], after[name], reveal) for name in before if name in after]


def _by_key(entries: Any, key: str) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for index, entry in enumerate(entries if isinstance(entries, (list, tuple)) else ()):
        content = {key: entry} if isinstance(entry, str) else entry
        name = masked(content.get(key)) if isinstance(content, Mapping) else None
        by_name[name if isinstance(name, str) and name and name not in by_name else str(index)] = content
    return by_name


def _version(entry: Any) -> str:
    version = entry.get("version") if isinstance(entry, Mapping) else None
    return f" (version {version})" if isinstance(version, (str, int)) and str(version).isprintable() else ""


def _by_name(entries: tuple[Any, ...]) -> dict[str, Any]:
    """Return content by name. Resources of several APIs with the same short name have their full names."""
    result: dict[str, Any] = {}
    shorts = [entry.name.name for entry in entries if isinstance(entry, ResourceEntry)]
    for entry in entries:
        if isinstance(entry, ResourceEntry):
            name = entry.name.name if shorts.count(entry.name.name) == 1 else str(entry.name)
            result[name] = _resource(entry)
        else:
            content = _plain(entry)
            result[content.pop("name")] = content
    return result


def _resource(entry: ResourceEntry) -> dict[str, Any]:
    return {
        "api": str(entry.api),
        "model": str(entry.model),
        "attributes": dict(entry.attributes),
        "depends_on": list(entry.depends_on),
        "frame": _plain(entry.frame),
        "log_configuration": _plain(entry.log_configuration),
        "service_configs": _plain(entry.service_configs),
    }


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


def _renames(section: str, removed: dict[str, Any], added: dict[str, Any]) -> Iterator[tuple[str, str]]:
    unmatched = dict(added)
    for name, content in removed.items():
        match = next((other for other, other_content in unmatched.items() if other_content == content), None)
        if match is not None:
            del unmatched[match]
            yield f"{section}.{name}", f"{section}.{match}"


def _change(path: tuple[str, ...], old: Any, new: Any, reveal: bool) -> Change:
    compared = _compare(path, old, new, reveal)
    return Change(".".join(path), tuple(f"{'.'.join(where)}: {text}" for where, text in compared))


def _compare(path: tuple[str, ...], old: Any, new: Any, reveal: bool) -> Iterator[tuple[tuple[str, ...], str]]:
    if _same(old, new):
        return
    old_parts, new_parts = _parts(old), _parts(new)
    if old_parts is not None and new_parts is not None and (old_parts or new_parts):
        pair = is_secret_pair(old_parts) or is_secret_pair(new_parts)
        for key in (*old_parts, *(key for key in new_parts if key not in old_parts)):
            before, after = old_parts.get(key, _MISSING), new_parts.get(key, _MISSING)
            if pair and key == "value" and not reveal:
                if not _same(before, after):
                    yield (*path, key), HIDDEN
            else:
                yield from _compare((*path, key), before, after, reveal)
    else:
        yield path, _text(path, old, new, reveal)


class _Missing:
    """Marker for an absent key, which differs from null."""


_MISSING: Final = _Missing()


def _same(old: Any, new: Any) -> bool:
    """Compare JSON values; unlike in Python, true does not equal 1."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_same(old[key], new[key]) for key in old)
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return len(old) == len(new) and all(map(_same, old, new))
    return isinstance(old, bool) == isinstance(new, bool) and bool(old == new)


def _parts(value: Any) -> Mapping[str, Any] | None:
    """Return the members of an object or list by key; None for other values."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, (list, tuple)):
        return {str(index): item for index, item in enumerate(value)}
    return {} if value is _MISSING else None


def _text(path: tuple[str, ...], old: Any, new: Any, reveal: bool) -> str:
    if reveal:
        return f"{_json(old)} -> {_json(new)}"
    if is_private_path(path):
        return HIDDEN
    before, after = _json(masked(old, path)), _json(masked(new, path))
    return HIDDEN if before == after else f"{before} -> {after}"


def _json(value: Any) -> str:
    if value is _MISSING:
        return _ABSENT
    return msgspec.json.encode(value).decode()
