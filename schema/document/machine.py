"""Decoder for the machine document. An error in one entry does not affect the others.

`decode_document` and `decode_document_value` return the usable part of the document, with all problems and warnings.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from schema.decoding.conversion import conform, wrong_type
from schema.decoding.report import DecodingReport, detached, join
from schema.decoding.syntax import parse_json, repeated_keys
from schema.document.auth import Auth
from schema.document.cloud import Cloud
from schema.document.jobs import ScheduledJob
from schema.document.log import LogRule
from schema.document.maintenance import Maintenance
from schema.document.modules import Module
from schema.document.network import Network
from schema.document.packages import Package
from schema.document.remotes import Remote
from schema.document.resources import (
    RESOURCE_TYPES,
    ResourceEntry,
    ResourceSection,
    ServiceConfig,
    decode_resource,
    readable_name,
)
from schema.document.tracing import Tracing
from schema.errors import ConfigError
from schema.names import Model, ResourceName

__all__ = [
    "BrokenEntry",
    "Decoded",
    "MachineDocument",
    "ResourceEntry",
    "ServiceConfig",
    "decode_document",
    "decode_document_value",
    "default_services",
]

Section = Literal["components", "services", "modules", "remotes", "packages", "jobs", "log"]

DEFAULT_SERVICES: Final = ("rdk:service:motion/builtin",)
"""Services that every machine has unless its document configures a service with the same name."""


@dataclass(frozen=True, slots=True)
class BrokenEntry:
    """Entry that cannot be used, with its problems."""

    section: Section
    path: str  # components.3
    name: str  # "" if unreadable
    problems: tuple[ConfigError, ...]  # at least one problem
    resource: ResourceName | None = None  # full name of a component or service, if readable


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineDocument:
    """Configuration of a machine. Entries with errors are omitted from their sections and listed in `broken`."""

    cloud: Cloud | None = None
    """Identity in the cloud; absent for a machine that is configured only by its file."""
    modules: tuple[Module, ...] = ()
    """Programs that provide additional models."""
    remotes: tuple[Remote, ...] = ()
    """Other machines whose resources this one uses."""
    components: tuple[ResourceEntry, ...] = ()
    """Hardware-facing resources."""
    services: tuple[ResourceEntry, ...] = ()
    """Software-facing resources."""
    packages: tuple[Package, ...] = ()
    """Files that the cloud provides."""
    network: Network = field(default_factory=Network)
    """Addresses and ports at which the machine can be reached."""
    auth: Auth = field(default_factory=Auth)
    """Authentication of clients."""
    debug: bool = False
    """Log everything, regardless of other settings."""
    enable_web_profile: bool = False
    """Serve profiles of the running process."""
    log: tuple[LogRule, ...] = ()
    """Levels by pattern; the last match applies."""
    revision: str = ""
    """Version of the document; set by the cloud."""
    maintenance: Maintenance | None = None
    """Times at which the machine may be reconfigured or restarted; absent means always."""
    disable_log_deduplication: bool = False
    """Print every message, even if it is repeated."""
    jobs: tuple[ScheduledJob, ...] = ()
    """Scheduled calls of resource methods."""
    tracing: Tracing = field(default_factory=Tracing)
    """Recording of spans of operations."""
    agent: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Settings of the agent; not read by the server."""
    triggers: tuple[Any, ...] = field(default=(), repr=False)
    """Triggers of the cloud; not read by the server."""
    broken: tuple[BrokenEntry, ...] = ()
    """Entries that cannot be used."""

    __hash__ = None  # type: ignore[assignment]

    @property
    def resources(self) -> tuple[ResourceEntry, ...]:
        """Components and services, in the configured order."""
        return self.components + self.services

    def places(self, section: Section) -> tuple[str, ...]:
        """Return the path of each usable entry of a section, such as `modules.3`."""
        broken = {entry.path for entry in self.broken}
        free = (path for path in (join(section, index) for index in itertools.count()) if path not in broken)
        return tuple(itertools.islice(free, len(getattr(self, section))))


@dataclass(frozen=True, slots=True)
class Decoded:
    """Result of `decode_document`."""

    document: MachineDocument | None
    """Usable document. None if the text is not JSON, a section has the wrong type, or `cloud`, `network` or `auth` has
    an error. Then keep the current document; without one, do not start serving."""
    problems: tuple[ConfigError, ...] = ()
    """All errors, in the order of the sections."""
    warnings: tuple[ConfigError, ...] = ()
    """Probable mistakes with a defined meaning, such as unknown keys."""
    readable: MachineDocument | None = field(default=None, compare=False)
    """Readable part of the document, even if `document` is None; only for finding errors. None if it is not JSON."""


_ENTRIES: Final[Mapping[Section, type[Any]]] = {
    "modules": Module,
    "remotes": Remote,
    "packages": Package,
    "jobs": ScheduledJob,
    "log": LogRule,
}
_OBJECTS: Final[Mapping[str, type[Any]]] = {
    "cloud": Cloud,
    "network": Network,
    "auth": Auth,
    "maintenance": Maintenance,
    "tracing": Tracing,
}
_VALUES: Final[Mapping[str, type[Any]]] = {
    "debug": bool,
    "enable_web_profile": bool,
    "disable_log_deduplication": bool,
    "revision": str,
    "agent": dict[str, Any],
    "triggers": tuple[Any, ...],
}
_VITAL: Final = frozenset({"cloud", "network", "auth"})  # replacing an error with a default could open the machine
CLOUD_KEYS: Final = ("fragments", "fragment_mods")
"""Keys that a cloud removes before it sends the document to the machine."""
_FRAGMENTS: Final = "keep the configuration in a cloud, or write the content of the fragments here"
KEYS: Final = (*_OBJECTS, *_ENTRIES, *RESOURCE_TYPES, *_VALUES, "processes")
"""All top-level keys of the document."""


def decode_document(data: bytes) -> Decoded:
    """Decode a machine document from JSON text. Never raises; errors are in the result, each with path and reason."""
    try:
        raw = parse_json(data)
    except ConfigError as error:
        return Decoded(None, (detached(error),))
    decoded = decode_document_value(raw)
    remedy = "remove all but one: only the last is used"
    repeated = [ConfigError(path, "this key occurs more than once", remedy=remedy) for path in repeated_keys(data)]
    # Choosing one of two access rules would be a guess.
    vital = tuple(finding for finding in repeated if finding.path.partition(".")[0] in _VITAL)
    warnings = (*(finding for finding in repeated if finding not in vital), *decoded.warnings)
    return Decoded(None if vital else decoded.document, (*vital, *decoded.problems), warnings, decoded.readable)


def decode_document_value(raw: Any) -> Decoded:
    """Decode a machine document from a parsed JSON value. See `decode_document`."""
    report = DecodingReport()
    if not isinstance(raw, Mapping):
        wrong_type(raw, "an object", "", report)
        return Decoded(None, tuple(report.problems))
    for key in raw.keys() - set(KEYS):
        if key in CLOUD_KEYS:
            report.warn(key, "only a cloud reads this key", remedy=_FRAGMENTS)
        else:
            report.unknown_key("", key, (*KEYS, *CLOUD_KEYS), value=raw[key])
    if raw.get("processes"):
        report.warn("processes", "processes are not run", remedy="create a module or a systemd unit for each")

    parts: dict[str, Any] = {}
    usable = True
    for key, kind in (*_OBJECTS.items(), *_VALUES.items()):
        if raw.get(key) is not None:
            value = conform(kind, raw[key], key, report)
            if value is not None:
                parts[key] = value
            elif key in _VITAL:
                usable = False

    broken: list[BrokenEntry] = []
    for section in (*_ENTRIES, *RESOURCE_TYPES):
        items = raw.get(section)
        if items is None:
            continue
        if not isinstance(items, (list, tuple)):
            wrong_type(items, "a list", section, report)
            usable = False
            continue
        parts[section] = _section(cast(Section, section), items, report, broken)
    document = MachineDocument(**parts, broken=tuple(broken))
    return Decoded(document if usable else None, tuple(report.problems), tuple(report.warnings), document)


def _section(
    section: Section, items: Iterable[Any], report: DecodingReport, broken: list[BrokenEntry]
) -> tuple[Any, ...]:
    entries: dict[str, Any] = {}
    for index, item in enumerate(items):
        path = join(section, index)
        before = len(report.problems)
        entry = _entry(section, item, path, report)
        if entry is None:
            broken.append(_broken(section, path, item, report.problems[before:]))
        else:
            entries[path] = (item, entry)
    for path, problem in _duplicates(section, {path: entry for path, (_, entry) in entries.items()}).items():
        report.problems.append(problem)
        broken.append(_broken(section, path, entries.pop(path)[0], [problem]))
    return tuple(entry for _, entry in entries.values())


def _entry(section: Section, item: Any, path: str, report: DecodingReport) -> Any:
    if section in RESOURCE_TYPES:
        return decode_resource(item, cast(ResourceSection, section), path, report)
    return conform(_ENTRIES[section], item, path, report)


def _broken(section: Section, path: str, item: Any, problems: Iterable[ConfigError]) -> BrokenEntry:
    resource = readable_name(item, cast(ResourceSection, section)) if section in RESOURCE_TYPES else None
    name = item.get("name") if isinstance(item, Mapping) else None
    text = resource.name if resource else name if isinstance(name, str) else ""
    return BrokenEntry(section, path, text, tuple(problems), resource)


def _duplicates(section: Section, entries: Mapping[str, Any]) -> dict[str, ConfigError]:
    """Return a problem for every entry that shares its name or program with another; all of them are unusable."""
    problems: dict[str, ConfigError] = {}
    for kind, key in (("name", "name"), ("program", "executable_path")):
        owners = defaultdict(list)
        for path, entry in entries.items():
            if value := getattr(entry, key, ""):
                owners[str(value)].append(path)
        for value, paths in owners.items():
            for path in paths if len(paths) > 1 else ():
                others = ", ".join(other for other in paths if other != path)
                problems.setdefault(
                    path,
                    ConfigError(
                        join(path, key),
                        f"{value!r} is also the {kind} of {others}",
                        value=value,
                        remedy="rename or remove all but one; none of them is used until then",
                    ),
                )
    return problems


def default_services(document: MachineDocument) -> tuple[ResourceEntry, ...]:
    """Return entries for the default services that the document does not configure."""
    taken = {entry.name for entry in document.services} | {entry.resource for entry in document.broken}
    names = [ResourceName.parse(text) for text in DEFAULT_SERVICES]
    return tuple(ResourceEntry(name, Model.parse(name.name), path="default") for name in names if name not in taken)
