"""Supervisors for a device with systemd and for everything else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agent.layout import SERVER, Layout
from agent.supervise.probe import AddressProbe
from agent.supervise.processes import started_with
from agent.supervise.supervisor import Supervisor
from agent.supervise.systemd import SystemdBackend
from agent.supervise.units import RESTART_PAUSE, files_of
from support import Worker

if TYPE_CHECKING:
    from agent.supervise.child import ChildBackend


def with_systemd(layout: Layout, worker: Worker) -> tuple[Supervisor, SystemdBackend]:
    """Return the supervisor of the unit of machine-server, and its back end."""
    backend = SystemdBackend(files_of(layout), RESTART_PAUSE, worker.run)
    return _supervisor(layout, worker, backend), backend


def with_child(layout: Layout, credentials: Path, worker: Worker) -> Supervisor:
    """Return the supervisor of a child process. Blocks briefly."""
    from agent.supervise.child import ChildBackend  # not needed below systemd

    leftovers = started_with("MACHINE_ADDRESS_FILE", str(files_of(layout).address))
    command = (str(layout.launcher), SERVER, "-config", str(credentials))
    return _supervisor(layout, worker, ChildBackend(command, worker, leftovers=leftovers))


def _supervisor(layout: Layout, worker: Worker, backend: SystemdBackend | ChildBackend) -> Supervisor:
    address = files_of(layout).address
    return Supervisor(
        backend,
        AddressProbe(address, worker.run),
        worker.run,
        exits=layout.state / f"{SERVER}.exits",
        address=address,
    )
