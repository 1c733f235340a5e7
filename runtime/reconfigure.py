"""From a machine document to the resources that should exist: pure, whole, one bad entry never in the way of others.

Each entry becomes one Wanted. An entry that cannot be built is wanted all the same, with its fault: it is a node that
is unhealthy and says why, so that a person finds it where it was configured.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime.resource import Attributes, Resource
from schema.attributes import decode
from schema.errors import ConfigError, ConfigErrors, MachineError
from schema.machine import BrokenEntry, MachineDocument, ResourceEntry
from schema.names import API, Model, ResourceName
from schema.report import did_you_mean


class Classes(Protocol):
    """Where classes are found; a Registry."""

    def find(self, api: API, model: Model) -> type[Resource]:
        """The class for the pair; raises MachineError if there is none or it cannot be loaded."""
        ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """One resource that the document asks for; `fault` says why it cannot be built as it stands."""

    name: ResourceName
    path: str  # where its entry stands: components.3
    model: str
    version: Hashable  # everything that matters to the driver: another version is another driver
    requires: frozenset[str] = frozenset()  # full names
    uses: frozenset[str] = frozenset()
    cls: type[Resource] | None = None
    attributes: Attributes | None = None
    fault: MachineError | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All resources of a document by full name, and what a person should be told once."""

    wanted: Mapping[str, Wanted]
    warnings: tuple[ConfigError, ...] = ()


class Directory:
    """The names of a document: which full names a person may mean by a simple one."""

    def __init__(self, names: Iterable[ResourceName]) -> None:
        self._full = {str(name): name for name in names}
        self._short: dict[str, list[str]] = {}
        for full, name in self._full.items():
            self._short.setdefault(name.short, []).append(full)

    def resolve(self, text: str, path: str) -> str:
        """The full name meant by `text`, simple or full; raises ConfigError at `path` if none or several are."""
        if "/" in text:
            full = str(ResourceName.parse(text, path=path))
            if full not in self._full:
                raise ConfigError(path, f"no resource {text!r} is configured", value=text, remedy=self._near(text))
            return full
        candidates = self._short.get(text, [])
        if not candidates:
            raise ConfigError(path, f"no resource {text!r} is configured", value=text, remedy=self._near(text))
        if len(candidates) > 1:
            raise ConfigError(
                path, f"{text!r} may be {' or '.join(sorted(candidates))}", value=text, remedy="write the full name"
            )
        return candidates[0]

    def of_api(self, api: str) -> list[str]:
        """Full names of all resources of an API."""
        return [full for full, name in self._full.items() if str(name.api) == api]

    def _near(self, text: str) -> str:
        return did_you_mean(text, self._full if "/" in text else self._short) or "configure it or correct the name"


def plan(document: MachineDocument, classes: Classes, *, trusted: bool = True) -> Plan:
    """What should exist, whatever exists now. Never raises for a bad entry.

    Unless the environment is `trusted`, models that run programs of the configuration are refused.
    """
    entries = document.resources
    broken = _broken(document)
    directory = Directory([*(entry.name for entry in entries), *(wanted.name for wanted in broken.values())])
    warnings: list[ConfigError] = []
    wanted = dict(broken)
    for entry in entries:
        try:
            wanted[str(entry.name)] = _want(entry, classes, directory, warnings, trusted)
        except MachineError as error:
            fault = error if isinstance(error, ConfigError) else _blame_modules(error, entry, document)
            wanted[str(entry.name)] = _faulty(entry.name, entry.path, str(entry.model), fault)
        except Exception as error:  # a driver's own code: its Config, its requires and uses
            fault = MachineError(f"{entry.model} cannot read its configuration: {error!r}")
            wanted[str(entry.name)] = _faulty(entry.name, entry.path, str(entry.model), fault)
    return Plan(wanted, tuple(warnings))


def _broken(document: MachineDocument) -> dict[str, Wanted]:
    """Entries with mistakes whose name can be read; those that share a name become one."""
    found: dict[ResourceName, list[BrokenEntry]] = {}
    for entry in document.broken:
        if entry.resource is not None:
            found.setdefault(entry.resource, []).append(entry)
    return {
        str(name): _faulty(
            name, entries[0].path, "", ConfigErrors([one for entry in entries for one in entry.problems])
        )
        for name, entries in found.items()
    }


def _want(
    entry: ResourceEntry, classes: Classes, directory: Directory, warnings: list[ConfigError], trusted: bool
) -> Wanted:
    cls = classes.find(entry.name.api, entry.model)
    if entry.name.api != cls.API:
        raise ConfigError(entry.path, f"{entry.model} implements {cls.API}, not {entry.name.api}")
    if cls.NEEDS_TRUST and not trusted:
        raise ConfigError(
            entry.path,
            f"{entry.model} runs programs of the configuration, which -untrusted-env refuses",
            value=str(entry.model),
            remedy="start machine-server without -untrusted-env, or remove the resource",
        )
    path = f"{entry.path}.attributes"
    attributes, found = decode(cls.Config, entry.attributes, path=path)
    warnings.extend(found)
    me = str(entry.name)
    requires = {
        *_resolve(directory, entry.depends_on, f"{entry.path}.depends_on", me),
        *_resolve(directory, tuple(attributes.requires()), path, me),
    }
    uses = set()
    for text in attributes.uses():
        if text.endswith("/*"):
            uses.update(directory.of_api(text.removesuffix("/*")))
            continue
        try:
            uses.add(directory.resolve(text, path))
        except ConfigError:
            continue  # used if present, and it is not; a document that adds it is planned anew
    return Wanted(
        name=entry.name,
        path=entry.path,
        model=str(entry.model),
        version=entry.version,
        requires=frozenset(requires),
        uses=frozenset(uses - requires - {me}),
        cls=cls,
        attributes=attributes,
    )


def _resolve(directory: Directory, names: Sequence[str], path: str, me: str) -> Iterable[str]:
    for index, text in enumerate(names):
        where = f"{path}.{index}" if path.endswith("depends_on") else path
        full = directory.resolve(text, where)
        if full == me:
            raise ConfigError(where, f"{me} depends on itself", value=text, remedy="remove the dependency")
        yield full


def _blame_modules(error: MachineError, entry: ResourceEntry, document: MachineDocument) -> MachineError:
    remedy = error.remedy
    if document.modules:
        remedy = f"{remedy}; modules are configured but this version does not run modules yet".lstrip("; ")
    return ConfigError(entry.path, error.message, value=str(entry.model), remedy=remedy)


def _faulty(name: ResourceName, path: str, model: str, fault: MachineError) -> Wanted:
    return Wanted(name=name, path=path, model=model, version=("fault", model, str(fault)), fault=fault)
