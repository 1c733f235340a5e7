"""Trial of changed networks from the cloud: unless the cloud answers through them, the former ones return. Pure.

The record is stored before it takes effect. `applied` says which networks apply. A power cut ends a trial: `restarted`
lets the former networks apply, and the change is tried once more when the device is online again. A change that the
power cut has kept from its first trial waits as well: it would apply without one while the device is not online.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec
from msgspec.structs import replace

from netmgr.model.facts import NetworkFacts
from netmgr.model.network import Secret, UsableNetwork

LIMIT: Final = 120.0  # seconds of a trial
TRIES: Final = 2  # of the same change: the second one only after a power cut

Networks = tuple[UsableNetwork, ...]


class TrialResult(StrEnum):
    """How a change has ended."""

    APPLIED = "applied"  # it was no danger to the connection
    CONFIRMED = "confirmed"  # the cloud has answered through a changed network
    REVERTED = "reverted"  # the cloud has not answered within LIMIT
    INTERRUPTED = "interrupted"  # the device was restarted in the last trial


TEXTS: Final[dict[TrialResult, str]] = {
    TrialResult.APPLIED: "The networks were changed.",
    TrialResult.CONFIRMED: "The networks were changed, and the cloud answers through them.",
    TrialResult.REVERTED: f"The cloud did not answer through the changed networks within {LIMIT:.0f} seconds: the "
    "former networks are used. Correct the networks in the configuration.",
    TrialResult.INTERRUPTED: f"The device was restarted in {TRIES} trials of the changed networks: the former networks "
    "are used. Correct the networks in the configuration, or change them in any way to try them again.",
}
"""Outcome for people, for the report to the cloud."""


class TrialRecord(Secret, frozen=True, kw_only=True, omit_defaults=True):
    """Networks of the cloud, and a change of them. Everything but `started` is stored."""

    networks: Networks = ()
    """Networks that apply without a trial."""
    change: Networks | None = None
    """Networks that are, or will be, on trial."""
    tries: int = 0
    """Trials of `change` that have begun."""
    started: float | None = None
    """When the trial that runs now has begun; None: none runs. Not stored: no trial survives a restart."""
    former_until: float | None = None
    """Until when, after a restart, the former networks apply and a change waits for the device to be online. Not
    stored."""
    rejected: Networks | None = None
    """Networks that were given up. They are ignored until the cloud sends others."""
    result: TrialResult | None = None
    """Of the last change."""


class TrialProof(msgspec.Struct, frozen=True, kw_only=True):
    """The cloud has answered through an interface."""

    interface: str
    asked: float
    """When it was asked: after the effects of the present plan."""


def stored(record: TrialRecord) -> TrialRecord:
    """Return the record as it must be on the disk."""
    return replace(record, started=None, former_until=None)


def applied(record: TrialRecord) -> Networks:
    """Return the networks of the cloud that apply now."""
    return record.change if record.started is not None and record.change is not None else record.networks


def offer(record: TrialRecord, networks: Networks, facts: NetworkFacts) -> TrialRecord:
    """Return the record after the cloud has sent its networks, which are now wanted.

    Call it with each configuration, and with the last one when the device gets online: so a change whose trial was
    interrupted is tried once more. A change takes effect without a trial if the device is not online through any of the
    networks that it changes, and no other trial runs. After a restart, that is judged when the device is online, or
    after LIMIT.
    """
    if networks in (record.rejected, applied(record)):
        if networks != record.networks or record.change is None:
            return record
        return TrialRecord(networks=networks, result=record.result)  # the change was withdrawn
    is_online = any(facts.cloud.values())
    waits = record.former_until is not None and facts.now < record.former_until
    if waits and not is_online and record.networks:
        return record if networks == record.change else replace(record, change=networks, tries=0)
    repeated = networks == record.change and record.tries > 0
    if repeated and not is_online:
        return record
    running = record.started is not None and networks != record.networks
    if not repeated and not running and not _is_risky(record.networks, networks, facts):
        return TrialRecord(networks=networks, result=TrialResult.APPLIED)
    tries = record.tries + 1 if repeated else 1
    return TrialRecord(networks=record.networks, change=networks, tries=tries, started=facts.now)


def advance(record: TrialRecord, proof: TrialProof | None, facts: NetworkFacts) -> TrialRecord:
    """Return the record after a proof, or at `wake_at`."""
    if record.started is None or record.change is None:
        return record
    if proof is not None and proof.asked >= record.started and _counts(record, proof.interface, facts):
        return TrialRecord(networks=record.change, result=TrialResult.CONFIRMED)
    if facts.now >= record.started + LIMIT:
        return TrialRecord(networks=record.networks, rejected=record.change, result=TrialResult.REVERTED)
    return record


def restarted(record: TrialRecord, now: float) -> TrialRecord:
    """Return the record after a restart at `now`: the former networks apply. Call it once, with the stored record."""
    if record.change is not None and record.tries >= TRIES:
        record = TrialRecord(networks=record.networks, rejected=record.change, result=TrialResult.INTERRUPTED)
    return replace(stored(record), former_until=now + LIMIT)


def wake_at(record: TrialRecord) -> float | None:
    """Return when the trial ends, or when a change need not wait any more; None: there is neither."""
    if record.started is not None:
        return record.started + LIMIT
    return record.former_until if record.change is not None and record.tries == 0 else None


def changed(before: Networks, after: Networks) -> frozenset[str]:
    """Return the labels of networks that are new, removed or different."""
    old, new = ({network.label: network for network in networks} for networks in (before, after))
    return frozenset(label for label in old.keys() | new.keys() if old.get(label) != new.get(label))


def _is_risky(before: Networks, after: Networks, facts: NetworkFacts) -> bool:
    """Return whether the device is online through a network that is changed."""
    labels = changed(before, after)
    return any(
        good and any(_uses(network, interface, facts) for network in before + after if network.label in labels)
        for interface, good in facts.cloud.items()
    )


def _counts(record: TrialRecord, interface: str, facts: NetworkFacts) -> bool:
    """Return whether an answer through this interface confirms the change: it uses a changed network, or the change
    only removes networks."""
    labels, change = changed(record.networks, record.change or ()), record.change or ()
    present = [network for network in change if network.label in labels]
    return not present or any(_uses(network, interface, facts) for network in present)


def _uses(network: UsableNetwork, interface: str, facts: NetworkFacts) -> bool:
    """Return whether an interface uses a network: the one that it has joined, or any wired one for it."""
    if network.kind == "wifi":
        return facts.joining.get(interface) == network.label
    kinds = {link.name: link.kind for link in facts.links}
    return kinds.get(interface) == "wired" and network.interface in ("", interface)
