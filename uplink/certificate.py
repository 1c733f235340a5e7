"""The machine's TLS certificate: requested from the cloud, cached on disk, and used by the port once it arrives."""

from __future__ import annotations

import random
import socket
from collections.abc import Awaitable, Callable, Hashable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog
import trio

from rpc.api import ApiClient
from rpc.network import InMemoryTls, TlsError
from schema import ErrorKind, MachineError
from support import DoublingDelay
from support.files import replace_file
from uplink import cached
from uplink.authorities import CloudAuthorities
from uplink.dial import CloudAddress

if TYPE_CHECKING:
    from support import Worker

SERVICE: Final = "viam.app.v1.RobotService"
CLAIMED: Final = "machine-names"
"""Metadata of the call: host names and addresses of this machine, separated by commas."""

HOUR: Final = 3600.0  # seconds between requests; the cloud returns the same certificate until it is due for renewal
CALL_LIMIT: Final = 15.0  # seconds
FIRST_DELAY: Final = 1.0
MAX_DELAY: Final = 60.0
QUIET: Final = 1.0  # seconds to wait after a change of addresses: they change one by one

_FINAL: Final = frozenset({ErrorKind.PRECONDITION, ErrorKind.UNSUPPORTED, ErrorKind.PERMISSION, ErrorKind.INVALID})
"""Errors for which an early retry is useless."""

_log = structlog.get_logger("rdk.networking")


def certificate_path(home: Path, part: str) -> Path:
    """Return the path of the cached certificate of a part. Raises ValueError like `cached.path_of`."""
    return cached.path_of(home, part).with_name(f"cached_cloud_certificate_{part}.pem")


def own_names() -> list[str]:
    """Return the host name of this computer and its addresses that others can reach."""
    from rpc.network import outward

    return [socket.gethostname(), *outward()]


async def address_changes(notify: Callable[[], None]) -> None:
    """Call `notify` whenever the addresses of this computer may have changed, until cancelled."""
    from rpc.network import watch_changes

    await watch_changes(notify)


class CloudCertificate:
    """The newest certificate that the cloud issued for the part at `address`; cached at `path`.

    `tls` is used by the port. Connections from this computer may still be without TLS, so that local programs that do
    not know about the cloud continue to work.
    """

    def __init__(
        self,
        address: CloudAddress,
        path: Path,
        authorities: CloudAuthorities,
        *,
        names: Callable[[], list[str]] = own_names,
        address_changes: Callable[[Callable[[], None]], Awaitable[None]] = address_changes,
    ) -> None:
        self.tls = InMemoryTls(plain_locally=True)
        self._authorities = authorities
        self._root = ""  # PEM of the root of its chain; "" if the cloud did not send it
        self._signer = ""  # PEM of the authority that signs now, if it differs from `_root`
        self._address = address
        self._path = path
        self._names = names
        self._address_changes = address_changes
        self._configured: Hashable = None
        self._request = _Notification()

    def load(self) -> None:
        """Use the cached certificate if it exists and is valid. Blocks: do not call it in the event loop."""
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
        """Serve with this key and certificate chain; return whether they are new. A TlsError changes nothing."""
        changed = self.tls.take(data, data)
        self._root = _root(data)
        return changed

    @property
    def roots(self) -> str:
        """Authorities (PEM) of the other machines in the organization; "" if the cloud did not send them."""
        return self._authorities.machines or self._root

    async def update_authorities(self, message: Any, worker: Worker) -> None:
        """Use and store the authorities of a message of the push channel: `cloud` and `machines`, each PEM.

        Requests a new certificate if another authority signs now.
        """
        await self._authorities.update(message, worker)
        newest = _first(self._authorities.machines)
        if newest not in ("", self._root, self._signer):
            self._signer = newest
            self._request.notify()

    async def ask(self, names: Iterable[str], worker: Worker) -> bool:
        """Request a certificate for `names` from the cloud, use and cache it; return whether it is new.

        Raises MachineError or OSError if the request fails, TlsError if the certificate cannot be used.
        """
        metadata = {CLAIMED: ",".join(names)}
        async with self._address.channel() as channel:
            client = ApiClient(channel, metadata=metadata)
            answer = await client.call(SERVICE, "", "certificate", id=self._address.part)
        data = f"{answer['tls_private_key'].rstrip()}\n{answer['tls_certificate'].rstrip()}\n".encode()
        if not self._use(data):
            return False
        try:
            await worker.run(partial(replace_file, self._path, data))
        except OSError as error:
            _log.error("the certificate cannot be cached for a start without the cloud", error=str(error))
        return True

    def configured(self, names: Hashable) -> None:
        """Set the machine's names in the configuration; if they have changed, request a new certificate."""
        if names != self._configured:
            self._configured = names
            self._request.notify()

    async def follow(self, worker: Worker, changed: Callable[[], None], *, task_status: trio.TaskStatus[None]) -> None:
        """Request a certificate now, hourly and when this computer's names change, until cancelled.

        `changed` is called when the first certificate arrives. Each outage is logged once.
        """
        task_status.started()
        async with worker.opened(), trio.open_nursery() as nursery:
            nursery.start_soon(self._address_changes, self._request.notify)
            delay, trouble = DoublingDelay(FIRST_DELAY, MAX_DELAY), ""
            while True:
                first, names = self.tls.context is None, self._names()
                requested = (names, self._configured, self._signer)
                try:
                    with trio.fail_after(CALL_LIMIT):
                        new = await self.ask(names, worker)
                except (MachineError, OSError, trio.TooSlowError) as error:
                    reason = str(error) or "no answer in time"
                    if reason != trouble:
                        trouble = reason
                        _log.warning("no certificate from the cloud", reason=reason, still_used=self._in_use())
                    if not (isinstance(error, MachineError) and error.kind in _FINAL):
                        if await self._address.contact.pause(delay.next() * random.uniform(0.5, 1.0)):
                            delay.reset()
                        continue
                else:
                    trouble = ""
                    if new:
                        self._log_certificate()
                    if new and first:
                        changed()
                delay.reset()
                with trio.move_on_after(HOUR * random.uniform(0.8, 1.0)):
                    while (self._names(), self._configured, self._signer) == requested:
                        await self._request.wait()
                        await trio.sleep(QUIET)

    def _log_certificate(self) -> None:
        facts = self.tls.facts
        assert facts is not None
        _log.info(
            "received a certificate from the cloud", names=list(facts.names), not_after=facts.not_after.isoformat()
        )

    def _in_use(self) -> str:
        facts = self.tls.facts
        return f"the certificate valid until {facts.not_after:%Y-%m-%d}" if facts is not None else "none"


class _Notification:
    """An event that resets itself when a waiting task wakes; several notifications before that count as one."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def notify(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event = trio.Event()


def _first(text: str) -> str:
    """Return the first certificate of a PEM text."""
    end = "-----END CERTIFICATE-----\n"
    return text.partition(end)[0] + end if text else ""


def _root(data: bytes) -> str:
    """Return the last certificate (PEM) if it is self-signed, otherwise ""."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    last = x509.load_pem_x509_certificates(data)[-1]
    return last.public_bytes(Encoding.PEM).decode() if last.issuer == last.subject else ""
