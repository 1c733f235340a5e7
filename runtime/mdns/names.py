"""Under which names a machine is announced. Pure; imported at every start, so it needs nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

MAX_LABEL: Final = 63  # bytes; RFC 1035 2.3.4

Name: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """Under which names one machine is announced: instances of the service, and hosts below `local`."""

    instances: tuple[str, ...]
    hosts: tuple[Name, ...]

    def renamed(self, number: int) -> Names:
        """The same names with a number, for when somebody else has them; RFC 6762 9."""
        if number < 2:
            return self
        return Names(
            tuple(_numbered(one, number) for one in self.instances),
            tuple((_numbered(host[0], number), *host[1:]) for host in self.hosts),
        )


def names_of(full_names: Iterable[str], host: str) -> Names:
    """Each full name as it is and with dashes for its dots, as official clients ask; the computer's without any."""
    instances: dict[str, None] = {}
    hosts: dict[Name, None] = {}
    known = [name.strip(".") for name in full_names if name.strip(".")] or [host.partition(".")[0] or "machine"]
    for name in known:
        dashed = name.replace(".", "-")
        for one in (name, dashed):
            instances[_cut(one)] = None
        hosts[(_cut(dashed), "local")] = None
        labels = tuple(name.split("."))
        if len(labels) > 1 and all(0 < len(label.encode()) <= MAX_LABEL for label in labels):
            hosts[(*labels, *(() if labels[-1] == "local" else ("local",)))] = None
    return Names(tuple(instances), tuple(hosts))


def _cut(label: str) -> str:
    """At most 63 bytes."""
    return label.encode()[:MAX_LABEL].decode(errors="ignore")


def _numbered(label: str, number: int) -> str:
    end = f"-{number}"
    return label.encode()[: MAX_LABEL - len(end)].decode(errors="ignore") + end
