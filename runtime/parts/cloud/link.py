"""The cloud link of machine-server: source of its configuration, queue of its logs. Created once at the start."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from engine import home
from engine.views import health_of
from rpc.peers import engine_installed
from runtime.parts.cloud.calls import CloudCalls
from runtime.parts.cloud.computer import ComputerNumbers
from runtime.parts.cloud.live import MAX_TEXT, send_snapshots
from schema import ErrorKind, MachineError
from schema.document import Cloud
from support import Worker
from telemetry.logs import OutboxSink
from telemetry.outbox import Outbox
from uplink import (
    HERE,
    CloudAddress,
    CloudAuthorities,
    CloudCertificate,
    CloudSource,
    address_of,
    authorities_path,
    certificate_path,
    platform,
    system,
)

if TYPE_CHECKING:
    from engine.views import PageSource
    from schema import Masker

FOLDER: Final = "logs-outbox"
_REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EROFS: "mount its file system for writing",
    errno.EIO: "read `dmesg`, copy the files from the disk and replace it",
}


@dataclass(frozen=True, slots=True)
class CloudLink:
    """The objects with which a machine communicates with its cloud."""

    address: CloudAddress
    source: CloudSource
    sink: OutboxSink
    worker: Worker  # for files
    webrtc: bool  # whether the machine answers offers of WebRTC connections
    calls: CloudCalls
    certificate: CloudCertificate | None  # None if the connection is not encrypted: there are no certificates then
    computer: ComputerNumbers = field(default_factory=ComputerNumbers)

    def attach(
        self, view: Callable[[], PageSource], mask: Callable[[], Masker], request_stop: Callable[[str], None]
    ) -> None:
        """Report the machine that `view` shows to the cloud, and let the cloud ask it to restart."""
        self.source.attach(
            state=lambda: {**_state(view(), mask()), **self.computer.reported, "webrtc": self.webrtc},
            changes=lambda: (*view().changes(), self.computer.changes()),
            restart=lambda: request_stop("the cloud requested a restart"),
            tell=lambda watch, send: send_snapshots(view(), mask, watch, send),
        )


def open_link(
    cloud: Cloud, initial: bytes, environment: Mapping[str, str], directory: Path = HERE, *, webrtc: bool = True
) -> CloudLink:
    """Open the link that the credentials file `initial` in `directory` describes.

    With `webrtc`, the machine answers offers of WebRTC connections if an engine is installed. Raises MachineError if
    its files cannot be used.
    """
    address, folder = address_of(cloud, directory), home(environment)
    worker = Worker("files of the cloud")
    try:
        outbox = Outbox(folder / FOLDER / _name(cloud.id), worker.run)
    except BlockingIOError:
        raise MachineError(
            f"another machine-server uses {folder} for the same part",
            kind=ErrorKind.PRECONDITION,
            remedy="stop it, or set MACHINE_HOME to another folder for this one",
        ) from None
    except OSError as error:
        raise MachineError(
            f"{folder / FOLDER} cannot be used: {error.strerror}",
            kind=ErrorKind.UNAVAILABLE if error.errno in _REMEDIES else ErrorKind.PERMISSION,
            remedy=f"{_REMEDIES.get(error.errno or 0, 'allow this user to write there')}, "
            "or set MACHINE_HOME to another folder",
        ) from error
    certificate = None
    if address.secure:
        authorities = CloudAuthorities(address.authorities, authorities_path(folder, address.part))
        authorities.load()
        address = replace(address, learned=authorities.trusted)
        certificate = CloudCertificate(address, certificate_path(folder, address.part), authorities)
        certificate.load()
    source, calls = CloudSource(address, initial, folder, worker), CloudCalls(address)
    source.answer_calls(calls.requested)
    if certificate is not None:
        source.trust(certificate.update_authorities)
    return CloudLink(address, source, OutboxSink(outbox), worker, webrtc and engine_installed(), calls, certificate)


def _name(part: str) -> str:
    """Return the folder name for a part id."""
    return Path(part).name or "part"


def _state(view: PageSource, masker: Masker) -> Mapping[str, Any]:
    """Return what the cloud keeps of this machine."""
    status = view.status()
    health = health_of(status)
    return {
        "host": status.host,
        "os": system(),
        "platform": platform(),
        "version": status.version,
        "address": reached_at(status.addresses),
        "secure": status.secure,
        "state": status.state.value,
        "ready": health.ready,
        "unhealthy": health.unhealthy,
        "waiting": health.waiting,
        "revision": status.config.revision,
        "problems": health.problems,
        "rejected": masker.shortened(status.config.rejected, MAX_TEXT),
    }


def reached_at(addresses: Sequence[str]) -> str:
    """Return the address at which others reach a port that listens at `addresses`; empty if there are none.

    If the port listens on all interfaces, it is the first address of this computer.
    """
    if not addresses:
        return ""
    listening, _, port = addresses[0].rpartition(":")
    if listening not in ("0.0.0.0", "[::]"):
        return addresses[0]
    from rpc.network import outward

    host = next(iter(outward()), "127.0.0.1")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
