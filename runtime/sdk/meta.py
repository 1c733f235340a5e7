"""meta.json: the description of a module, in the format of the registry."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, Literal

import msgspec

from rpc.api import APIS
from schema import API, ConfigError, Model
from schema.decoding import DecodingReport, conform, did_you_mean, join, parse_json
from schema.document import Section

FILE: Final = "meta.json"
ARCHITECTURES: Final = (
    *(f"linux/{name}" for name in ("any", "amd64", "arm64", "arm32v6", "arm32v7")),
    *(f"darwin/{name}" for name in ("any", "amd64", "arm64")),
    *(f"windows/{name}" for name in ("any", "amd64")),
    "any",
)
_ID: Final = re.compile(r"[a-zA-Z0-9][-\w]*:[a-zA-Z0-9][-\w]*\Z", re.ASCII)


class MetaModel(Section, frozen=True, kw_only=True):
    """A model that the module offers."""

    api: str
    """The API triple, such as `rdk:component:sensor`."""
    model: str
    """The model triple; its namespace is the module's."""
    short_description: str = ""
    """Description in one line, for lists."""
    markdown_link: str = ""
    """Its documentation: a file of the module or a section of a file, such as `README.md#model`."""


class Build(Section, frozen=True, kw_only=True):
    """Instructions for building the module from source in the registry."""

    setup: str = ""
    """Command that prepares the computer for the build."""
    build: str = ""
    """Command that creates the archive."""
    path: str = ""
    """Path of the created archive."""
    arch: tuple[str, ...] = ()
    """Architectures to build for, such as `linux/arm64`."""
    darwin_deps: tuple[str, ...] = ()
    """Packages to install first on macOS."""


class Meta(Section, frozen=True, kw_only=True):
    """The description of a module by its author."""

    module_id: str
    """`namespace:name` in the registry."""
    visibility: Literal["private", "public", "public_unlisted"]
    """Who may use the module."""
    url: str = ""
    """Address of its source code."""
    description: str = ""
    """Its purpose."""
    models: tuple[MetaModel, ...] = ()
    """The models that it offers."""
    entrypoint: str
    """Path of the program inside the module's folder."""
    first_run: str = ""
    """Path of a program inside the folder that runs once after unpacking, before the module is started."""
    markdown_link: str = ""
    """Its documentation: a file of the module."""
    build: Build = Build()
    """Instructions for building it in the registry."""
    schema: str = msgspec.field(default="", name="$schema")
    """JSON schema, for editors."""

    @property
    def name(self) -> str:
        """The name of the module without its namespace."""
        return self.module_id.partition(":")[2]


def parse_meta(data: bytes) -> tuple[Meta | None, DecodingReport]:
    """Return the content of a meta.json (None if it has mistakes), and a report of all mistakes and warnings."""
    report = DecodingReport()
    try:
        raw = parse_json(data)
    except ConfigError as error:
        report.problem("", error.reason, remedy=error.remedy)
        return None, report
    if not isinstance(raw, Mapping):
        report.problem("", "is not an object", remedy='write {"module_id": "acme:demo", ...}')
        return None, report
    for key in ("module_id", "visibility", "entrypoint"):
        if key not in raw:
            report.problem("", f"'{key}' is missing", remedy=_MISSING[key])
    meta = conform(Meta, {**_PLACEHOLDERS, **raw}, "", report)
    if meta is None or report.problems:
        return None, report
    _check(meta, report)
    return (None if report.problems else meta), report


_PLACEHOLDERS: Final = {"module_id": "a:b", "visibility": "private", "entrypoint": "run.sh"}
_MISSING: Final = {
    "module_id": 'write "namespace:name"',
    "visibility": "write private, public or public_unlisted",
    "entrypoint": "write the path of the program to run",
}


def _check(meta: Meta, report: DecodingReport) -> None:
    if not _ID.match(meta.module_id):
        remedy = "write namespace:name, of letters, digits, '-' and '_'"
        report.problem("module_id", f"{meta.module_id!r} is not a valid id", value=meta.module_id, remedy=remedy)
    listed: set[tuple[str, str]] = set()
    for index, model in enumerate(meta.models):
        path = join("models", index)
        try:
            api = API.parse(model.api, path=join(path, "api"))
            module_model = Model.parse(model.model, path=join(path, "model"))
        except ConfigError as error:
            report.problems.append(error)
            continue
        if api.namespace == "rdk" and api not in APIS:
            remedy_text = did_you_mean(model.api, map(str, APIS))
            report.problem(join(path, "api"), f"{api} is not a published API", value=model.api, remedy=remedy_text)
        if _ID.match(meta.module_id) and module_model.namespace != meta.module_id.partition(":")[0]:
            reason = f"{module_model} is not in the namespace of {meta.module_id}"
            report.problem(join(path, "model"), reason, value=model.model, remedy="use the module's own namespace")
        if (model.api, model.model) in listed:
            report.problem(path, f"{module_model} of {api} is listed twice", remedy="remove one")
        listed.add((model.api, model.model))
    for key in ("entrypoint", "first_run"):
        path = getattr(meta, key)
        if path and not is_inside(path):
            report.problem(
                key, f"{path!r} leads out of the module", value=path, remedy="use the path of a file in the module"
            )
    for index, arch in enumerate(meta.build.arch):
        if arch not in ARCHITECTURES:
            where = join("build", "arch", index)
            remedy = did_you_mean(arch, ARCHITECTURES) or f"use {', '.join(ARCHITECTURES)}"
            report.problem(where, f"{arch!r} is not a known architecture", value=arch, remedy=remedy)


def is_inside(path: str) -> bool:
    """Return whether a path in an archive stays inside it."""
    parts = PurePosixPath(path)
    return not parts.is_absolute() and ".." not in parts.parts and "\0" not in path


def check_folder(folder: Path, meta: Meta) -> list[ConfigError]:
    """Return the errors that prevent a module in `folder` from running: missing or non-executable programs."""
    errors = []
    for key in ("entrypoint", "first_run"):
        name = getattr(meta, key)
        program = folder / name
        if name and not program.is_file():
            errors.append(ConfigError(key, f"there is no file {name}", value=name, remedy=f"correct it in {FILE}"))
        elif name and not os.access(program, os.X_OK):
            errors.append(ConfigError(key, f"{name} is not executable", value=name, remedy=f"chmod +x {program}"))
    return errors


def check_offers(meta: Meta, offers: Sequence[tuple[str, str]]) -> list[ConfigError]:
    """Return the differences between `models` and `offers`, the pairs of API and model that the program offers."""
    listed = {(model.api, model.model): index for index, model in enumerate(meta.models)}
    missing = [pair for pair in offers if pair not in listed]
    errors = [
        ConfigError("models", f"the module offers {model} of {api}, which is not listed", remedy="add it")
        for api, model in missing
    ]
    errors += [
        ConfigError(
            join("models", index), f"the module does not offer {model} of {api}", value=model, remedy="remove it"
        )
        for (api, model), index in listed.items()
        if (api, model) not in offers
    ]
    return errors
