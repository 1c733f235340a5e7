"""Answers for supervisors: liveness, health, permission to restart."""

from __future__ import annotations

import ipaddress
from typing import Any

from engine.views import MachineState, MachineStatus
from rpc.network import interfaces
from runtime.parts.web.forgery import is_loopback


def answer(status: MachineStatus) -> str:
    """Return the line with which `GET /` answers programs: the server is running."""
    return f"machine-server {status.version} is {status.state.value}\n"


def health(status: MachineStatus) -> tuple[bool, dict[str, Any]]:
    """Return whether everything configured works, and the answer with `name` and `reason` of each problem.

    Problems are: the machine is not running; the configuration was rejected or has errors; a resource or a part of the
    server is not ready.
    """
    reasons: list[dict[str, str]] = []
    if status.state is not MachineState.RUNNING:
        reasons.append({"name": "machine", "reason": f"the machine is {status.state.value}"})
    if status.config.rejected:
        reasons.append({"name": "configuration", "reason": status.config.rejected})
    reasons += [{"name": problem.path, "reason": problem.message} for problem in status.config.problems]
    nodes = (
        *((node.name, node.state, node.reason) for node in status.internal),
        *((resource.name, resource.state, resource.reason) for resource in status.resources),
    )
    reasons += [
        {"name": name, "reason": f"{state}: {reason}" if reason else state}
        for name, state, reason in nodes
        if state != "ready"
    ]
    return not reasons, {"healthy": not reasons, "state": status.state.value, "reasons": reasons}


def restart_status(status: MachineStatus, module_server: str) -> dict[str, Any]:
    """Return the answer to an agent that wants to restart the server, in the published format."""
    config = status.config
    return {
        "restart_allowed": status.restart_allowed,
        "does_not_handle_needs_restart": True,
        "module_server_tcp_addr": module_server,
        # Ours: machine-agent shows people the reason, and confirms a new version only if it could fetch and
        # use its configuration.
        "reason": "" if status.restart_allowed else status.maintenance or "its configuration is being applied",
        "configured": config.fetched and not config.rejected and config.last_updated is not None,
    }


def is_here(client: tuple[str, int] | None) -> bool:
    """Return whether a client is on this computer: its address is loopback or one of this computer's addresses."""
    if client is None or is_loopback(client):
        return client is not None
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in interface.addresses for interface in interfaces())
    except (ValueError, OSError):
        return False
