"""DHCP clients of the interfaces, as tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from netmgr.dhcp.client import ClientIdentity
from netmgr.dhcp.run import run_client
from netmgr.model.facts import AddressLease
from netmgr.model.plan import StartDhcp, StopDhcp
from netmgr.observation.board import FactsBoard
from netmgr.service.tasks import Tasks
from schema import ErrorKind, MachineError

Remember = Callable[[str, bytes, AddressLease], Awaitable[None]]
"""Stores the lease of an interface in a network, so that it is requested again."""


class AddressLeases:
    """Runs DHCP clients, and puts their leases on the board."""

    def __init__(
        self,
        board: FactsBoard,
        tasks: Tasks,
        hostname: str,
        remembered: Callable[[str, bytes], AddressLease | None],
        remember: Callable[[str, bytes, AddressLease], None],
    ) -> None:
        self._board, self._tasks, self._hostname = board, tasks, hostname
        self._remembered, self._remember = remembered, remember

    def resume(self, name: str) -> None:
        """Continue to use the lease of an earlier agent, if its address is still that of the interface."""
        lease, link = self._remembered(name, self._ssid(name)), self._board.facts().link(name)
        if lease is not None and link is not None and lease.address in {each.value for each in link.addresses}:
            self._board.put_for("leases", name, lease)

    async def start(self, effect: StartDhcp) -> None:
        """Start a client."""
        name = effect.interface
        link = self._board.facts().link(name)
        if link is None:
            raise MachineError(f"there is no interface {name}", kind=ErrorKind.NOT_FOUND)
        ssid = self._ssid(name)
        identity = ClientIdentity(mac=bytes.fromhex(link.mac.replace(":", "")), hostname=self._hostname)
        self._tasks.start(
            f"dhcp/{name}",
            lambda: run_client(
                name, identity, self._remembered(name, ssid), partial(self._changed, name, ssid),
                in_use=self._board.facts().leases.get(name),
            ),
        )  # fmt: skip
        self._board.put(dhcp=self._board.facts().dhcp | {name})

    async def stop(self, effect: StopDhcp) -> None:
        """Stop a client, and forget its lease; it is remembered on disk."""
        await self._tasks.stop(f"dhcp/{effect.interface}")
        self._board.put(dhcp=self._board.facts().dhcp - {effect.interface})
        self._board.put_for("leases", effect.interface, None)

    def _ssid(self, name: str) -> bytes:
        association = self._board.facts().associations.get(name)
        return association.ssid if association is not None else b""

    def _changed(self, name: str, ssid: bytes, lease: AddressLease | None) -> None:
        self._board.put_for("leases", name, lease)
        if lease is not None:
            self._remember(name, ssid, lease)
