"""Names and selects the resources of a remote on this machine: pure.

`left` of the remote `pi` is `pi:left` here; with the prefix `lab-` it is `pi:lab-left`. A resource that the remote has
from a remote of its own also keeps the name of that remote: `pi:deck:left`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from schema import INTERNAL_NAMESPACE, ResourceName

BUILT_IN: Final = "builtin"
"""Name of the services that every machine has; each machine uses its own."""

MACHINES_KEY: Final = "machine-instances"
"""Metadata key of ResourceNames replies, specific to this project: the machine of each chain of remotes, as JSON."""

MAX_DEPTH: Final = 8
"""Maximum length of a chain of remotes. Cycles among machines that identify themselves end at the first repetition."""


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """The state that a remote reports."""

    ready: frozenset[ResourceName]  # by their names on the remote
    troubles: Mapping[ResourceName, str] = field(default_factory=dict)  # reasons of resources that are not ready
    starting: bool = False  # resources may still be missing, because it has not started all of them
    machines: Mapping[str, str] = field(default_factory=dict)  # machine of each chain of its remotes; "" is itself


def name_here(remote_name: ResourceName, remote: str, prefix: str) -> ResourceName:
    """Return the name on this machine of the resource that `remote` calls `remote_name`."""
    return ResourceName(remote_name.api, f"{prefix}{remote_name.name}", (remote, *remote_name.remotes))


def usable_names(report: RemoteReport, previous: Collection[ResourceName], this_machine: str) -> set[ResourceName]:
    """Return the resources of a remote to use, by their names on the remote.

    These are the ready ones and, of those in `previous`, the ones that are configured but not ready (while the remote
    starts, all). Resources of this machine that come back through a remote are excluded.
    """
    kept = previous if report.starting else [name for name in previous if name in report.troubles]
    return {name for name in (*report.ready, *kept) if is_usable(name, report.machines, this_machine)}


def is_usable(name: ResourceName, machines: Mapping[str, str], this_machine: str) -> bool:
    """Return whether a resource of a remote may be used at all."""
    if name.api.namespace == INTERNAL_NAMESPACE or len(name.remotes) >= MAX_DEPTH:
        return False
    if name.api.type == "service" and name.name == BUILT_IN:
        return False
    chains = (":".join(name.remotes[:depth]) for depth in range(len(name.remotes) + 1))
    return this_machine not in {machines.get(chain) for chain in chains}


def behind(remote: str, machines: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield each chain of remotes that begins with `remote` and its machine, from the `machines` of its report."""
    for chain, machine in machines.items():
        if chain.count(":") + 2 <= MAX_DEPTH:
            yield (f"{remote}:{chain}" if chain else remote), machine
