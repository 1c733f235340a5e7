"""Explain which network each interface uses, why not the others, and what happens next. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netmgr.model.decision import NetworkDecision
from netmgr.model.events import JoinFailure
from netmgr.model.facts import NetworkFacts, NetworkLink
from netmgr.model.network import UsableNetwork, ssid_text
from netmgr.model.plan import InterfacePlan
from netmgr.model.settings import NetworkSettings
from netmgr.model.words import WORDS
from netmgr.planning.addresses import usable
from netmgr.planning.choice import NetworkChoice, Reason, busy, choices, connected, rank
from netmgr.planning.desired import desired
from netmgr.planning.explanation import InterfaceExplanation, NetworkExplanation, NotUsed, Statement
from netmgr.planning.reasons import Case, Situation, quoted, why_not

_LEFT: Final[Mapping[Reason, Statement]] = {
    Reason.DISABLED: Statement(
        "Network configuration is turned off, so {manager}.", "set disable_network_configuration to false to use it"
    ),
    Reason.NOT_ASKED: Statement("The configuration has no network for it, so {manager}."),
    Reason.NOT_CHOSEN: Statement("No network was chosen for it yet, so {manager}."),
    Reason.ADOPTED: Statement("The network {network} is not from the configuration, so {manager}."),
    Reason.DONE: Statement("It already uses {network}, and {manager}."),
    Reason.UNPLUGGED: Statement("No cable is connected, and {manager}.", "check the cable and the device at its end"),
    Reason.BLOCKED: Statement("A switch of the computer has turned the radio off.", "turn the radio on"),
    Reason.READY: Statement("It joins no network at present."),
}
"""State of an interface without a network of netmgr."""


def explain(
    settings: NetworkSettings,
    facts: NetworkFacts,
    decision: NetworkDecision,
    failures: Mapping[str, Statement],
    next_step: str,
) -> NetworkExplanation:
    """Return what each interface does, and why.

    `failures` has, by label, the last failed attempt of networks that were not joined since. `next_step` is what the
    provisioning machine does next, and when.
    """
    situation = Situation(settings=settings, facts=facts, decision=decision, failures=failures)
    links = {link.name: link for link in facts.links}
    plans = {each.name: each for each in desired(settings, facts, decision).interfaces}
    ranked = sorted(settings.networks, key=rank)
    return NetworkExplanation(
        interfaces=tuple(
            InterfaceExplanation(
                interface=name,
                kind="wired" if links[name].kind == "wired" else "wifi",
                manager=links[name].manager,
                network=choice.network.label if choice.network is not None else "",
                state=_state(links[name], choice, plans.get(name), situation),
                not_used=tuple(
                    NotUsed(
                        network=network.label,
                        why=why_not(Case(network=network, link=links[name], choice=choice, situation=situation)),
                    )
                    for network in ranked
                    if network.kind == links[name].kind and network != choice.network
                ),
            )
            for name, choice in choices(settings, facts, decision).items()
        ),
        not_used=tuple(
            NotUsed(network=network.label, why=_missing(network))
            for network in ranked
            if not any(link.kind == network.kind and network.interface in ("", link.name) for link in facts.links)
        ),
        next_step=next_step,
    )


def _missing(network: UsableNetwork) -> Statement:
    if network.interface:
        return Statement(
            f"This computer has no {network.kind} interface {network.interface}.",
            "connect it, or correct the interface of the network",
        )
    return Statement(f"This computer has no {network.kind} interface.", "connect one")


def _state(link: NetworkLink, choice: NetworkChoice, plan: InterfacePlan | None, situation: Situation) -> Statement:
    """Return what the interface does at present."""
    settings, facts, network = situation.settings, situation.facts, choice.network
    hotspot = settings.hotspot if choice.hotspot else None
    if hotspot is not None and network is None:
        return Statement(f"The hotspot {quoted(ssid_text(hotspot.ssid))} runs on it.")
    if network is None or plan is None:
        if busy(link, settings, facts, situation.decision):
            return Statement(f"Its radio runs the hotspot on {situation.decision.hotspot}.")
        return _left(link, choice)
    statement = _configured(link, network, plan, facts) if connected(link, network, facts) else None
    statement = statement or _unconnected(network, situation.failures)
    if hotspot is None:
        return statement
    return Statement(
        f"{statement.text} Its radio also runs the hotspot {quoted(ssid_text(hotspot.ssid))}.", statement.remedy
    )


def _unconnected(network: UsableNetwork, failures: Mapping[str, Statement]) -> Statement:
    if network.kind == "wired":
        return Statement("No cable is connected.", "check the cable and the device at its end")
    failure = failures.get(network.label)
    if failure is None:
        return Statement(f"It joins {quoted(network.label)}.")
    return Statement(f"It joins {quoted(network.label)} again. The last attempt failed: {failure.text}", failure.remedy)


def _configured(link: NetworkLink, network: UsableNetwork, plan: InterfacePlan, facts: NetworkFacts) -> Statement:
    """Return the state of a connected interface."""
    name, lease = quoted(network.label), facts.leases.get(link.name)
    if not plan.addresses:
        remedy = "check the DHCP server of the network, or set ipv4_address of the network"
        if lease is not None and not usable(lease.address):
            return Statement(f"It is connected with {name}, but DHCP offers {lease.address}: not usable.", remedy)
        return Statement(f"It is connected with {name}, but DHCP has not answered yet.", remedy)
    address = ", ".join(sorted(map(str, plan.addresses)))
    gateways = [each for each in plan.routes if each.destination.prefixlen == 0]
    if not gateways:
        return Statement(
            f"It uses {name} with the address {address}, without a gateway: only the network itself is reached.",
            "set ipv4_gateway of the network if it leads to the internet" if network.static is not None else "",
        )
    gateway, metric = gateways[0].gateway, gateways[0].metric
    text = f"It uses {name} with the address {address}, the gateway {gateway} and the metric {metric}."
    match facts.cloud.get(link.name):
        case True:
            return Statement(f"{text} The cloud answers through it.")
        case False:
            reason, remedy = WORDS[facts.unproved.get(link.name, JoinFailure.NO_INTERNET)]
            return Statement(f"{text} {reason[:1].upper()}{reason[1:]}.", remedy)
        case _:
            return Statement(text)


def _left(link: NetworkLink, choice: NetworkChoice) -> Statement:
    """Return the state of an interface without a network of netmgr."""
    template = _LEFT[choice.reason]
    manager = f"{link.manager} configures it" if link.manager else "no program configures it"
    network = quoted(choice.network.label) if choice.network is not None else ""
    return Statement(template.text.format(manager=manager, network=network), template.remedy)
