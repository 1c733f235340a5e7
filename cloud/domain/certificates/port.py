"""TLS certificate of the cloud's own port: from files, or signed by the cloud's own authority.

With the own authority, each replica creates a certificate and keeps it in memory. It creates another one when the
certificate is old, when the computer's addresses change and when the authority was rotated. Open connections keep the
certificate that they started with.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog
import trio

from cloud.domain.certificates import authorities
from cloud.domain.certificates.authorities import PORT
from cloud.domain.certificates.issue import LIFE, RENEW, CertificatePair, is_dns_name, new_leaf
from cloud.domain.certificates.machine_names import LOOPBACK, canonical
from cloud.store.events import Events
from cloud.store.sql import Sql, Store
from cloud.values.times import Clock, now
from rpc.network import InMemoryTls, ServerTls, TlsError, outward, parse_address, watch_changes
from schema import MachineError
from support import ChangeSignal
from support.files import follow_files

CHECK_INTERVAL: Final = 3600.0  # seconds between checks without an event: another process may rotate the authority
SETTLE: Final = 1.0  # seconds to wait after an event: addresses appear one by one
RETRY: Final = 30.0  # seconds until a retry after a failure, such as an unavailable database

_log = structlog.get_logger("cloud")


class PortTls(Protocol):
    """An rpc.network.tls.Context that also has the names in its certificate."""

    plain_locally: bool

    @property
    def context(self) -> ssl.SSLContext | None:
        """TLS context of the next connection; None while there is no certificate, then the port uses plain text."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which clients reach this port: those in the certificate, without loopback names."""
        ...

    @property
    def own(self) -> bool:
        """Whether the cloud's own authority signed it, so that clients must be given that authority."""
        ...


class FromFiles:
    """A certificate and its key from files, reloaded when they change. TlsError if they cannot be used."""

    plain_locally = False
    own = False

    def __init__(self, certificate: Path, key: Path) -> None:
        self._tls = ServerTls(certificate, key)
        self._last_error = ""

    @property
    def context(self) -> ssl.SSLContext | None:
        """TLS context of the next connection; None while there is no certificate, then the port uses plain text."""
        return self._tls.context

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which clients reach this port: those in the certificate, without loopback names."""
        return _without_loopback(self._tls.facts.names)

    async def run(self) -> None:
        """Follow the files until cancelled. Unusable files are logged, and the certificate in use stays."""
        await follow_files((self._tls.certificate, self._tls.key), self._reload, self._refused)
        await trio.sleep_forever()

    def _reload(self) -> None:
        try:
            if self._tls.reload():
                _log.info("the certificate was renewed", not_after=self._tls.facts.not_after.isoformat())
            self._last_error = ""
        except TlsError as error:
            if str(error) != self._last_error:
                self._last_error = str(error)
                _log.error("the new certificate cannot be used; the one in use stays", reason=str(error))

    def _refused(self, path: Path | None, error: OSError) -> None:
        _log.error("a renewed certificate will not be noticed", path=str(path or ""), reason=error.strerror)


@dataclass(slots=True)
class FromAuthority:
    """A certificate signed by the cloud's own authority, renewed in time. Call `look` first, then start `run`."""

    store: Store
    events: Events
    current_names: Callable[[], Sequence[str]]  # returns the names that the certificate should have now
    clock: Clock = now
    life: timedelta = LIFE
    renewed: timedelta = RENEW  # age at which it is replaced
    plain_locally: bool = False
    own: bool = True
    _held: InMemoryTls = field(default_factory=InMemoryTls)
    _signed_for: tuple[int, tuple[str, ...]] = (0, ())  # authority number and names of the certificate in use
    _created: datetime | None = None

    @property
    def context(self) -> ssl.SSLContext | None:
        """TLS context of the next connection; None while there is no certificate, then the port uses plain text."""
        return self._held.context

    @property
    def names(self) -> tuple[str, ...]:
        """Names by which clients reach this port: those in the certificate, without loopback names."""
        return _without_loopback(self._signed_for[1])

    async def look(self) -> bool:
        """Create a new certificate if necessary; return whether it did. MachineError if the database is unavailable."""
        moment, names = self.clock(), tuple(self.current_names())
        authority = await self.store.read(lambda sql: authorities.signing_authority(sql, PORT))
        outdated = self._created is None or not timedelta() <= moment - self._created < self.renewed
        if authority is not None and not outdated and self._signed_for == (authority.number, names):
            return False
        number, pair = await self.store.write(partial(_signed, names, moment, self.life))
        self._held.take(pair.certificate.encode(), pair.key.encode())
        self._signed_for, self._created = (number, names), moment
        assert self._held.facts is not None
        _log.info(
            "created a certificate for this port", names=list(names), not_after=self._held.facts.not_after.isoformat()
        )
        return True

    async def run(self) -> None:
        """Renew the certificate until cancelled: when it is due, and when the authority or the addresses change."""
        due = ChangeSignal()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hear, due.announce)
            nursery.start_soon(watch_changes, due.announce)
            last_error = ""
            while True:
                change = due.next
                try:
                    await self.look()
                    pause, last_error = CHECK_INTERVAL, ""
                except MachineError as error:
                    pause = RETRY
                    if str(error) != last_error:
                        last_error = str(error)
                        _log.warning("the certificate of this port cannot be renewed", reason=last_error)
                with trio.move_on_after(min(pause, self.renewed.total_seconds())):
                    await change.wait()
                    await trio.sleep(SETTLE)

    async def _hear(self, ring: Callable[[], None]) -> None:
        with self.events.listening(authorities.TOPIC) as news:
            while True:
                await news.all()
                ring()


def _signed(names: Sequence[str], moment: datetime, life: timedelta, sql: Sql) -> tuple[int, CertificatePair]:
    authority = authorities.current(sql, PORT, moment)
    leaf = new_leaf(authority.pair, names, moment, life)
    return authority.number, CertificatePair(leaf.certificate + authorities.chain(sql, PORT, moment), leaf.key)


def port_names(listen: str, url: str, configured: Iterable[str], *, machine_domain: str = "") -> tuple[str, ...]:
    """Return the names by which clients may reach a port that listens at `listen` (`host:port`).

    The `configured` names come first. A port on all interfaces has the computer's names and addresses. `url` is the
    address that clients use, or "". `machine_domain` is the domain of machines' host names, or "".
    """
    host = canonical(parse_address(listen, path="--listen")[0])
    names = [canonical(name) for name in configured]
    if url and (host_in_url := urlsplit(url).hostname):
        names.append(canonical(host_in_url))
    if host in ("", "0.0.0.0", "::"):
        names += [*_host_names(), *outward()]
    elif host != "localhost":
        names.append(host)
    valid = [name for name in names if name and (is_dns_name(name) or ":" in name)]
    wildcard = [f"*.{machine_domain}"] if machine_domain else []
    return tuple(dict.fromkeys([*valid, *wildcard, *LOOPBACK]))


def _host_names() -> Iterable[str]:
    name = canonical(socket.gethostname())
    yield name
    yield f"{name.partition('.')[0]}.local"


def _without_loopback(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in map(canonical, names) if name not in LOOPBACK)
