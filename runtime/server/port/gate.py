"""Authorizes calls. The authenticator is loaded with the first key of a document, not for a server without keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from engine import Options
from engine.calls import Introduction, reachable, this_computer
from runtime.server.endpoint import Endpoint
from schema.document import API_KEY, MachineDocument
from support import ChangeSignal

if TYPE_CHECKING:
    from grpclib.const import Handler

    from rpc import Identity, ServerCall
    from rpc.access import Authenticator, Credential


GUARDED: Final = frozenset(
    {
        "/viam.service.shell.v1.ShellService/Shell",
        "/viam.service.shell.v1.ShellService/CopyFilesToMachine",
        "/viam.service.shell.v1.ShellService/CopyFilesFromMachine",
        "/viam.robot.v1.RobotService/Tunnel",
    }
)
"""Calls that give access to more than the configured resources: shells, files, ports of other programs."""
NEEDS_KEYS: Final = (
    "is not allowed on a machine without keys: configure auth.handlers, or start machine-server with -allow-open-shell"
)
NEEDS_OWNER: Final = (
    "needs a key with the role owner, and this one is an operator's: use an owner's key, or let operators do it with "
    '"auth": {"operator_shells": true} in the configuration'
)


class Gate:
    """The active keys; they may change while connections are open. `authorize` is the function for `ServerCore`."""

    def __init__(self, options: Options, endpoint: Endpoint) -> None:
        self._options = options
        self._endpoint = endpoint
        self._authenticator: Authenticator | None = None
        self.keys = 0  # number of active credentials
        self.changed = ChangeSignal()  # some callers may not be admitted any more
        self.operators: frozenset[str] = frozenset()  # ids of keys that may not call what is GUARDED

    @property
    def enabled(self) -> bool:
        """Whether calls require a token."""
        return self._authenticator is not None and self._authenticator.enabled

    @property
    def authenticator(self) -> Authenticator:
        """The authenticator, which issues and verifies tokens."""
        if self._authenticator is None:
            from runtime.server.port.authentication import MachineAuthenticator

            self._authenticator = MachineAuthenticator(self._options, self._endpoint, self._notify)
        return self._authenticator

    def authorize(self, method: str, metadata: Mapping[str, str | bytes]) -> Identity | None:
        """Return the identity of a caller; None on a server without keys.

        Raises GRPCError: UNAUTHENTICATED, or PERMISSION_DENIED for GUARDED methods on a server without keys.
        """
        if not self.enabled:
            if method in GUARDED and not self._options.allow_open_shell:
                raise GRPCError(Status.PERMISSION_DENIED, f"{method.rpartition('/')[2]} {NEEDS_KEYS}")
            return None
        return self.authenticator.authorize(method, metadata)

    def for_owners(self, method: str, handler: Handler) -> Handler:
        """Return a handler of a GUARDED method that fails with PERMISSION_DENIED for operators, however they call."""

        async def checked(stream: ServerCall) -> None:
            caller = stream.identity
            if caller is not None and caller.kind == API_KEY and caller.entity in self.operators:
                raise GRPCError(Status.PERMISSION_DENIED, f"{method.rpartition('/')[2]} {NEEDS_OWNER}")
            await handler.func(stream)

        return handler._replace(func=checked)

    def introduce(self, caller: Identity) -> Introduction | None:
        """Return what a caller that the cloud has authenticated needs to connect directly.

        None if the port is closed or is not encrypted, or if the caller's key is not accepted there.
        """
        endpoint = self._endpoint
        facts = endpoint.tls.facts if endpoint.tls is not None else None
        token = self.authenticator.token_for(caller) if facts is not None and self.enabled else None
        if facts is None or token is None:
            return None
        from rpc.network import outward

        addresses = reachable(endpoint.addresses, outward())
        return Introduction(addresses=addresses, certificate=facts.fingerprint, token=token, computer=this_computer())

    def credentials(self, document: MachineDocument) -> list[Credential]:
        """Return the keys of `document`; raises ConfigError if they are not valid."""
        secrets, main = _location_secrets(document), document.cloud.main_part if document.cloud is not None else None
        if not document.auth.handlers and not secrets and main is None:
            return []
        from rpc.access import LOCATION_SECRET, PART_SECRET, Credential, credentials_of
        from runtime.server.port.authentication import LOCATION

        handlers = [{"type": handler.type, "config": handler.config} for handler in document.auth.handlers]
        credentials, problems = credentials_of(handlers)
        if problems:
            raise problems[0]
        if main is not None and main.id:
            credentials += [Credential(PART_SECRET, main.id, secret) for secret in main.secrets if secret]
        return credentials + [Credential(LOCATION_SECRET, LOCATION, secret) for secret in secrets]

    def configure(self, credentials: Iterable[Credential]) -> None:
        """Replace all keys. Tokens issued for other keys become invalid; connections stay open."""
        credentials = list(credentials)
        self.keys = len(credentials)
        if credentials or self._authenticator is not None:
            self.authenticator.configure(credentials)
        self._notify()

    def admits(self, caller: Identity | None) -> bool:
        """Return whether a caller that was authorized before still is; `changed` is set when that may change."""
        return self.authenticator.holds(caller) if caller is not None and self.enabled else not self.enabled

    def _notify(self) -> None:
        self.changed.announce()


def _location_secrets(document: MachineDocument) -> list[str]:
    """Return the location secrets that clients may use instead of keys; secrets from the cloud may be digests."""
    cloud = document.cloud
    if cloud is None:
        return []
    secrets = (cloud.location_secret, *(entry.secret for entry in cloud.location_secrets))
    return [secret for secret in secrets if secret]
