"""The check of a whole configuration: one for the file, the commands, the cloud's pages and calls, and the machine.

Pure. What only the computer itself can tell (whether a program is there, what the environment holds) is for the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from catalogue.models import Models
from nursery_graph.plan import knots
from schema.attributes import decode as decode_attributes
from schema.directory import Directory
from schema.errors import ConfigError, ConfigErrors, MachineError
from schema.frames import WORLD
from schema.machine import Decoded, MachineDocument, ResourceEntry
from schema.names import DEFAULT_NAMESPACE
from schema.report import Report, did_you_mean, join
from schema.substitution import has_placeholder
from telemetry.rules import from_document

RESOURCES: Final = ("components", "services")


@dataclass(frozen=True, slots=True)
class Checked:
    """Everything that is wrong with a configuration."""

    problems: tuple[ConfigError, ...]
    """What makes an entry, or the whole document, unusable."""
    warnings: tuple[ConfigError, ...]
    """What is probably not meant."""
    resources: int
    """Components and services that can be used, as far as can be told without a machine."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What a document may name although it does not stand in it."""

    resources: Collection[str] = ()
    """Names of resources that fragments bring."""
    anything: bool = False
    """Names are not checked: the document is a fragment, or uses fragments whose content is not known here."""
    modules: bool = False
    """Modules may come from there."""


def in_cloud(document: Any, brought: Collection[str] = (), *, partial: bool = False) -> Elsewhere:
    """What a document of a cloud may name.

    `brought` are the names that its fragments bring, if that is known. `partial`: it is a fragment itself.
    """
    fragments = isinstance(document, Mapping) and bool(document.get("fragments"))
    return Elsewhere(brought, anything=partial or (fragments and not brought), modules=partial or fragments)


def check(decoded: Decoded, models: Models, elsewhere: Elsewhere | None = None) -> Checked:
    """All mistakes of a document, those that `decode` has seen included. Never raises."""
    steps = checking(decoded, models, elsewhere)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            checked: Checked = end.value
            return checked


def checking(decoded: Decoded, models: Models, elsewhere: Elsewhere | None = None) -> Generator[None, None, Checked]:
    """As `check`, resource by resource, for a caller that must answer others in between."""
    document = decoded.readable
    if document is None:
        return Checked(decoded.problems, decoded.warnings, 0)
    work = _Check(document, models, elsewhere or Elsewhere())
    usable = yield from work.run()
    return Checked(
        (*decoded.problems, *work.report.problems),
        (*decoded.warnings, *work.report.warnings),
        usable if decoded.document is not None else 0,
    )


class _Check:
    def __init__(self, document: MachineDocument, models: Models, elsewhere: Elsewhere) -> None:
        self.report = Report()
        self._document = document
        self._models = models
        self._elsewhere = elsewhere
        names = [entry.name for entry in document.resources]
        names += [entry.resource for entry in document.broken if entry.resource is not None]
        self._directory = Directory(names)
        self._remotes = {one.name for one in document.remotes}

    def run(self) -> Generator[None, None, int]:
        """Report everything; return the number of resources without a mistake."""
        document, report = self._document, self.report
        report.warnings += from_document(document)[1]
        edges: dict[str, set[str]] = {}
        faulty: set[str] = set()
        for entry in document.resources:
            before = len(report.problems)
            needs = self._attributes(entry)
            edges[str(entry.name)] = set(self._dependencies(entry, needs))
            if len(report.problems) > before:
                faulty.add(str(entry.name))
            yield
        faulty |= set(self._cycles(edges))
        self._references()
        if document.triggers:
            from triggers.document import examine  # machines without triggers start faster

            examined = examine(document.triggers)
            report.problems += examined.problems
            report.warnings += examined.warnings
        return len(document.resources) - len(faulty)

    def _attributes(self, entry: ResourceEntry) -> tuple[str, ...]:
        """Check model and attributes; the names of the resources that the attributes need."""
        try:
            config = self._models.config(entry.api, entry.model)
        except MachineError as error:
            self._no_model(entry, error)
            return ()
        path = join(entry.path, "attributes")
        try:
            attributes, warnings = decode_attributes(config, entry.attributes, path=path)
        except ConfigErrors as errors:
            self.report.problems += self._told(errors.problems, entry, path)
        except ConfigError as error:
            self.report.problems += self._told([error], entry, path)
        else:
            self.report.warnings += warnings
            return tuple(attributes.requires())
        return ()

    def _told(self, errors: Collection[ConfigError], entry: ResourceEntry, path: str) -> Iterator[ConfigError]:
        """Errors of attributes without those that a placeholder's value may settle."""
        waits = has_placeholder(entry.attributes)
        for error in errors:
            if waits and (error.path == path or has_placeholder(_at(entry.attributes, error.path, path))):
                continue
            if error.path == path and not entry.attributes and error.reason.endswith("is missing"):
                yield ConfigError(path, f"{error.reason} in its attributes", remedy=error.remedy)
            else:
                yield error

    def _no_model(self, entry: ResourceEntry, error: MachineError) -> None:
        path, model = join(entry.path, "model"), str(entry.model)
        modules = bool(self._document.modules) or self._elsewhere.modules
        if entry.model.namespace != DEFAULT_NAMESPACE:
            if not modules:
                self.report.warn(
                    path,
                    f"{model} is not built in, and no module is configured that could offer it",
                    value=model,
                    remedy="add the module, or correct the model",
                )
        elif modules:
            self.report.warn(path, f"{error.message}, so a module must offer it", value=model, remedy=error.remedy)
        else:
            self.report.problem(path, error.message, value=model, remedy=error.remedy)

    def _dependencies(self, entry: ResourceEntry, needs: tuple[str, ...]) -> Iterator[str]:
        written = [(join(entry.path, "depends_on", index), name) for index, name in enumerate(entry.depends_on)]
        for path, name in (*written, *((join(entry.path, "attributes"), name) for name in needs)):
            try:
                yield self._directory.resolve(name, path)
            except ConfigError as error:
                if self._is_elsewhere(name):
                    continue
                if self._remotes:
                    self.report.warn(path, f"{error.reason}, so a remote must have it", remedy=error.remedy)
                else:
                    self.report.problems.append(error)

    def _is_elsewhere(self, name: str) -> bool:
        """Whether a name is that of something that fragments bring or a configured remote may have."""
        last = name.rpartition("/")[2]
        return (
            self._elsewhere.anything
            or has_placeholder(name)
            or last in self._elsewhere.resources
            or last.partition(":")[0] in self._remotes
        )

    def _cycles(self, edges: Mapping[str, set[str]]) -> Iterator[str]:
        paths = {str(entry.name): entry.path for entry in self._document.resources}
        for knot in knots(edges):
            members = [name for name in paths if name in knot]
            names = ", ".join(members)
            self.report.problem(
                paths[members[0]],
                f"these need each other, so none can start first: {names}",
                remedy="remove a dependency",
            )
            yield from members

    def _references(self) -> None:
        """Names that other sections use; a machine runs without them, so these are warnings."""
        document = self._document
        jobs = zip(document.places("jobs"), document.jobs, strict=True)
        used = [(join(path, "resource"), job.resource) for path, job in jobs]
        if document.maintenance is not None:
            used.append(("maintenance.sensor_name", document.maintenance.sensor_name))
        for path, name in used:
            try:
                self._directory.resolve(name, path)
            except ConfigError as error:
                if not self._remotes and not self._is_elsewhere(name):
                    self.report.warnings.append(error)
        frames = {(entry.frame.id if entry.frame else "") or entry.name.name for entry in document.components}
        frames |= {WORLD} | {f"{name}_origin" for name in (*frames, *self._elsewhere.resources)}
        for entry in document.components:
            parent = entry.frame.parent if entry.frame is not None else WORLD
            if parent not in frames and not self._remotes and not self._is_elsewhere(parent):
                self.report.warn(
                    join(entry.path, "frame.parent"),
                    f"there is no frame {parent!r}",
                    value=parent,
                    remedy=did_you_mean(parent, frames),
                )


def _at(value: Any, path: str, base: str) -> Any:
    """What stands at `path` in `value`, which stands at `base`; None if it is not there."""
    for word in path.removeprefix(base).strip(".").split("."):
        if isinstance(value, Mapping):
            value = value.get(word)
        elif isinstance(value, list | tuple) and word.isdecimal() and int(word) < len(value):
            value = value[int(word)]
        else:
            return None
    return value
