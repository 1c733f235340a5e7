"""The check of a whole configuration, shared by the commands, the cloud's pages and calls, and the machine.

Pure. The caller checks what depends on the computer, such as whether a program exists or a variable is set.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from models.builtin import Models
from nursery_graph import cyclic_groups
from schema import DEFAULT_NAMESPACE, WORLD, ConfigError, ConfigErrors, Directory, MachineError, has_placeholder
from schema import decode_attributes as decode_attributes
from schema.decoding import DecodingReport, detached, did_you_mean, join
from schema.document import Decoded, MachineDocument, ResourceEntry
from telemetry.logs import rules_of_document

RESOURCES: Final = ("components", "services")


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check."""

    problems: tuple[ConfigError, ...]
    """Errors: each makes an entry, or the whole document, unusable."""
    warnings: tuple[ConfigError, ...]
    """Probable mistakes that do not prevent use."""
    resources: int
    """Number of components and services without an error; 0 if the document is unusable."""


@dataclass(frozen=True, slots=True)
class ExternalNames:
    """Resources and modules that a document may refer to although it does not contain them."""

    resources: Collection[str] = ()
    """Names of resources that fragments provide."""
    anything: bool = False
    """Skip the check of names: the document is a fragment, or uses fragments of unknown content."""
    modules: bool = False
    """Fragments may provide modules."""


def in_cloud(document: Any, brought: Collection[str] = (), *, partial: bool = False) -> ExternalNames:
    """Return what a document in a cloud may refer to.

    `brought`: names that its fragments provide, if known. `partial`: the document is itself a fragment.
    """
    fragments = isinstance(document, Mapping) and bool(document.get("fragments"))
    return ExternalNames(brought, anything=partial or (fragments and not brought), modules=partial or fragments)


def check_document(decoded: Decoded, models: Models, external: ExternalNames | None = None) -> Checked:
    """Return all problems of a document, including those that `decode` reported. Never raises."""
    steps = checked_in_steps(decoded, models, external)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            checked: Checked = end.value
            return checked


def checked_in_steps(
    decoded: Decoded, models: Models, external: ExternalNames | None = None
) -> Generator[None, None, Checked]:
    """Check like `check_document`, but yield after each resource, so that the caller can do other work in between."""
    document = decoded.readable
    if document is None:
        return Checked(decoded.problems, decoded.warnings, 0)
    work = _Check(document, models, external or ExternalNames())
    usable = yield from work.run()
    return Checked(
        (*decoded.problems, *work.report.problems),
        (*decoded.warnings, *work.report.warnings),
        usable if decoded.document is not None else 0,
    )


class _Check:
    def __init__(self, document: MachineDocument, models: Models, external: ExternalNames) -> None:
        self.report = DecodingReport()
        self._document = document
        self._models = models
        self._external = external
        names = [entry.name for entry in document.resources]
        names += [entry.resource for entry in document.broken if entry.resource is not None]
        self._directory = Directory(names)
        self._remotes = {remote.name for remote in document.remotes}

    def run(self) -> Generator[None, None, int]:
        """Report all problems; return the number of resources without an error."""
        document, report = self._document, self.report
        report.warnings += rules_of_document(document)[1]
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
            from triggers import examine_triggers  # imported late: machines without triggers start faster

            examined = examine_triggers(document.triggers)
            report.problems += examined.problems
            report.warnings += examined.warnings
        if document.agent:
            yield from self._agent()
        return len(document.resources) - len(faulty)

    def _agent(self) -> Generator[None, None, None]:
        from schema.agent import check_settings as checking_agent

        examined = DecodingReport()
        for examined in checking_agent(self._document.agent):  # noqa: B007 - the last one is complete
            yield
        self.report.problems += examined.problems
        self.report.warnings += examined.warnings

    def _attributes(self, entry: ResourceEntry) -> tuple[str, ...]:
        """Check model and attributes; return the names of the resources that the attributes require."""
        try:
            config = self._models.config(entry.api, entry.model)
        except MachineError as error:
            self._report_unknown_model(entry, error)
            return ()
        path = join(entry.path, "attributes")
        try:
            attributes, warnings = decode_attributes(config, entry.attributes, path=path)
        except ConfigErrors as errors:
            self.report.problems += self._relevant_errors(errors.problems, entry, path)
        except ConfigError as error:
            self.report.problems += self._relevant_errors([detached(error)], entry, path)
        else:
            self.report.warnings += warnings
            return tuple(attributes.requires())
        return ()

    def _relevant_errors(
        self, errors: Collection[ConfigError], entry: ResourceEntry, path: str
    ) -> Iterator[ConfigError]:
        """Return the errors of attributes, except those that the value of a placeholder may resolve."""
        waits = has_placeholder(entry.attributes)
        for error in errors:
            if waits and (error.path == path or has_placeholder(_value_at(entry.attributes, error.path, path))):
                continue
            if error.path == path and not entry.attributes and error.reason.endswith("is missing"):
                yield ConfigError(path, f"{error.reason} in its attributes", remedy=error.remedy)
            else:
                yield error

    def _report_unknown_model(self, entry: ResourceEntry, error: MachineError) -> None:
        path, model = join(entry.path, "model"), str(entry.model)
        modules = bool(self._document.modules) or self._external.modules
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
                    self.report.warn(path, f"{error.reason}, so a remote must provide it", remedy=error.remedy)
                else:
                    self.report.problems.append(detached(error))

    def _is_elsewhere(self, name: str) -> bool:
        """Whether fragments or a configured remote may provide a resource of that name."""
        last = name.rpartition("/")[2]
        return (
            self._external.anything
            or has_placeholder(name)
            or last in self._external.resources
            or last.partition(":")[0] in self._remotes
        )

    def _cycles(self, edges: Mapping[str, set[str]]) -> Iterator[str]:
        paths = {str(entry.name): entry.path for entry in self._document.resources}
        for cycle in cyclic_groups(edges):
            members = [name for name in paths if name in cycle]
            names = ", ".join(members)
            self.report.problem(
                paths[members[0]],
                f"these resources depend on each other, so none can start first: {names}",
                remedy="remove a dependency",
            )
            yield from members

    def _references(self) -> None:
        """Check the resource names in other sections. Problems are warnings: a machine runs without these resources."""
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
                    self.report.warnings.append(detached(error))
        frames = {(entry.frame.id if entry.frame else "") or entry.name.name for entry in document.components}
        frames |= {WORLD} | {f"{name}_origin" for name in (*frames, *self._external.resources)}
        for entry in document.components:
            parent = entry.frame.parent if entry.frame is not None else WORLD
            if parent not in frames and not self._remotes and not self._is_elsewhere(parent):
                self.report.warn(
                    join(entry.path, "frame.parent"),
                    f"there is no frame {parent!r}",
                    value=parent,
                    remedy=did_you_mean(parent, frames),
                )


def _value_at(value: Any, path: str, base: str) -> Any:
    """Return the value at `path`, where `value` is at `base`; None if there is no such path."""
    for word in path.removeprefix(base).strip(".").split("."):
        if isinstance(value, Mapping):
            value = value.get(word)
        elif isinstance(value, list | tuple) and word.isdecimal() and int(word) < len(value):
            value = value[int(word)]
        else:
            return None
    return value
