"""The cloud of one machine-server: source of its configuration, queue of its logs. Made once, before anything runs."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runtime.cloud.live import MAX_TEXT, tell
from runtime.modules.command import home
from schema.cloud import Cloud
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from telemetry.outbox import Outbox
from telemetry.outbox_sink import OutboxSink
from uplink.authorities import CloudAuthorities
from uplink.authorities import path_of as authorities_of
from uplink.certificate import CloudCertificate, path_of
from uplink.configuration import CloudSource
from uplink.dial import HERE, CloudAddress, address_of
from uplink.platform import platform

if TYPE_CHECKING:
    from runtime.machine import Machine

FOLDER: Final = "logs-outbox"
_REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there",
    errno.EROFS: "mount its file system for writing",
    errno.EIO: "look at `dmesg`, save what is on the disk and replace it",
}


@dataclass(frozen=True, slots=True)
class CloudLink:
    """What a machine that is managed by a cloud has besides."""

    address: CloudAddress
    source: CloudSource
    sink: OutboxSink
    worker: Worker  # for files
    certificate: CloudCertificate | None  # None where the cloud is reached in plain text: it gives none then

    def attach(self, machine: Machine) -> None:
        """Tell the cloud of `machine`, and let the cloud ask it to restart."""
        self.source.attach(
            state=partial(_state, machine),
            changes=partial(_changes, machine),
            restart=lambda: machine.request_stop("the cloud asked for a restart"),
            tell=partial(tell, machine),
        )


def open_link(cloud: Cloud, initial: bytes, environment: Mapping[str, str], beside: Path = HERE) -> CloudLink:
    """The link that the credentials file `initial` in the folder `beside` describes.

    Raises MachineError if its files cannot be used.
    """
    address, folder = address_of(cloud, beside), home(environment)
    worker = Worker("files of the cloud")
    try:
        outbox = Outbox(folder / FOLDER / _name(cloud.id), worker.run)
    except BlockingIOError:
        raise MachineError(
            f"another machine-server uses {folder} for the same part",
            kind=ErrorKind.PRECONDITION,
            remedy="stop it, or give this one a folder of its own with MACHINE_HOME",
        ) from None
    except OSError as error:
        raise MachineError(
            f"{folder / FOLDER} cannot be used: {error.strerror}",
            kind=ErrorKind.UNAVAILABLE if error.errno in _REMEDIES else ErrorKind.PERMISSION,
            remedy=f"{_REMEDIES.get(error.errno or 0, 'let this user write there')}, "
            "or name another folder with MACHINE_HOME",
        ) from error
    certificate = None
    if address.secure:
        authorities = CloudAuthorities(address.authorities, authorities_of(folder, address.part))
        authorities.load()
        address = replace(address, learned=authorities.trusted)
        certificate = CloudCertificate(address, path_of(folder, address.part), authorities)
        certificate.load()
    source = CloudSource(address, initial, folder, worker)
    if certificate is not None:
        source.trust(certificate.told)
    return CloudLink(address, source, OutboxSink(outbox), worker, certificate)


def _name(part: str) -> str:
    """A part's id as a folder's name."""
    return Path(part).name or "part"


def _state(machine: Machine) -> Mapping[str, Any]:
    """What the cloud keeps of this machine."""
    status = machine.status()
    return {
        "host": status.host,
        "os": os.uname().sysname.lower(),
        "platform": platform(),
        "version": status.version,
        "address": reached_at(status.addresses),
        "state": status.state.value,
        "ready": sum(one.state == "ready" for one in status.resources),
        "unhealthy": sum(one.state == "unhealthy" for one in status.resources),
        "waiting": sum(one.state == "unconfigured" for one in status.resources)
        if status.state.value == "running"
        else 0,
        "revision": status.config.revision,
        "problems": len(status.config.problems),
        "rejected": machine.masker.text(status.config.rejected)[:MAX_TEXT],
    }


def reached_at(addresses: Sequence[str]) -> str:
    """Where others reach a port that listens at `addresses`: for all interfaces it is this computer's first address."""
    if not addresses:
        return ""
    host, _, port = addresses[0].rpartition(":")
    if host not in ("0.0.0.0", "[::]"):
        return addresses[0]
    from rpc.interfaces import outward

    found = next(iter(outward()), "127.0.0.1")
    return f"[{found}]:{port}" if ":" in found else f"{found}:{port}"


def _changes(machine: Machine) -> Sequence[AsyncIterator[object]]:
    from runtime.web.machine import MachineSource

    return MachineSource(machine).changes()
