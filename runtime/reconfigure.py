"""From a machine document to the resources that should exist: pure, whole, one bad entry never in the way of others.

Each entry becomes one Wanted. An entry that cannot be built is wanted all the same, with its fault: it is a node that
is unhealthy and says why, so that a person finds it where it was configured.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from runtime.resource import Attributes, Resource
from schema.attributes import decode
from schema.directory import Directory as Directory
from schema.directory import NotConfigured, aliases_of
from schema.errors import ConfigError, ConfigErrors, MachineError
from schema.log import WORDS
from schema.machine import BrokenEntry, MachineDocument, ResourceEntry
from schema.names import API, Model, ResourceName
from telemetry.names import of_module
from telemetry.rules import Rules

if TYPE_CHECKING:
    from runtime.modules.link import ModuleLink


class Offers(Protocol):
    """What modules offer; Modules."""

    def offer(self, entry: ResourceEntry) -> ModuleLink | None:
        """The module that offers the model of `entry`."""
        ...

    def not_ready(self) -> Mapping[str, str]:
        """Return why each module that is not ready is not, by the name of its node."""
        ...

    def starting(self) -> list[str]:
        """Nodes of those that may tell soon: they start, and did not fail before."""
        ...


class Elsewhere(Protocol):
    """What other machines have; Remotes."""

    def absent(self, text: str) -> str:
        """Why a resource called `text`, which is not there, may be one of theirs nevertheless; else empty."""
        ...

    def starting(self) -> list[str]:
        """Nodes of those that may tell soon: they were not reached yet, and did not fail."""
        ...


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
    unknown: ConfigError | None = None  # the fault without the modules that may still offer the model


@dataclass(frozen=True, slots=True)
class Plan:
    """All resources of a document by full name, and what a person should be told once."""

    wanted: Mapping[str, Wanted]
    warnings: tuple[ConfigError, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # as of `aliases_of`


def plan(
    document: MachineDocument,
    classes: Classes,
    *,
    modules: Offers | None = None,
    others: Iterable[Wanted] = (),
    remotes: Elsewhere | None = None,
    trusted: bool = True,
    levels: Rules | None = None,
) -> Plan:
    """What should exist, whatever exists now. Never raises for a bad entry. Built-in models come before modules' own.

    `others` are resources without entries, such as those of remotes; entries may depend on them, and `remotes`
    explain names that are missing. Unless the environment is `trusted`, models that run programs of the configuration
    are refused. `levels` are the log levels of the document, which modules apply to their resources themselves.
    """
    entries = document.resources
    levels = levels or Rules()
    wanted = {**{str(one.name): one for one in others}, **_broken(document)}
    names = [*(entry.name for entry in entries), *(one.name for one in wanted.values())]
    directory = Directory(names, remotes.absent if remotes is not None else None)
    warnings: list[ConfigError] = []
    for entry in entries:
        try:
            link = modules.offer(entry) if modules is not None else None
            if link is None or _is_built_in(classes, entry):
                wanted[str(entry.name)] = _want(entry, classes, directory, warnings, trusted)
            else:
                wanted[str(entry.name)] = _want_of_module(entry, link, directory, levels)
        except MachineError as error:
            if isinstance(error, ConfigError):
                soon = remotes.starting() if remotes is not None and isinstance(error, NotConfigured) else ()
                wanted[str(entry.name)] = _faulty(entry.name, entry.path, str(entry.model), error, soon)
            else:
                wanted[str(entry.name)] = _unknown(entry, error, modules)
        except Exception as error:  # a driver's own code: its Config, its requires and uses
            fault = MachineError(f"{entry.model} cannot read its configuration: {error!r}")
            wanted[str(entry.name)] = _faulty(entry.name, entry.path, str(entry.model), fault)
    return Plan(wanted, tuple(warnings), aliases_of(names))


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
    return _wanted(entry, directory, cls, attributes, tuple(attributes.requires()), attributes.uses())


def _is_built_in(classes: Classes, entry: ResourceEntry) -> bool:
    try:
        classes.find(entry.api, entry.model)
    except MachineError:
        return False
    return True


def _want_of_module(entry: ResourceEntry, link: ModuleLink, directory: Directory, levels: Rules) -> Wanted:
    from runtime.apis import base_of
    from runtime.modules.resource import ModuleAttributes, ModuleResource, foreign_class
    from runtime.proxy import proxy_of

    base = base_of(entry.api)
    if base is not None:
        cls = proxy_of(cast("Any", base), ModuleResource)  # a class is hashable whatever its type hint
    elif entry.api in link.apis:
        cls = foreign_class(entry.api)
    else:
        raise ConfigError(
            entry.path,
            f"{entry.api} is an API of the module {link.module.name!r} itself, and what it looks like is not known: "
            f"{link.faults.get(entry.api, 'it names no service for it')}",
            value=str(entry.api),
            remedy="serve gRPC reflection in the module, as the official SDKs do",
        )
    needs = link.needs(entry)
    if needs is None:
        raise ConfigError(entry.path, f"the module {link.module.name!r} was not asked about its attributes yet")
    if needs.error:
        verb = "is asked again about them" if needs.silent else "refuses them"
        raise ConfigError(f"{entry.path}.attributes", f"the module {link.module.name!r} {verb}: {needs.error}")
    level = WORDS[levels.level(f"{of_module(link.module.name)}.{entry.name}")]
    attributes = ModuleAttributes(link=link, entry=entry, level=level)
    wanted = _wanted(entry, directory, cls, attributes, needs.required, needs.optional)
    return replace(wanted, requires=wanted.requires | {link.node}, version=(entry.version, link.node, level))


def _wanted(
    entry: ResourceEntry,
    directory: Directory,
    cls: type[Resource],
    attributes: Attributes,
    required: Sequence[str],
    optional: Iterable[str],
) -> Wanted:
    path = f"{entry.path}.attributes"
    me = str(entry.name)
    requires = {
        *_resolve(directory, entry.depends_on, f"{entry.path}.depends_on", me),
        *_resolve(directory, required, path, me),
    }
    uses = set()
    for text in optional:
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


def _unknown(entry: ResourceEntry, error: MachineError, modules: Offers | None) -> Wanted:
    """Return an entry whose model nothing offers. While modules start, it waits for them."""
    unknown = ConfigError(entry.path, error.message, value=str(entry.model), remedy=error.remedy)
    if modules is None:
        return _faulty(entry.name, entry.path, str(entry.model), unknown)
    fault = blame_modules(unknown, modules.not_ready())
    found = _faulty(entry.name, entry.path, str(entry.model), fault, modules.starting())
    return replace(found, unknown=unknown)


def blame_modules(unknown: ConfigError, not_ready: Mapping[str, str]) -> ConfigError:
    """Return the error of an entry whose model is unknown, naming the modules that may offer it.

    `not_ready` is as of `Offers`. It changes without a new plan: whoever shows the error computes it then.
    """
    if not not_ready:
        return unknown
    modules = ", ".join(f"{node.rpartition('/')[2]} ({reason})" for node, reason in not_ready.items())
    remedy = f"these modules may offer it and are not ready: {modules}"
    return ConfigError(unknown.path, unknown.message, value=unknown.value, remedy=remedy)


def _faulty(name: ResourceName, path: str, model: str, fault: MachineError, waits_for: Iterable[str] = ()) -> Wanted:
    """One that cannot be built; while it `waits_for` what may change that, that is no failure yet."""
    version = ("fault", model, str(fault))
    return Wanted(name=name, path=path, model=model, version=version, requires=frozenset(waits_for), fault=fault)
