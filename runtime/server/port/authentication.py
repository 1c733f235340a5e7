"""The authenticator of a machine: accepts keys from other computers only over TLS, unless configured otherwise."""

from __future__ import annotations

import hashlib
import socket
from pathlib import Path
from typing import Final

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.access.auth import LOCATION_SECRET, Authenticator
from rpc.carrier import Peer
from runtime.engine.options import Options
from runtime.server.endpoint import Endpoint

_MACHINE_ID: Final = Path("/etc/machine-id")
LOCATION: Final = "location"
"""Entity of callers that authenticate with a secret of the machine's location."""


def instance_of(options: Options) -> str:
    """What tells a machine from others under the same host name: the computer and its configuration file."""
    try:
        computer = _MACHINE_ID.read_text("ascii", "replace").strip()
    except OSError:  # in containers, for example, which have their own host names
        computer = ""
    facts = (computer, socket.gethostname(), str(options.config.absolute()))
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


class MachineAuthenticator(Authenticator):
    """An Authenticator that implements -allow-insecure-creds, and LOCATION as the entity for location secrets."""

    def __init__(self, options: Options, endpoint: Endpoint) -> None:
        super().__init__(instance=instance_of(options))
        self._options = options
        self._endpoint = endpoint

    def authenticate(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002 - the word of the wire
        """As Authenticator; UNAUTHENTICATED too for a key that came over the network without TLS."""
        if self.enabled and not (peer.local or self._endpoint.secure or self._options.allow_insecure_creds):
            raise GRPCError(
                Status.UNAUTHENTICATED,
                "API keys are not accepted without TLS from another computer; connect with TLS, or start "
                "machine-server with -allow-insecure-creds. Replace this key if the network is not yours",
            )
        if type == LOCATION_SECRET and entity:
            entity = LOCATION  # clients send the host name that they dialed, and a host has many names
        return super().authenticate(entity, type, payload, peer=peer, life=life)
