"""Commands for people at the device: status, scan, join, forget and explain."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import trio

from netmgr.model.events import JoinFailure
from netmgr.model.facts import NetworkFacts
from netmgr.model.network import Open, Personal, UsableNetwork, ssid_text
from netmgr.model.words import WORDS, explained
from netmgr.planning.explain import explain
from netmgr.planning.explanation import Statement
from netmgr.portal.entries import network_of
from netmgr.provisioning.states import Entered
from netmgr.service.backend import PortalBackend, seen
from netmgr.service.core import NetworkService
from netmgr.service.labels import console_label
from netmgr.store.stored import StoredNetworks, without_network
from schema import ConfigError, ErrorKind, MachineError

JOIN_LIMIT: Final = 90.0
"""Seconds in which `join` shows the progress."""
SCAN_LIMIT: Final = 20.0


class NetworkCommands:
    """Commands of the control socket. `entered` adds a network to those that people have entered."""

    def __init__(
        self,
        service: NetworkService,
        entered: Callable[[tuple[UsableNetwork, ...], UsableNetwork], tuple[UsableNetwork, ...]],
    ) -> None:
        self._service, self._entered = service, entered

    async def status(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Return the interfaces, the mode, and the hotspot."""
        yield network_status(self._service)

    async def explain(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Return which network is used on each interface, why not the others, and what happens next."""
        yield network_explanation(self._service)

    async def scan(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Listen, and return the networks, the strongest first."""
        board = self._service.board
        before = max((point.seen for point in board.facts().access_points), default=-1.0)
        self._service.scan()
        with trio.move_on_after(SCAN_LIMIT):
            while max((point.seen for point in board.facts().access_points), default=-1.0) <= before:
                await board.changed.wait()
        facts = board.facts()
        joined = {entry.ssid for entry in facts.associations.values()}
        yield {
            "networks": [
                {
                    "ssid": ssid_text(entry.ssid),
                    "security": entry.cipher,
                    "signal": entry.percent,
                    "joined": entry.connected,
                }
                for entry in seen(facts.access_points, joined, {}, {})
            ]
        }

    async def join(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Store the network `ssid` with its `password`, and join it; yield the progress."""
        ssid, password = arguments.get("ssid"), arguments.get("password", "")
        if not isinstance(ssid, str) or not isinstance(password, str):
            raise ConfigError("ssid", "is missing", remedy="name the network")
        entry = network_of(ssid.encode(), password, hidden=arguments.get("hidden") is True)
        network = UsableNetwork(
            label=console_label(entry.ssid),
            kind="wifi",
            source="console",
            ssid=entry.ssid,
            security=Personal(passphrase=entry.passphrase) if entry.passphrase else Open(),
            hidden=entry.hidden,
        )

        def change(stored: StoredNetworks) -> StoredNetworks:
            return msgspec.structs.replace(stored, networks=self._entered(stored.networks, network))

        self._service.enter(change, Entered(label=network.label, now=True))
        yield {"text": f"joining {ssid_text(entry.ssid)}"}
        with trio.move_on_after(JOIN_LIMIT):
            while True:
                changed = self._service.board.changed
                outcome = self._service.outcome
                attempt = outcome.state.attempt if outcome is not None else None
                if attempt is not None and attempt.label == network.label:
                    if attempt.progress == "joined":
                        yield {"text": "joined", "joined": True}
                        return
                    if attempt.progress == "failed":
                        reason = explained(attempt.failure, attempt.detail) if attempt.failure else attempt.detail
                        raise MachineError(
                            f"{ssid_text(entry.ssid)} cannot be joined: {reason}", kind=ErrorKind.UNAVAILABLE
                        )
                await changed.wait()
        yield {"text": "it is still being joined: see `machine agent network status`", "joined": False}

    async def forget(self, arguments: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """Forget a network that was entered on the device, by its label or SSID."""
        name = str(arguments.get("name", ""))
        networks = self._service.store.stored.networks
        matches = [network for network in networks if name in (network.label, ssid_text(network.ssid))]
        if not matches:
            names = ", ".join(network.label for network in networks) or "none"
            raise MachineError(
                f"no network {name!r} was entered on this device", kind=ErrorKind.NOT_FOUND,
                remedy=f"entered networks: {names}; others are part of the configuration or of another program",
            )  # fmt: skip
        for network in matches:
            self._service.enter(partial(without_network, label=network.label))
        yield {"forgotten": [network.label for network in matches]}


def network_status(service: NetworkService) -> dict[str, Any]:
    """Return the state of the network, without secrets except those of the hotspot, which its socket protects."""
    facts, outcome, settings = service.board.facts(), service.outcome, service.settings
    hotspot = settings.hotspot
    return {
        "mode": outcome.state.mode.value if outcome is not None else "",
        "next": next_text(service),
        "interfaces": [_interface(facts, link.name) for link in facts.links if link.kind != "other"],
        "hotspot": {
            "runs_on": facts.hotspot,
            "ssid": ssid_text(hotspot.ssid) if hotspot is not None else "",
            "password": hotspot.password if hotspot is not None else "",
        },
        "device_secret": service.store.stored.device_secret,
        "problems": list(service.problems),
    }


def _interface(facts: NetworkFacts, name: str) -> dict[str, Any]:
    link, association = facts.link(name), facts.associations.get(name)
    assert link is not None
    return {
        "name": name,
        "kind": link.kind,
        "manager": link.manager,
        "connected": link.carrier,
        "addresses": [str(address.value) for address in link.addresses if not address.value.is_link_local],
        "network": facts.joining.get(name, ""),
        "ssid": ssid_text(association.ssid) if association is not None else "",
        "signal": association.signal if association is not None else None,
        "cloud": facts.cloud.get(name),
    }


def network_explanation(service: NetworkService) -> dict[str, Any]:
    """Return the explanation for people."""
    outcome, facts = service.outcome, service.board.facts()
    tried = outcome.state.tried if outcome is not None else {}
    failures = {label: Statement(*_sentences(entry.failure)) for label, entry in tried.items()}
    result = explain(service.settings, facts, service.decision, failures, next_text(service))
    value: dict[str, Any] = msgspec.to_builtins(result)
    return value


def _sentences(failure: JoinFailure) -> tuple[str, str]:
    reason, remedy = WORDS[failure]
    return f"{reason[:1].upper()}{reason[1:]}.", remedy


def next_text(service: NetworkService) -> str:
    """Return what happens next and when, for people."""
    backend = service.backend
    return backend.next_text() if isinstance(backend, PortalBackend) else ""
