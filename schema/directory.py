"""The names of a machine's resources: which full name a simple one means."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from schema.errors import ConfigError
from schema.names import ResourceName
from schema.report import did_you_mean


class NotConfigured(ConfigError):
    """A name that means no resource."""


class Directory:
    """The names of a machine: which full names a person may mean by a simple one.

    `left` is a resource of this machine if it has one of that name, else that of a remote, `pi:left`. `absent` says of
    a name that is not there why a remote may have it nevertheless.
    """

    def __init__(self, names: Iterable[ResourceName], absent: Callable[[str], str] | None = None) -> None:
        self._full = {str(name): name for name in names}
        self._absent = absent
        self._aliases = aliases_of(self._full.values())
        self._short: dict[str, list[str]] = {}
        self._far: dict[str, list[str]] = {}  # what the names of remote resources end in
        for full, name in self._full.items():
            self._short.setdefault(name.short, []).append(full)
            if name.remotes:
                self._far.setdefault(name.name, []).append(full)

    def resolve(self, text: str, path: str) -> str:
        """The full name meant by `text`, simple or full; raises ConfigError at `path` if none or several are."""
        if "/" in text:
            full = str(ResourceName.parse(text, path=path))
            candidates = [full] if full in self._full else [*self._aliases.get(full, ())]
        else:
            candidates = self._short.get(text) or self._far.get(text, [])
        if not candidates:
            raise NotConfigured(path, f"no resource {text!r} is configured", value=text, remedy=self._near(text))
        if len(candidates) > 1:
            raise ConfigError(
                path, f"{text!r} may be {' or '.join(sorted(candidates))}", value=text, remedy="write the full name"
            )
        return candidates[0]

    def of_api(self, api: str) -> list[str]:
        """Full names of all resources of an API that are this machine's own."""
        return [full for full, name in self._full.items() if str(name.api) == api and not name.remotes]

    def _near(self, text: str) -> str:
        if self._absent is not None and (reason := self._absent(text)):
            return reason
        return did_you_mean(text, self._full if "/" in text else self._short) or "configure it or correct the name"


def aliases_of(names: Iterable[ResourceName]) -> dict[str, tuple[str, ...]]:
    """Shorter full names of remote resources, without the remotes, and whom each may mean; a machine's own come first.

    `rdk:component:motor/left` for `rdk:component:motor/pi:left`.
    """
    own = set()
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        if not name.remotes:
            own.add(str(name))
            continue
        short = f"{name.api}/{name.name}"
        found[short] = (*found.get(short, ()), str(name))
    return {short: full for short, full in found.items() if short not in own}
