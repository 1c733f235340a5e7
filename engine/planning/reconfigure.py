"""Plans the resources that should exist for a machine document: pure, complete, and tolerant of bad entries.

Each entry becomes a Wanted. So does an entry that cannot be built, together with its fault: its node is unhealthy and
shows the reason, so that people find the error at the resource that they configured.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from engine.resource import Attributes, Resource
from schema import (
    API,
    ConfigError,
    ConfigErrors,
    MachineError,
    Model,
    NotConfigured,
    ResourceName,
    aliases_of,
    decode_attributes,
)
from schema import Directory as Directory
from schema.document import BrokenEntry, MachineDocument, ResourceEntry
from telemetry.logs import Rules


class ModuleOffers(Protocol):
    """The models that modules offer; implemented by Modules."""

    def offers(self, entry: ResourceEntry) -> bool:
        """Say whether a module offers the model of `entry`."""
        ...

    def plan_resource(self, entry: ResourceEntry, directory: Directory, levels: Rules) -> PlannedResource:
        """Return the resource that a module offers for `entry`; raises ConfigError."""
        ...

    def not_ready(self) -> Mapping[str, str]:
        """Return the modules that are not ready: the reason, by name of the node."""
        ...

    def starting(self) -> list[str]:
        """Return the nodes of modules that are starting and have not failed before."""
        ...


class RemoteResources(Protocol):
    """The resources of other machines; implemented by Remotes."""

    def absent(self, text: str) -> str:
        """Return why the missing resource `text` may belong to a remote, or an empty string."""
        ...

    def starting(self) -> list[str]:
        """Return the nodes of remotes that have not been reached yet and have not failed."""
        ...


class Classes(Protocol):
    """A source of resource classes; implemented by Registry."""

    def find(self, api: API, model: Model) -> type[Resource]:
        """Return the class for a model of an API; raises MachineError if it is unknown or cannot be loaded."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """A resource in the document; `fault` is set if it cannot be built."""

    name: ResourceName
    path: str  # of its entry: components.3
    model: str
    version: Hashable  # all that the driver depends on; if it changes, the driver is replaced
    requires: frozenset[str] = frozenset()  # full names
    uses: frozenset[str] = frozenset()
    cls: type[Resource] | None = None
    attributes: Attributes | None = None
    fault: MachineError | None = None
    unknown: ConfigError | None = None  # the fault without the names of modules that may still offer the model


@dataclass(frozen=True, slots=True)
class ResourcePlan:
    """All resources of a document by full name, and warnings to report once."""

    resources: Mapping[str, PlannedResource]
    warnings: tuple[ConfigError, ...] = ()
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # see `aliases_of`


def plan(
    document: MachineDocument,
    classes: Classes,
    *,
    modules: ModuleOffers | None = None,
    others: Iterable[PlannedResource] = (),
    remotes: RemoteResources | None = None,
    trusted: bool = True,
    levels: Rules | None = None,
) -> ResourcePlan:
    """Return the resources that should exist; never raises for a bad entry.

    Built-in models take precedence over those of modules. `others` are resources without entries, such as those of
    remotes; entries may depend on them. `remotes` explains missing names. Unless the environment is `trusted`, models
    that run programs named in the configuration are rejected. `levels` are the log levels of the document, which
    modules apply to their resources themselves.
    """
    entries = document.resources
    levels = levels or Rules()
    planned = {**{str(resource.name): resource for resource in others}, **_broken(document)}
    names = [*(entry.name for entry in entries), *(resource.name for resource in planned.values())]
    directory = Directory(names, remotes.absent if remotes is not None else None)
    warnings: list[ConfigError] = []
    for entry in entries:
        try:
            if modules is None or not modules.offers(entry) or _is_built_in(classes, entry):
                planned[str(entry.name)] = _plan_entry(entry, classes, directory, warnings, trusted)
            else:
                planned[str(entry.name)] = modules.plan_resource(entry, directory, levels)
        except MachineError as error:
            if isinstance(error, ConfigError):
                awaited = remotes.starting() if remotes is not None and isinstance(error, NotConfigured) else ()
                planned[str(entry.name)] = _faulty(entry.name, entry.path, str(entry.model), error, awaited)
            else:
                planned[str(entry.name)] = _unknown(entry, error, modules)
        except Exception as error:  # from a driver's code: its Config, requires or uses
            fault = MachineError(f"{entry.model} cannot read its configuration: {error!r}")
            planned[str(entry.name)] = _faulty(entry.name, entry.path, str(entry.model), fault)
    return ResourcePlan(planned, tuple(warnings), aliases_of(names))


def _broken(document: MachineDocument) -> dict[str, PlannedResource]:
    """Return the resources of broken entries that have a readable name; entries with the same name are merged."""
    entries_by_name: dict[ResourceName, list[BrokenEntry]] = {}
    for entry in document.broken:
        if entry.resource is not None:
            entries_by_name.setdefault(entry.resource, []).append(entry)
    return {
        str(name): _faulty(
            name, entries[0].path, "", ConfigErrors([problem for entry in entries for problem in entry.problems])
        )
        for name, entries in entries_by_name.items()
    }


def _plan_entry(
    entry: ResourceEntry, classes: Classes, directory: Directory, warnings: list[ConfigError], trusted: bool
) -> PlannedResource:
    cls = classes.find(entry.name.api, entry.model)
    if entry.name.api != cls.API:
        raise ConfigError(entry.path, f"{entry.model} implements {cls.API}, not {entry.name.api}")
    if cls.NEEDS_TRUST and not trusted:
        raise ConfigError(
            entry.path,
            f"{entry.model} runs programs that the configuration names, which -untrusted-env refuses",
            value=str(entry.model),
            remedy="start machine-server without -untrusted-env, or remove the resource",
        )
    path = f"{entry.path}.attributes"
    attributes, entry_warnings = decode_attributes(cls.Config, entry.attributes, path=path)
    warnings.extend(entry_warnings)
    return plan_resource(entry, directory, cls, attributes, tuple(attributes.requires()), attributes.uses())


def _is_built_in(classes: Classes, entry: ResourceEntry) -> bool:
    try:
        classes.find(entry.api, entry.model)
    except MachineError:
        return False
    return True


def plan_resource(
    entry: ResourceEntry,
    directory: Directory,
    cls: type[Resource],
    attributes: Attributes,
    required: Sequence[str],
    optional: Iterable[str],
) -> PlannedResource:
    """Return the resource of `entry` with its dependencies resolved; raises ConfigError for one that is not there."""
    path = f"{entry.path}.attributes"
    own_name = str(entry.name)
    requires = {
        *_resolve(directory, entry.depends_on, f"{entry.path}.depends_on", own_name),
        *_resolve(directory, required, path, own_name),
    }
    uses = set()
    for text in optional:
        if text.endswith("/*"):
            uses.update(directory.of_api(text.removesuffix("/*")))
            continue
        try:
            uses.add(directory.resolve(text, path))
        except ConfigError:
            continue  # optional and not present; a document that adds it is planned again
    return PlannedResource(
        name=entry.name,
        path=entry.path,
        model=str(entry.model),
        version=entry.version,
        requires=frozenset(requires),
        uses=frozenset(uses - requires - {own_name}),
        cls=cls,
        attributes=attributes,
    )


def _resolve(directory: Directory, names: Sequence[str], path: str, own_name: str) -> Iterable[str]:
    for index, text in enumerate(names):
        text_path = f"{path}.{index}" if path.endswith("depends_on") else path
        full = directory.resolve(text, text_path)
        if full == own_name:
            raise ConfigError(text_path, f"{own_name} depends on itself", value=text, remedy="remove the dependency")
        yield full


def _unknown(entry: ResourceEntry, error: MachineError, modules: ModuleOffers | None) -> PlannedResource:
    """Return the resource of an entry with an unknown model. While modules start, it waits for them."""
    unknown = ConfigError(entry.path, error.message, value=str(entry.model), remedy=error.remedy)
    if modules is None:
        return _faulty(entry.name, entry.path, str(entry.model), unknown)
    fault = blame_modules(unknown, modules.not_ready())
    resource = _faulty(entry.name, entry.path, str(entry.model), fault, modules.starting())
    return replace(resource, unknown=unknown)


def blame_modules(unknown: ConfigError, not_ready: Mapping[str, str]) -> ConfigError:
    """Return the error of an entry whose model is unknown, with the modules that may offer it.

    `not_ready` is the result of `Offers.not_ready`. It changes without a new plan, so this is called when the error is
    shown.
    """
    if not not_ready:
        return unknown
    modules = ", ".join(f"{node.rpartition('/')[2]} ({reason})" for node, reason in not_ready.items())
    remedy = f"these modules may offer it and are not ready: {modules}"
    return ConfigError(unknown.path, unknown.message, value=unknown.value, remedy=remedy)


def _faulty(
    name: ResourceName, path: str, model: str, fault: MachineError, waits_for: Iterable[str] = ()
) -> PlannedResource:
    """Return a resource that cannot be built; it does not count as failed until the nodes in `waits_for` are ready."""
    version = ("fault", model, str(fault))
    return PlannedResource(
        name=name, path=path, model=model, version=version, requires=frozenset(waits_for), fault=fault
    )
