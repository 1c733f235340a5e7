"""The authenticator of a machine: keys travel over the network only under TLS, unless that was allowed."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import Final

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.auth import LOCATION_SECRET, Authenticator
from rpc.carrier import Peer
from runtime.machine import Machine

_MACHINE_ID: Final = Path("/etc/machine-id")
LOCATION: Final = "location"
"""Who shows a secret of the machine's location."""


def instance_of(machine: Machine) -> str:
    """What tells a machine from others under the same host name: the computer and its configuration file."""
    try:
        computer = _MACHINE_ID.read_text("ascii", "replace").strip()
    except OSError:  # as in containers, which have host names of their own
        computer = ""
    facts = (computer, socket.gethostname(), str(machine.options.config.absolute()))
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


class MachineAuthenticator(Authenticator):
    """As Authenticator, with the rule of -allow-insecure-creds. Whoever shows a secret of the location is LOCATION."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(instance=instance_of(machine))
        self._machine = machine

    def authenticate(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002 - the word of the wire
        """As Authenticator; UNAUTHENTICATED too for a key that came over the network without TLS."""
        if self.enabled and not (peer.local or self._machine.secure or self._machine.options.allow_insecure_creds):
            raise GRPCError(
                Status.UNAUTHENTICATED,
                "API keys are not accepted without TLS from another computer; connect with TLS, or start "
                "machine-server with -allow-insecure-creds. Replace this key if the network is not yours",
            )
        if type == LOCATION_SECRET and entity:
            entity = LOCATION  # clients say which host they have dialled, and it has many names
        return super().authenticate(entity, type, payload, peer=peer, life=life)
