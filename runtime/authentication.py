"""The authenticator of a machine: keys travel over the network only under TLS, unless that was allowed."""

from __future__ import annotations

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from rpc.auth import Authenticator
from rpc.carrier import Peer
from runtime.machine import Machine


class MachineAuthenticator(Authenticator):
    """As Authenticator, with the rule of -allow-insecure-creds."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self._machine = machine

    def authenticate(self, entity: str, type: str, payload: str, *, peer: Peer) -> str:  # noqa: A002 - the word of the wire
        """As Authenticator; UNAUTHENTICATED too for a key that came over the network without TLS."""
        if self.enabled and not (peer.local or self._machine.secure or self._machine.options.allow_insecure_creds):
            raise GRPCError(
                Status.UNAUTHENTICATED,
                "API keys are not accepted without TLS from another computer; connect with TLS, or start "
                "machine-server with -allow-insecure-creds. Replace this key if the network is not yours",
            )
        return super().authenticate(entity, type, payload, peer=peer)
