"""What the resources of a remote are called here, and which of them are taken over: pure.

`left` of the remote `pi` is `pi:left` here; with the prefix `lab-` it is `pi:lab-left`. What the remote has from a
remote of its own keeps that one's name too: `pi:deck:left`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from schema.names import INTERNAL_NAMESPACE, ResourceName

BUILT_IN: Final = "builtin"
"""Name of the services that every machine has by itself; each uses its own."""

MACHINES_KEY: Final = "machine-instances"
"""Metadata key of replies to ResourceNames, of this project alone: who is behind each chain of remotes, as JSON."""

MAX_DEPTH: Final = 8
"""Remotes behind each other. Circles among machines that say who they are end sooner, at the first repetition."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a remote says of itself at one moment."""

    ready: frozenset[ResourceName]  # as it calls them
    troubles: Mapping[ResourceName, str] = field(default_factory=dict)  # configured there and not well, and why
    starting: bool = False  # it has not tried everything yet: what is missing may come
    machines: Mapping[str, str] = field(default_factory=dict)  # who is behind each chain of its remotes; "" is itself


def name_here(there: ResourceName, remote: str, prefix: str) -> ResourceName:
    """What this machine calls a resource that `remote` calls `there`."""
    return ResourceName(there.api, f"{prefix}{there.name}", (remote, *there.remotes))


def wanted(report: Report, before: Collection[ResourceName], this_machine: str) -> set[ResourceName]:
    """Which resources of a remote to have, by its names for them.

    Those that are ready; of those that were there before also what is configured and not well, and everything while
    the remote starts. Never what is this machine's own, seen through others.
    """
    kept = before if report.starting else [name for name in before if name in report.troubles]
    return {name for name in (*report.ready, *kept) if is_wanted(name, report.machines, this_machine)}


def is_wanted(name: ResourceName, machines: Mapping[str, str], this_machine: str) -> bool:
    """Whether a resource of a remote may be had at all."""
    if name.api.namespace == INTERNAL_NAMESPACE or len(name.remotes) >= MAX_DEPTH:
        return False
    if name.api.type == "service" and name.name == BUILT_IN:
        return False
    chains = (":".join(name.remotes[:depth]) for depth in range(len(name.remotes) + 1))
    return this_machine not in {machines.get(chain) for chain in chains}


def behind(remote: str, machines: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Who is behind each chain of remotes that begins with `remote`, from what that one said."""
    for chain, machine in machines.items():
        if chain.count(":") + 2 <= MAX_DEPTH:
            yield (f"{remote}:{chain}" if chain else remote), machine
