"""Multicast DNS on one interface: probes, announcements, answers, conflicts, goodbye. RFC 6762 8 to 10."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Container, Sequence
from ipaddress import ip_address
from typing import Any, Final, Protocol

import trio

from rpc.network import Address
from rpc.network.mdns import PORT, DnsRecord, MdnsError, Message, decode, encode
from runtime.parts.mdns.names import Names
from runtime.parts.mdns.places import AnnouncedPlace
from runtime.parts.mdns.records import Zone
from runtime.parts.mdns.replies import Replies, is_shared

# RFC 6762 8.1 and 8.2
PROBES: Final = 3
PROBE_PAUSE: Final = 0.25  # seconds
DEFER_PAUSE: Final = 1.0  # seconds until a prober that lost against another prober tries again
MANY_CONFLICTS: Final = 15  # conflicts until the pause gets longer
CONFLICT_PAUSE: Final = 5.0  # seconds

ANNOUNCE_PAUSE: Final = 1.0  # seconds between the two announcements; RFC 6762 8.3
SHARED_DELAY: Final = (0.02, 0.12)  # seconds before an answer that others may also give; RFC 6762 6
TRUNCATED_DELAY: Final = (0.4, 0.5)  # seconds to wait for further known answers; RFC 6762 7.2
PENDING: Final = 64  # answers waiting at the same time; further queries are not answered
GOODBYE_LIMIT: Final = 1.0  # seconds


class Carrier(Protocol):
    """The datagrams of one address family on an interface; implemented by `carrier.Socket`."""

    async def multicast(self, data: bytes) -> None:
        """Send to the multicast group."""

    async def unicast(self, data: bytes, address: tuple[Any, ...]) -> None:
        """Send to one address."""

    async def receive(self, received: Callable[[bytes, tuple[Any, ...], Any], Awaitable[None]]) -> None:
        """Call `received` with data, sender and carrier for each datagram, until cancelled."""

    def close(self) -> None:
        """Close the socket."""


class Announcer:
    """Announces `names` at one place. `own` is a live collection of all addresses of the computer."""

    def __init__(
        self,
        place: AnnouncedPlace,
        names: Names,
        own: Container[Address],
        log: Any,
        *,
        chance: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.place = place
        self.announced = False
        self.names = names  # the current names, which differ from the original ones after conflicts
        self._original = names
        self._own = own
        self._log = log
        self._chance = chance
        self._carriers: Sequence[Carrier] = ()
        self._conflict = trio.Event()  # another host has one of the names
        self._deferred = trio.Event()  # another host that probes at the same time takes precedence
        self._pending: dict[tuple[Any, ...], list[DnsRecord]] = {}  # known answers, by the address of the sender

    async def run(self, carriers: Sequence[Carrier]) -> None:
        """Announce the names until cancelled; then send a goodbye."""
        self._carriers = carriers
        self._begin(1)
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for carrier in carriers:
                    nursery.start_soon(carrier.receive, self._received)
                await self._live()
        finally:
            if self.announced:
                with trio.move_on_after(GOODBYE_LIMIT, shield=True):
                    await self._send(self._replies.goodbye())

    def _begin(self, number: int) -> None:
        self.names = self._original.renamed(number)
        self._replies = Replies(Zone(self.names, self.place.port, self.place.addresses, self._own))
        self._conflict, self._deferred = trio.Event(), trio.Event()

    async def _live(self) -> None:
        number = 1
        while True:
            if await self._probe():
                self.announced = True
                self._log.info(
                    "announced by multicast DNS",
                    interface=self.place.interface.name,
                    name=".".join(self.names.hosts[0]),
                    addresses=[str(address) for address in self.place.addresses],
                    **({"taken": ".".join(self._original.hosts[0])} if number > 1 else {}),
                )
                await self._announce()
                self.announced = False
                self._log.warning("another host announces the same name", name=".".join(self.names.hosts[0]))
            elif self._conflict.is_set():
                number += 1
                self._log.debug("a name is taken on the local network", name=".".join(self.names.hosts[0]))
                if number == MANY_CONFLICTS + 1:
                    self._log.warning(
                        "all names tried on the local network are taken; retrying more slowly",
                        interface=self.place.interface.name,
                        taken=".".join(self._original.hosts[0]),
                        tried=MANY_CONFLICTS,
                        remedy="give the machine another name; until then, clients reach it by its address",
                    )
                if number > MANY_CONFLICTS:
                    await trio.sleep(CONFLICT_PAUSE)
            else:
                await trio.sleep(DEFER_PAUSE)
            self._begin(number)

    async def _probe(self) -> bool:
        """Probe for the names. Return True if no other host objected."""
        await trio.sleep(self._chance(0, PROBE_PAUSE))
        for _ in range(PROBES):
            await self._send(self._replies.probe())
            with trio.move_on_after(PROBE_PAUSE):
                async with trio.open_nursery() as nursery:
                    for event in (self._conflict, self._deferred):
                        nursery.start_soon(_then_cancel, event, nursery.cancel_scope)
            if self._conflict.is_set() or self._deferred.is_set():
                return False
        return True

    async def _announce(self) -> None:
        """Announce the names twice, then wait for a conflict."""
        await self._send(self._replies.announcement(trio.current_time()))
        with trio.move_on_after(ANNOUNCE_PAUSE):
            await self._conflict.wait()
            return
        await self._send(self._replies.announcement(trio.current_time()))
        await self._conflict.wait()

    # ---- received messages

    async def _received(self, data: bytes, address: tuple[Any, ...], carrier: Carrier) -> None:
        try:
            message = decode(data)
        except MdnsError:
            return
        if message.response:
            if address[1] == PORT and self._replies.conflict(message) is not None:
                self._conflict.set()
            return
        if not self.announced:
            if message.authorities and self._replies.loses(message):
                self._deferred.set()
            return
        await self._query_received(message, address, carrier)

    async def _query_received(self, query: Message, address: tuple[Any, ...], carrier: Carrier) -> None:
        if address[1] != PORT:
            await self._send_to(carrier, address, self._replies.legacy(query))
        elif address in self._pending:
            self._pending[address].extend(query.answers)
            if query.questions:
                self._answer_later(query, address)
        elif query.authorities:  # a probe: the owner of the name answers without delay
            await self._send(self._replies.alone(query, ()))
        elif query.questions and all(question.unicast for question in query.questions):
            await self._send_to(carrier, address, self._replies.alone(query, query.answers))
        elif query.questions:
            self._answer_later(query, address)

    def _answer_later(self, query: Message, address: tuple[Any, ...]) -> None:
        if len(self._pending) < PENDING:
            self._pending.setdefault(address, []).extend(query.answers)
            self._nursery.start_soon(self._answer, query, address)

    async def _answer(self, query: Message, address: tuple[Any, ...]) -> None:
        replies = self._replies
        likely = replies.alone(query, ())
        try:
            if query.truncated:
                await trio.sleep(self._chance(*TRUNCATED_DELAY))
            elif likely is not None and is_shared(likely):
                await trio.sleep(self._chance(*SHARED_DELAY))
        finally:
            known_answers = self._pending.pop(address, [])
        if self.announced and replies is self._replies:
            await self._send(replies.to(query, known_answers, trio.current_time()))

    # ---- sent messages

    async def _send(self, message: Message | None) -> None:
        if message is not None:
            data = encode(message)
            for carrier in self._carriers:
                await carrier.multicast(data)

    async def _send_to(self, carrier: Carrier, address: tuple[Any, ...], message: Message | None) -> None:
        if message is not None and _is_near(address):
            await carrier.unicast(encode(message), address)


def _is_near(address: tuple[Any, ...]) -> bool:
    """Return whether `address` is neither multicast nor unspecified, so that a forged sender cannot spread answers."""
    host = ip_address(str(address[0]))
    return not (host.is_multicast or host.is_unspecified)


async def _then_cancel(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
