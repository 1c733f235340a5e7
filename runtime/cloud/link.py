"""The cloud of one machine-server: source of its configuration, queue of its logs. Made once, before anything runs."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hal.worker import BusWorker
from runtime.cloud.dial import CloudAddress, address_of
from runtime.cloud.live import MAX_TEXT, tell
from runtime.cloud.source import CloudSource
from runtime.modules.command import home
from schema.cloud import Cloud
from schema.errors import ErrorKind, MachineError
from telemetry.outbox import Outbox
from telemetry.outbox_sink import OutboxSink

if TYPE_CHECKING:
    from runtime.machine import Machine

FOLDER: Final = "logs-outbox"


@dataclass(frozen=True, slots=True)
class CloudLink:
    """What a machine that is managed by a cloud has besides."""

    address: CloudAddress
    source: CloudSource
    sink: OutboxSink
    worker: BusWorker  # for files

    def attach(self, machine: Machine) -> None:
        """Tell the cloud of `machine`, and let the cloud ask it to restart."""
        self.source.attach(
            state=partial(_state, machine),
            changes=partial(_changes, machine),
            restart=lambda: machine.request_stop("the cloud asked for a restart"),
            tell=partial(tell, machine),
        )


def open_link(cloud: Cloud, initial: bytes, environment: Mapping[str, str]) -> CloudLink:
    """The link that the credentials file `initial` describes. Raises MachineError if its files cannot be used."""
    address, folder = address_of(cloud), home(environment)
    worker = BusWorker("files of the cloud")
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
            kind=ErrorKind.PERMISSION,
            remedy="let this user write there, or name another folder with MACHINE_HOME",
        ) from error
    return CloudLink(address, CloudSource(address, initial, folder, worker), OutboxSink(outbox), worker)


def _name(part: str) -> str:
    """A part's id as a folder's name."""
    return Path(part).name or "part"


def _state(machine: Machine) -> Mapping[str, Any]:
    """What the cloud keeps of this machine."""
    status = machine.status()
    return {
        "host": status.host,
        "os": os.uname().sysname.lower(),
        "platform": f"{os.uname().sysname.lower()}/{os.uname().machine}",
        "version": status.version,
        "address": status.addresses[0] if status.addresses else "",
        "state": status.state.value,
        "ready": sum(one.state == "ready" for one in status.resources),
        "unhealthy": sum(one.state == "unhealthy" for one in status.resources),
        "revision": status.config.revision,
        "problems": len(status.config.problems),
        "rejected": machine.masker.text(status.config.rejected)[:MAX_TEXT],
    }


def _changes(machine: Machine) -> Sequence[AsyncIterator[object]]:
    from runtime.web.machine import MachineSource

    return MachineSource(machine).changes()
