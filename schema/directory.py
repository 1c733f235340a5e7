"""Resolution of short resource names to full names."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from schema.decoding.report import did_you_mean
from schema.errors import ConfigError
from schema.names import ResourceName


class NotConfigured(ConfigError):
    """Name that does not match any resource."""


class Directory:
    """Resource names of a machine, which resolves short names.

    `left` is a resource of this machine if there is one, otherwise that of a remote, such as `pi:left`. `absent`
    returns a remedy for an unknown name that a remote may have, or an empty text.
    """

    def __init__(self, names: Iterable[ResourceName], absent: Callable[[str], str] | None = None) -> None:
        self._full = {str(name): name for name in names}
        self._absent = absent
        self._aliases = aliases_of(self._full.values())
        self._short: dict[str, list[str]] = {}
        self._remote: dict[str, list[str]] = {}  # full names of remote resources by last part
        for full, name in self._full.items():
            self._short.setdefault(name.short, []).append(full)
            if name.remotes:
                self._remote.setdefault(name.name, []).append(full)

    def resolve(self, text: str, path: str) -> str:
        """Return the full name for a short or full name; ConfigError at `path` if it is unknown or ambiguous."""
        if "/" in text:
            full = str(ResourceName.parse(text, path=path))
            candidates = [full] if full in self._full else [*self._aliases.get(full, ())]
        else:
            candidates = self._short.get(text) or self._remote.get(text, [])
        if not candidates:
            raise NotConfigured(path, f"no resource {text!r} is configured", value=text, remedy=self._near(text))
        if len(candidates) > 1:
            raise ConfigError(
                path,
                f"{text!r} is ambiguous: it may be {' or '.join(sorted(candidates))}",
                value=text,
                remedy="write the full name",
            )
        return candidates[0]

    def of_api(self, api: str) -> list[str]:
        """Return the full names of this machine's own resources of an API."""
        return [full for full, name in self._full.items() if str(name.api) == api and not name.remotes]

    def _near(self, text: str) -> str:
        if self._absent is not None and (reason := self._absent(text)):
            return reason
        return did_you_mean(text, self._full if "/" in text else self._short) or "configure it or correct the name"


def aliases_of(names: Iterable[ResourceName]) -> dict[str, tuple[str, ...]]:
    """Return the full names of remote resources by alias, the full name without remote prefixes.

    `rdk:component:motor/left` is an alias of `rdk:component:motor/pi:left`, unless it is a resource of this machine.
    """
    own = set()
    aliases: dict[str, tuple[str, ...]] = {}
    for name in names:
        if not name.remotes:
            own.add(str(name))
            continue
        short = f"{name.api}/{name.name}"
        aliases[short] = (*aliases.get(short, ()), str(name))
    return {short: full for short, full in aliases.items() if short not in own}
