"""The machine's certificate from the cloud: asked for, kept on the disk, served by the port as soon as it is there."""

from __future__ import annotations

import random
import socket
from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from rpc.api.client import ApiClient
from rpc.tls import HeldTls, TlsError
from schema.errors import ErrorKind, MachineError
from uplink import cached
from uplink.authorities import CloudAuthorities
from uplink.dial import CloudAddress

if TYPE_CHECKING:
    from support.worker import Worker

SERVICE: Final = "viam.app.v1.RobotService"
CLAIMED: Final = "machine-names"
"""Metadata of the call: host names and addresses of this machine, with commas between them."""

HOUR: Final = 3600.0  # seconds between two questions while all is well; the cloud answers with the same until it is old
CALL_LIMIT: Final = 15.0  # seconds
FIRST_DELAY: Final = 1.0
MAX_DELAY: Final = 60.0
QUIET: Final = 1.0  # seconds after a change of addresses: they come one by one

_FINAL: Final = frozenset({ErrorKind.PRECONDITION, ErrorKind.UNSUPPORTED, ErrorKind.PERMISSION, ErrorKind.INVALID})
"""Refusals that the next question does not change soon."""

_log = structlog.get_logger("rdk.networking")


def path_of(home: Path, part: str) -> Path:
    """Where the certificate of a part is kept; ValueError as `cached.path_of`."""
    return cached.path_of(home, part).with_name(f"cached_cloud_certificate_{part}.pem")


def own_names() -> list[str]:
    """How this computer is called, and its addresses that others may reach."""
    from rpc.interfaces import outward

    return [socket.gethostname(), *outward()]


async def moves(ring: Callable[[], None]) -> None:
    """Call `ring` whenever its addresses may have changed, until cancelled."""
    from rpc.interfaces import tell_changes

    await tell_changes(ring)


class CloudCertificate:
    """The newest certificate that the cloud gave the part at `address`, from `path` until it gives another.

    `tls` is what a port serves with. Connections of this computer may be without TLS all the same: programs that reach
    the machine here without knowing of the cloud go on working.
    """

    def __init__(
        self,
        address: CloudAddress,
        path: Path,
        authorities: CloudAuthorities,
        *,
        names: Callable[[], list[str]] = own_names,
        moves: Callable[[Callable[[], None]], Awaitable[None]] = moves,
    ) -> None:
        self.tls = HeldTls(plain_locally=True)
        self._authorities = authorities
        self._root = ""  # PEM: what it was signed by; "" if the cloud did not send it
        self._signer = ""  # PEM: what signs now, if it was told to be another
        self._address = address
        self._path = path
        self._names = names
        self._moves = moves
        self._configured: Hashable = None
        self._moved = _Bell()

    def load(self) -> None:
        """Use what is on the disk, if there is something that can be used. Not in the event loop."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            _log.warning("the cached certificate cannot be read", path=str(self._path), reason=error.strerror)
            return
        try:
            self._use(data)
        except TlsError as error:
            _log.warning("the cached certificate cannot be used", path=str(self._path), reason=str(error))

    def _use(self, data: bytes) -> bool:
        """Serve with this key and the chain behind it; True if it is another. TlsError changes nothing."""
        changed = self.tls.take(data, data)
        self._root = _root(data)
        return changed

    @property
    def roots(self) -> str:
        """PEM: what other machines of the organization are trusted by; "" if the cloud did not say."""
        return self._authorities.machines or self._root

    async def told(self, authorities: Any, worker: Worker) -> None:
        """What the cloud says of its authorities; if another one signs now, it is asked again. Errors as theirs."""
        await self._authorities.told(authorities, worker)
        newest = _first(self._authorities.machines)
        if newest not in ("", self._root, self._signer):
            self._signer = newest
            self._moved.ring()

    async def ask(self, names: Iterable[str], worker: Worker) -> bool:
        """Ask the cloud for a certificate for `names`, use and keep it; True if it is another.

        Raises MachineError, OSError if it does not answer, TlsError for an answer that cannot be used.
        """
        metadata = {CLAIMED: ",".join(names)}
        async with self._address.channel() as channel:
            client = ApiClient(channel, metadata=metadata)
            answer = await client.call(SERVICE, "", "certificate", id=self._address.part)
        data = f"{answer['tls_private_key'].rstrip()}\n{answer['tls_certificate'].rstrip()}\n".encode()
        if not self._use(data):
            return False
        try:
            await worker.run(partial(cached.replace, self._path, data))
        except OSError as error:
            _log.error("the certificate cannot be kept for a start without the cloud", error=str(error))
        return True

    def configured(self, names: Hashable) -> None:
        """What the configuration calls the machine; if it is something else than before, the cloud is asked again."""
        if names != self._configured:
            self._configured = names
            self._moved.ring()

    async def follow(self, worker: Worker, changed: Callable[[], None], *, task_status: trio.TaskStatus[None]) -> None:
        """Ask at once, each hour and when this computer's names change, until cancelled. An outage is told once.

        `changed` is called when there is a certificate for the first time.
        """
        task_status.started()
        async with worker.opened(), trio.open_nursery() as nursery:
            nursery.start_soon(self._moves, self._moved.ring)
            delay, trouble = FIRST_DELAY, ""
            while True:
                first, names = self.tls.context is None, self._names()
                asked = (names, self._configured, self._signer)
                try:
                    with trio.fail_after(CALL_LIMIT):
                        another = await self.ask(names, worker)
                except (MachineError, OSError, trio.TooSlowError) as error:
                    reason = str(error) or "no answer in time"
                    if reason != trouble:
                        trouble = reason
                        _log.warning("no certificate from the cloud", reason=reason, goes_on_with=self._in_use())
                    if not (isinstance(error, MachineError) and error.kind in _FINAL):
                        came = await self._address.contact.pause(delay * random.uniform(0.5, 1.0))
                        delay = FIRST_DELAY if came else min(2 * delay, MAX_DELAY)
                        continue
                else:
                    trouble = ""
                    if another:
                        self._tell()
                    if another and first:
                        changed()
                delay = FIRST_DELAY
                with trio.move_on_after(HOUR * random.uniform(0.8, 1.0)):
                    while (self._names(), self._configured, self._signer) == asked:
                        await self._moved.rung()
                        await trio.sleep(QUIET)

    def _tell(self) -> None:
        facts = self.tls.facts
        assert facts is not None
        _log.info("a certificate of the cloud", names=list(facts.names), not_after=facts.not_after.isoformat())

    def _in_use(self) -> str:
        return f"the one until {self.tls.facts.not_after:%Y-%m-%d}" if self.tls.facts is not None else "none"


class _Bell:
    """Rings that nobody has heard are remembered as one."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def ring(self) -> None:
        self._event.set()

    async def rung(self) -> None:
        await self._event.wait()
        self._event = trio.Event()


def _first(text: str) -> str:
    """The first certificate of several (PEM)."""
    end = "-----END CERTIFICATE-----\n"
    return text.partition(end)[0] + end if text else ""


def _root(data: bytes) -> str:
    """The last certificate if it is a root."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    last = x509.load_pem_x509_certificates(data)[-1]
    return last.public_bytes(Encoding.PEM).decode() if last.issuer == last.subject else ""
