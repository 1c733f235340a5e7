"""The authenticator of a machine: accepts keys from other computers only over TLS, unless configured otherwise."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from engine import Options
from rpc import Identity, Peer
from rpc.access import LOCATION_SECRET, Authenticator
from runtime.server.endpoint import Endpoint

_MACHINE_ID: Final = Path("/etc/machine-id")
LOCATION: Final = "location"
"""Entity of callers that authenticate with a secret of the machine's location."""


def instance_of(options: Options) -> str:
    """Return a digest of the computer and the configuration file; it differs for machines with the same host name."""
    try:
        computer = _MACHINE_ID.read_text("ascii", "replace").strip()
    except OSError:  # in containers, for example, which have their own host names
        computer = ""
    facts = (computer, socket.gethostname(), str(options.config.absolute()))
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


class MachineAuthenticator(Authenticator):
    """An Authenticator that implements -allow-insecure-creds, and LOCATION as the entity for location secrets."""

    def __init__(self, options: Options, endpoint: Endpoint, revoked: Callable[[], None] = lambda: None) -> None:
        super().__init__(instance=instance_of(options))
        self._options = options
        self._endpoint = endpoint
        self._on_revoked = revoked

    def authenticate(self, entity: str, type: str, payload: str, *, peer: Peer, life: int = 0) -> str:  # noqa: A002 - the word of the wire
        """Return a token, see Authenticator; UNAUTHENTICATED also for a key sent over the network without TLS."""
        self._require_secure(peer, "API keys", "Replace this key if others can read this network")
        if type == LOCATION_SECRET and entity:
            entity = LOCATION  # clients send the host name that they dialed, and a host has many names
        return super().authenticate(entity, type, payload, peer=peer, life=life)

    async def redeem_ticket(self, ticket: str, *, peer: Peer, life: int) -> str:
        """Return a token for a session of the pages of `life` seconds, as `sign_in` does.

        UNAUTHENTICATED also for a ticket sent over the network without TLS.
        """
        self._require_secure(peer, "Links that log in", "The session would be readable too")
        return await super().redeem_ticket(ticket, peer=peer, life=life)

    def revoke(self, jti: str) -> None:
        """Revoke one token immediately."""
        super().revoke(jti)
        self._on_revoked()

    def _require_secure(self, peer: Peer, what: str, warning: str) -> None:
        if self.enabled and not (peer.local or self._endpoint.secure or self._options.allow_insecure_creds):
            raise GRPCError(
                Status.UNAUTHENTICATED,
                f"{what} from other computers are accepted only over TLS; connect with TLS, or start "
                f"machine-server with -allow-insecure-creds. {warning}",
            )

    def token_for(self, caller: Identity, entity: str = "") -> str | None:
        """Return a token for a caller that a trusted server has authenticated; None if there is no such key here.

        The cloud names a caller with a secret of the location by the part that is called.
        """
        return super().token_for(caller, entity or (LOCATION if caller.kind == LOCATION_SECRET else ""))
