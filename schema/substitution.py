"""Expansion of environment variables in the text of documents, and of placeholders in attributes and modules.

The text of a file is expanded before it is parsed as JSON, with the syntax of shells:

`${NAME}` `$NAME`                  the value; nothing, with a warning, if the variable is not set
`${NAME-text}` `${NAME=text}`      the value, or `text` if the variable is not set
`${NAME:-text}` `${NAME:=text}`    the value, or `text` if it is not set or empty
`${NAME+text}` `${NAME:+text}`     `text` if the variable is set, else nothing
`$$`                               a dollar sign

`text` may contain references. Inside a JSON string a value is escaped, elsewhere it is inserted unchanged:
`"port": ${PORT:-8080}` gives a number. `$NAME` in the key of an object is not expanded (`"$schema"`).

`${environment.NAME}`, `${packages.name}` and `${packages.type.name}` are placeholders, which are resolved when the
document is used; a placeholder that cannot be resolved is left unchanged, with a warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

import msgspec

from schema.decoding.report import DecodingReport, did_you_mean, join
from schema.document.machine import MachineDocument
from schema.document.modules import Module
from schema.errors import ConfigError

FindPackage: TypeAlias = Callable[[str, str], str | None]
"""Function that returns the local directory of a package by type (`ml_model`, `module`, ...) and name, or None."""

_STRING: Final = r'"(?:[^"\\]|\\.)*"?'
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_BRACED: Final = rf"\$\{{(?P<name>{_NAME})(?:(?P<operator>:?[-=+])(?P<text>%s))?\}}"
_BARE: Final = rf"\$(?:\$|(?P<bare>{_NAME}))"
# The text after an operator ends at the first brace on the same line that does not close a nested reference. Outside of
# strings it may be a string with any content. Bounds and possessive repetition limit the time for hostile input.
_REFERENCE: Final = r"\$\{[^${}\n]{0,100}+\}"
_INNER: Final = rf"(?:{_REFERENCE}|[^}}\n]){{0,250}}+"
_INNER_OR_STRING: Final = rf"(?:{_REFERENCE}|" + r'"(?:[^"\\\n]|\\.){0,250}+"|[^}"\n]){0,250}+'
_IN_STRING: Final = re.compile(f"{_BRACED % _INNER}|{_BARE}")
_IN_KEY: Final = re.compile(_BRACED % _INNER)
_OUTSIDE: Final = re.compile(f"{_BRACED % _INNER_OR_STRING}|{_BARE}|(?P<string>{_STRING})", re.DOTALL)
_COLON: Final = re.compile(r"\s*:")
_PLACEHOLDER = re.compile(r"\$\{(environment|packages)\.([^{}]*)\}")
_DEFAULT_PACKAGE_TYPE = "ml_model"


def substitute(text: str, environment: Mapping[str, str]) -> tuple[str, tuple[ConfigError, ...]]:
    """Expand variables in `text`; return the result and one warning, with the line, for each name that is not set.

    The warning does not show a bare `$NAME`, which may be part of a password with a dollar sign.
    """
    return _Expansion(text, environment).result()


class _Expansion:
    def __init__(self, text: str, environment: Mapping[str, str]) -> None:
        self._text = text
        self._environment = environment
        self._unset: dict[str, ConfigError] = {}  # by name

    def result(self) -> tuple[str, tuple[ConfigError, ...]]:
        return _OUTSIDE.sub(self._outside, self._text), tuple(self._unset.values())

    def _outside(self, match: re.Match[str]) -> str:
        string = match["string"]
        if string is None:
            return self._value(match, match.start(), quoted=False)
        pattern = _IN_KEY if _COLON.match(self._text, match.end()) else _IN_STRING
        return pattern.sub(lambda inner: self._value(inner, match.start() + inner.start(), quoted=True), string)

    def _value(self, match: re.Match[str], position: int, *, quoted: bool) -> str:
        """Return the expansion of a reference at position `position` of the text."""
        fields = match.groupdict()
        if match[0] == "$$":
            return "$"
        name, operator = fields["name"] or fields["bare"], fields["operator"] or ""
        value = self._environment.get(name)
        if operator.endswith("+"):
            use_text = value is not None
        else:
            use_text = bool(operator) and (not value if operator.startswith(":") else value is None)
        if use_text:
            inner = _IN_STRING if quoted else _OUTSIDE
            return inner.sub(
                lambda inner_match: self._nested(inner_match, position, quoted=quoted), fields["text"] or ""
            )
        if value is None:
            if not operator:
                self._warn(name, position, bare=fields["name"] is None)
            return ""
        return json.dumps(value, ensure_ascii=False)[1:-1] if quoted else value

    def _nested(self, match: re.Match[str], position: int, *, quoted: bool) -> str:
        """Return the expansion of a reference or string inside another reference."""
        string = match.groupdict().get("string")
        if string is None:
            return self._value(match, position, quoted=quoted)
        return _IN_STRING.sub(lambda inner: self._value(inner, position, quoted=True), string)

    def _warn(self, name: str, position: int, *, bare: bool) -> None:
        if name in self._unset:
            return
        line, column = self._text.count("\n", 0, position) + 1, position - self._text.rfind("\n", 0, position)
        if bare:
            reason = f"line {line}, column {column}: the variable after this dollar sign is not set"
            remedy = "set it in the environment, or write $$ for a dollar sign"
        else:
            reason = f"line {line}: the environment has no {name}"
            suggestion = did_you_mean(name, self._environment)
            remedy = (
                suggestion if suggestion.startswith("did you mean") else f"set it, or give a default: ${{{name}:-...}}"
            )
        self._unset[name] = ConfigError("", reason, remedy=remedy)


def fill_placeholders(
    document: MachineDocument, environment: Mapping[str, str], find_package: FindPackage = lambda kind, name: None
) -> tuple[MachineDocument, tuple[ConfigError, ...]]:
    """Replace the placeholders in attributes and in the paths and environments of modules.

    Returns the document, and a warning with the exact path for each placeholder that cannot be resolved.
    """
    report = DecodingReport()
    filler = _Filler(environment, find_package, report, frozenset(package.name for package in document.packages))
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


def has_placeholder(value: Any) -> bool:
    """Return True if a value contains a placeholder, which `fill_placeholders` would replace."""
    if isinstance(value, str):
        return _PLACEHOLDER.search(value) is not None
    if isinstance(value, Mapping):
        return any(map(has_placeholder, value.values()))
    return isinstance(value, (list, tuple)) and any(map(has_placeholder, value))


class _Filler:
    def __init__(
        self,
        environment: Mapping[str, str],
        find_package: FindPackage,
        report: DecodingReport,
        packages: frozenset[str],
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
            self._report.warn(path, f"{match[0]} was not replaced: {reason}", remedy=remedy)
            return match[0]
        return value
