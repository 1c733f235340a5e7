"""Parsing and formatting of API triples, model triples and resource names.

The syntax is that of the protocol: `namespace:type:subtype`, `namespace:family:model` and
`namespace:type:subtype/[remote:]*name`.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from schema.errors import ConfigError

DEFAULT_NAMESPACE: Final = "rdk"  # required by the protocol
DEFAULT_FAMILY: Final = "builtin"
INTERNAL_NAMESPACE: Final = "rdk-internal"
MAX_RESOURCE_NAME: Final = 60  # characters, without remote prefixes
MAX_MODULE_NAME: Final = 200  # characters; also for packages

_PART = re.compile(r"[\w-]+\Z", re.ASCII)
_NAME = re.compile(r"[a-zA-Z0-9][-\w]*\Z", re.ASCII)


def _triple(text: str, path: str, kind: str) -> tuple[str, str, str]:
    parts = text.split(":")
    if len(parts) != 3 or not all(_PART.match(part) for part in parts):
        raise ConfigError(
            path,
            f"{text!r} is not {kind}",
            value=text,
            remedy="write three words of letters, digits, '_' or '-' joined by ':', such as rdk:component:motor",
        )
    return parts[0], parts[1], parts[2]


@dataclass(frozen=True, slots=True, order=True)
class API:
    """API of a resource, such as `rdk:component:motor`."""

    namespace: str
    type: str
    subtype: str

    @classmethod
    def parse(cls, text: str, *, path: str = "api") -> API:
        """Parse `namespace:type:subtype`; ConfigError at `path` if it is invalid."""
        return cls(*_triple(text, path, "an API"))

    def __str__(self) -> str:
        return f"{self.namespace}:{self.type}:{self.subtype}"


@dataclass(frozen=True, slots=True, order=True)
class Model:
    """Implementation of an API, such as `rdk:builtin:fake`."""

    namespace: str
    family: str
    name: str

    @classmethod
    def parse(cls, text: str, *, path: str = "model") -> Model:
        """Parse a triple, or one word that means `rdk:builtin:<word>`; ConfigError at `path` if it is invalid."""
        if _PART.match(text):
            return cls(DEFAULT_NAMESPACE, DEFAULT_FAMILY, text)
        return cls(*_triple(text, path, "a model"))

    def __str__(self) -> str:
        return f"{self.namespace}:{self.family}:{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class ResourceName:
    """Full name of a resource of this machine or of remotes, such as `rdk:component:motor/arm-pi:left`."""

    api: API
    name: str
    remotes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, *, path: str = "name") -> ResourceName:
        """Parse a full resource name; ConfigError at `path` if it is invalid."""
        api, slash, rest = text.partition("/")
        if not slash or not rest:
            raise ConfigError(
                path,
                f"{text!r} is not a full resource name",
                value=text,
                remedy="write namespace:type:subtype/name, such as rdk:component:sensor/thermometer",
            )
        *remotes, name = rest.split(":")
        return cls(API.parse(api, path=path), name, tuple(remotes))

    @property
    def short(self) -> str:
        """Name with its remote prefixes, without the API, as sent by clients."""
        return ":".join((*self.remotes, self.name))

    def __str__(self) -> str:
        return f"{self.api}/{self.short}"


def check_name(name: str, *, path: str, limit: int = MAX_RESOURCE_NAME) -> str:
    """Return `name` if it is valid for a resource, remote, module or package; ConfigError at `path` otherwise."""
    if not name:
        raise ConfigError(path, "a name is missing", value=name, remedy="give the entry a name")
    if len(name) > limit:
        raise ConfigError(path, f"{name!r} has {len(name)} characters", value=name, remedy=f"use at most {limit}")
    if not _NAME.match(name):
        raise ConfigError(
            path,
            f"{name!r} is not a valid name",
            value=name,
            remedy="start with a letter or digit and use only letters, digits, '-' and '_' (':' and '+' are reserved)",
        )
    return name


def composed(name: str) -> str:
    """Return a name with composed letters (NFC), so that names that look the same are equal."""
    return unicodedata.normalize("NFC", name)
