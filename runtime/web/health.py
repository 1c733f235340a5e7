"""Answers for supervisors: does the server answer, does everything work, may it be restarted now."""

from __future__ import annotations

import ipaddress
from typing import Any

from rpc.interfaces import interfaces
from runtime.status import MachineState, MachineStatus
from runtime.web.forgery import is_loopback


def answer(status: MachineStatus) -> str:
    """The line that `GET /` gives to a program: the server is up and answers."""
    return f"machine-server {status.version} is {status.state.value}\n"


def health(status: MachineStatus) -> tuple[bool, dict[str, Any]]:
    """Whether everything configured works, and what does not: `name` and `reason` of each.

    Not working is: the machine is not running (yet, or any more); the configuration was rejected or has mistakes; a
    resource or a part of the server is not ready.
    """
    reasons: list[dict[str, str]] = []
    if status.state is not MachineState.RUNNING:
        reasons.append({"name": "machine", "reason": f"the machine is {status.state.value}"})
    if status.config.rejected:
        reasons.append({"name": "configuration", "reason": status.config.rejected})
    reasons += [{"name": one.path, "reason": one.message} for one in status.config.problems]
    nodes = (
        *((one.name, one.state, one.reason) for one in status.internal),
        *((one.name, one.state, one.reason) for one in status.resources),
    )
    reasons += [
        {"name": name, "reason": f"{state}: {reason}" if reason else state}
        for name, state, reason in nodes
        if state != "ready"
    ]
    return not reasons, {"healthy": not reasons, "state": status.state.value, "reasons": reasons}


def restart_status(status: MachineStatus, module_server: str) -> dict[str, Any]:
    """What an agent asks before it restarts the server; the shape is that of the wire."""
    return {
        "restart_allowed": status.restart_allowed,
        "does_not_handle_needs_restart": True,
        "module_server_tcp_addr": module_server,
    }


def is_here(client: tuple[str, int] | None) -> bool:
    """Whether the peer is a process on this computer: it comes from loopback, or from an own address."""
    if client is None or is_loopback(client):
        return client is not None
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in interface.addresses for interface in interfaces())
    except (ValueError, OSError):
        return False
