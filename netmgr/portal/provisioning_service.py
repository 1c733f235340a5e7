"""viam.provisioning.v1.ProvisioningService: the API with which apps provision the device in its hotspot."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import trio
from msgspec import Struct

from netmgr.model.facts import Cipher
from netmgr.model.network import ssid_text
from netmgr.portal.access import Visitors
from netmgr.portal.backend import PortalActions
from netmgr.portal.entries import document_of, network_of
from netmgr.portal.state import CredentialsEntry, PortalState, SeenNetwork
from rpc.access import group_of
from rpc.api import CallInfo
from schema import ConfigError

SERVICE: Final = "viam.provisioning.v1.ProvisioningService"
WIFI: Final = "wifi"
PROOF: Final = "device-secret"
"""Metadata key of the proof with which a configured device accepts new credentials."""
SECURITY: Final[Mapping[Cipher, str]] = {
    "open": "-",
    "owe": "OWE",
    "wep": "WEP",
    "wpa1": "WPA1",
    "wpa2": "WPA2",
    "wpa3": "WPA3",
    "wpa2-wpa3": "WPA2 WPA3",
    "enterprise": "802.1X",
}
"""Texts of the published API."""


class ProvisioningInfo(Struct, frozen=True):
    """Facts about the product."""

    fragment_id: str
    model: str
    manufacturer: str


class NetworkInfo(Struct, frozen=True):
    """Network that the device has heard, or has tried."""

    type: str
    ssid: str
    security: str = ""
    signal: int = 0
    connected: bool = False
    last_error: str = ""


class SmartMachineStatus(Struct, frozen=True):
    """State of the device."""

    provisioning_info: ProvisioningInfo
    has_smart_machine_credentials: bool
    is_online: bool
    latest_connection_attempt: NetworkInfo | None
    errors: list[str]
    agent_version: str


@dataclass(frozen=True, slots=True)
class ProvisioningService:
    """A call of an app."""

    backend: PortalActions
    proof: str

    async def get_smart_machine_status(self) -> SmartMachineStatus:
        """Return the state of the device."""
        return _status(self.backend.state())

    async def get_network_list(self) -> list[NetworkInfo]:
        """Return the networks that the device has heard."""
        return [_info(network) for network in self.backend.state().networks]

    async def set_network_credentials(self, type: str, ssid: str, psk: str) -> None:  # noqa: A002 - field of the wire
        """Store a wifi network. It is joined after ExitProvisioning, or when the app has been silent."""
        if type != WIFI:
            raise ConfigError("type", f"{type[:50]!r} is not a kind of network", remedy=f"use {WIFI!r}")
        self.backend.enter_network(network_of(ssid.encode(errors="replace"), psk))

    async def set_smart_machine_credentials(self, cloud: Mapping[str, Any]) -> None:
        """Store the credentials of the cloud."""
        document = json.dumps({"cloud": {key: value for key, value in cloud.items() if value}})
        await self.backend.enter_credentials(CredentialsEntry(document=document_of(document), proof=self.proof))

    async def exit_provisioning(self) -> None:
        """Use what was entered."""
        self.backend.leave()


class PortalTarget:
    """Target of the calls: notes that a person is active, and limits the rate of entries."""

    def __init__(
        self, backend: PortalActions, visitors: Visitors, clock: Callable[[], float] = trio.current_time
    ) -> None:
        self._backend, self._visitors, self._clock = backend, visitors, clock

    @asynccontextmanager
    async def call(self, request: CallInfo) -> AsyncIterator[ProvisioningService]:
        """Yield the service. EXHAUSTED after too many entries of the client."""
        if request.method.startswith("set_") or request.method == "exit_provisioning":
            self._visitors.count(group_of(request.peer), self._clock())
        self._backend.interacted()
        yield ProvisioningService(self._backend, str(request.metadata.get(PROOF, "")))


def _status(state: PortalState) -> SmartMachineStatus:
    attempt, errors = state.attempt, []
    latest = None
    if attempt is not None:
        failed = attempt.progress == "failed"
        errors = [attempt.text] if failed else []
        latest = NetworkInfo(
            WIFI,
            ssid_text(attempt.ssid),
            connected=attempt.progress in ("joined", "online"),
            last_error=attempt.text if failed else "",
        )
    return SmartMachineStatus(
        ProvisioningInfo(state.fragment_id, state.model, state.manufacturer),
        state.configured,
        state.online,
        latest,
        errors,
        state.agent_version,
    )


def _info(network: SeenNetwork) -> NetworkInfo:
    return NetworkInfo(
        WIFI, ssid_text(network.ssid), SECURITY[network.cipher], network.percent, network.connected, network.last_error
    )
