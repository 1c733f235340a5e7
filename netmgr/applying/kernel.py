"""Handlers of the effects that change the kernel, and of those that take interfaces over and give them back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from netmgr.applying.executor import Handlers
from netmgr.model.facts import Manager, NetworkLink
from netmgr.model.plan import (
    AddAddress,
    AddRoute,
    DeleteAddress,
    DeleteRoute,
    GiveBack,
    SetRouterAdvertisements,
    SetUp,
    TakeOver,
    Unblock,
)
from netmgr.netlink.advertisements import accept, reset
from netmgr.netlink.rfkill import Switches
from netmgr.netlink.route import Kernel
from netmgr.observation.board import FactsBoard
from netmgr.owners.detect import owner_named
from netmgr.owners.owner import Owner
from schema import ErrorKind, MachineError

Own = Callable[[str, Manager | None], Awaitable[None]]
"""Stores the former manager of an interface before it is taken over, and None after it is given back."""


class KernelEffects:
    """Effects on the kernel, and on the former managers of interfaces.

    `own` records takeovers, and `former_manager` returns what it has recorded. `forget` makes the manager be
    asked again.
    """

    def __init__(
        self,
        board: FactsBoard,
        kernel: Kernel,
        switches: Switches,
        owners: Sequence[Owner],
        former_manager: Callable[[str], Manager],
        own: Own,
        forget: Callable[[str], None],
    ) -> None:
        self._board, self._kernel, self._switches, self._owners = board, kernel, switches, owners
        self._former_manager, self._own, self._forget = former_manager, own, forget

    def handlers(self) -> Handlers:
        """Return the handlers."""
        return {
            TakeOver: self._take_over,
            GiveBack: self._give_back,
            Unblock: self._unblock,
            SetUp: self._set_up,
            SetRouterAdvertisements: self._router_advertisements,
            AddAddress: self._add_address,
            DeleteAddress: self._delete_address,
            AddRoute: self._add_route,
            DeleteRoute: self._delete_route,
        }

    def _link(self, name: str) -> NetworkLink:
        for link in self._board.facts().links:
            if link.name == name:
                return link
        raise MachineError(f"there is no interface {name}", kind=ErrorKind.NOT_FOUND)

    async def _take_over(self, effect: TakeOver) -> None:
        owner = owner_named(effect.manager, self._owners)
        await self._own(effect.interface, effect.manager)
        if owner is not None:
            await owner.take(effect.interface)
        self._forget(effect.interface)
        link = self._link(effect.interface)
        for address in link.addresses:
            if address.value.version == 4:  # the kernel deletes the routes with the last address
                await self._kernel.delete_address(link.index, address.value)
        reset(effect.interface)

    async def _give_back(self, effect: GiveBack) -> None:
        owner = owner_named(self._former_manager(effect.interface), self._owners)
        if owner is not None:
            await owner.give_back(effect.interface)
        await self._own(effect.interface, None)
        self._forget(effect.interface)

    async def _unblock(self, effect: Unblock) -> None:
        self._switches.unblock(effect.radio)

    async def _set_up(self, effect: SetUp) -> None:
        await self._kernel.set_up(self._link(effect.interface).index, mtu=effect.mtu)

    async def _router_advertisements(self, effect: SetRouterAdvertisements) -> None:
        accept(effect.interface, effect.metric)

    async def _add_address(self, effect: AddAddress) -> None:
        await self._kernel.add_address(self._link(effect.interface).index, effect.address)

    async def _delete_address(self, effect: DeleteAddress) -> None:
        await self._kernel.delete_address(self._link(effect.interface).index, effect.address)

    async def _add_route(self, effect: AddRoute) -> None:
        await self._kernel.add_route(self._link(effect.interface).index, effect.route)

    async def _delete_route(self, effect: DeleteRoute) -> None:
        await self._kernel.delete_route(self._link(effect.interface).index, effect.route)
