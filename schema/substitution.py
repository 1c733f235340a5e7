"""`${...}` in documents: environment variables in the text, and placeholders in attributes and modules.

`${NAME}` is replaced in the raw text before it is read as JSON: inside a string the value is written as JSON writes it
in a string, elsewhere as it is, so that `"port": ${PORT}` gives a number. `${environment.NAME}`, `${packages.name}` and
`${packages.type.name}` have a dot, are no variable names and so stay as they are until the document is used.
What cannot be resolved stays as it stands, with a warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec

from schema.errors import ConfigError
from schema.machine import MachineDocument
from schema.modules import Module
from schema.report import Report, did_you_mean, join

FindPackage: TypeAlias = Callable[[str, str], str | None]
"""Local directory of the package of a type (`ml_model`, `module`, ...) and name; None if there is none."""

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_PLACEHOLDER = re.compile(r"\$\{(environment|packages)\.([^{}]*)\}")
_DEFAULT_PACKAGE_TYPE = "ml_model"


def substitute(text: str, environment: Mapping[str, str]) -> tuple[str, tuple[ConfigError, ...]]:
    """The text with every `${NAME}` replaced that `environment` has; a warning for each other name, once."""
    missing: dict[str, int] = {}

    def variable(match: re.Match[str], *, quoted: bool) -> str:
        value = environment.get(match[1])
        if value is None:
            missing.setdefault(match[1], match.string.count("\n", 0, match.start()))
            return match[0]
        return json.dumps(value, ensure_ascii=False)[1:-1] if quoted else value

    parts: list[str] = []
    line, end = 1, 0
    lines: dict[str, int] = {}
    for string in (*_STRING.finditer(text), None):
        start = len(text) if string is None else string.start()
        pieces = ((text[end:start], False), *(((string[0], True),) if string else ()))
        for piece, quoted in pieces:
            missing.clear()
            parts.append(_VARIABLE.sub(lambda match, quoted=quoted: variable(match, quoted=quoted), piece))  # type: ignore[misc]
            for name, offset in missing.items():
                lines.setdefault(name, line + offset)
            line += piece.count("\n")
        end = len(text) if string is None else string.end()
    warnings = tuple(
        ConfigError("", f"line {at}: the environment has no {name}", remedy=did_you_mean(name, environment) or "set it")
        for name, at in lines.items()
    )
    return "".join(parts), warnings


def fill(
    document: MachineDocument, environment: Mapping[str, str], find_package: FindPackage = lambda kind, name: None
) -> tuple[MachineDocument, tuple[ConfigError, ...]]:
    """The document with the placeholders in attributes and in modules' paths and environments replaced.

    A warning with the exact path for each placeholder that stays because it cannot be resolved.
    """
    report = Report()
    filler = _Filler(environment, find_package, report, frozenset(one.name for one in document.packages))
    filled = replace(
        document,
        components=tuple(
            replace(e, attributes=filler.any(e.attributes, join(e.path, "attributes"))) for e in document.components
        ),
        services=tuple(
            replace(e, attributes=filler.any(e.attributes, join(e.path, "attributes"))) for e in document.services
        ),
        modules=tuple(map(filler.module, document.modules, document.places("modules"))),
    )
    return filled, tuple(report.warnings)


class _Filler:
    def __init__(
        self, environment: Mapping[str, str], find_package: FindPackage, report: Report, packages: frozenset[str]
    ) -> None:
        self._environment = environment
        self._find_package = find_package
        self._report = report
        self._packages = packages

    def module(self, module: Module, path: str) -> Module:
        return msgspec.structs.replace(
            module,
            executable_path=self.any(module.executable_path, join(path, "executable_path")),
            env=self.any(module.env, join(path, "env")),
        )

    def any(self, value: Any, path: str) -> Any:
        if isinstance(value, str):
            return _PLACEHOLDER.sub(lambda match: self._resolve(match, path), value)
        if isinstance(value, Mapping):
            return {key: self.any(item, join(path, key)) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.any(item, join(path, index)) for index, item in enumerate(value)]
        return value

    def _resolve(self, match: re.Match[str], path: str) -> str:
        kind, name = match[1], match[2]
        if kind == "environment":
            value = self._environment.get(name)
            reason, remedy = f"the environment has no {name!r}", did_you_mean(name, self._environment)
        else:
            package_type, _, package = name.rpartition(".")
            value = self._find_package(package_type or _DEFAULT_PACKAGE_TYPE, package)
            reason, remedy = f"there is no package {name!r}", "add it to 'packages'"
            if package in self._packages:
                reason, remedy = f"the package {name!r} is not on this computer yet", ""
        if value is None:
            self._report.warn(path, f"{match[0]} stays as it is: {reason}", remedy=remedy)
            return match[0]
        return value
