"""The names under which a machine is announced. Pure; has few imports because every start imports it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

MAX_LABEL: Final = 63  # bytes; RFC 1035 2.3.4

Name: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The names under which a machine is announced: service instances, and hosts in the domain `local`."""

    instances: tuple[str, ...]
    hosts: tuple[Name, ...]

    def renamed(self, number: int) -> Names:
        """Return the names with a number appended, for use after a conflict (RFC 6762 9); unchanged below 2."""
        if number < 2:
            return self
        return Names(
            tuple(_numbered(instance, number) for instance in self.instances),
            tuple((_numbered(host[0], number), *host[1:]) for host in self.hosts),
        )


def names_of(full_names: Iterable[str], host: str) -> Names:
    """Return the names for `full_names`, or for the computer's name `host` if there are none.

    Instances are each full name unchanged and with dashes instead of dots, because official clients ask for both.
    """
    instances: dict[str, None] = {}
    hosts: dict[Name, None] = {}
    names = [name.strip(".") for name in full_names if name.strip(".")] or [host.partition(".")[0] or "machine"]
    for name in names:
        dashed = name.replace(".", "-")
        for instance in (name, dashed):
            instances[_cut(instance)] = None
        hosts[(_cut(dashed), "local")] = None
        labels = tuple(name.split("."))
        if len(labels) > 1 and all(0 < len(label.encode()) <= MAX_LABEL for label in labels):
            hosts[(*labels, *(() if labels[-1] == "local" else ("local",)))] = None
    return Names(tuple(instances), tuple(hosts))


def _cut(label: str) -> str:
    """Return the label, cut to MAX_LABEL bytes."""
    return label.encode()[:MAX_LABEL].decode(errors="ignore")


def _numbered(label: str, number: int) -> str:
    end = f"-{number}"
    return label.encode()[: MAX_LABEL - len(end)].decode(errors="ignore") + end
