"""Who may call: nothing is loaded for an open server; the first key of a document brings the authenticator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from grpclib.const import Status
from grpclib.exceptions import GRPCError

from runtime.machine import Machine
from schema.machine import MachineDocument

if TYPE_CHECKING:
    from rpc.auth import Authenticator, Credential
    from rpc.carrier import Identity


GUARDED: Final = frozenset(
    {
        "/viam.service.shell.v1.ShellService/Shell",
        "/viam.service.shell.v1.ShellService/CopyFilesToMachine",
        "/viam.service.shell.v1.ShellService/CopyFilesFromMachine",
        "/viam.robot.v1.RobotService/Tunnel",
    }
)
"""Calls that reach beyond the configured resources: shells, files, other programs' ports."""
NEEDS_KEYS: Final = (
    "is refused because this machine has no keys: configure auth.handlers, or start machine-server with "
    "-allow-open-shell"
)


class Gate:
    """The keys in force. `authorize` is what `ServerCore` wants; keys change while connections live."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._authenticator: Authenticator | None = None
        self.keys = 0  # how many credentials count

    @property
    def enabled(self) -> bool:
        """Whether calls need a token."""
        return self._authenticator is not None and self._authenticator.enabled

    @property
    def authenticator(self) -> Authenticator:
        """The one that issues and checks tokens."""
        if self._authenticator is None:
            from runtime.authentication import MachineAuthenticator

            self._authenticator = MachineAuthenticator(self._machine)
        return self._authenticator

    def authorize(self, method: str, metadata: Mapping[str, str | bytes]) -> Identity | None:
        """Who makes a call; None on an open server.

        Raises GRPCError: UNAUTHENTICATED, or on an open server PERMISSION_DENIED for what gives away the computer.
        """
        if not self.enabled:
            if method in GUARDED and not self._machine.options.allow_open_shell:
                raise GRPCError(Status.PERMISSION_DENIED, f"{method.rpartition('/')[2]} {NEEDS_KEYS}")
            return None
        return self.authenticator.authorize(method, metadata)

    def credentials(self, document: MachineDocument) -> list[Credential]:
        """The keys of `document`; raises ConfigError if they cannot be used."""
        secrets = _location_secrets(document)
        if not document.auth.handlers and not secrets:
            return []
        from rpc.auth import LOCATION_SECRET, Credential, credentials_of
        from runtime.authentication import LOCATION

        handlers = [{"type": handler.type, "config": handler.config} for handler in document.auth.handlers]
        found, problems = credentials_of(handlers)
        if problems:
            raise problems[0]
        return found + [Credential(LOCATION_SECRET, LOCATION, one) for one in secrets]

    def configure(self, credentials: Iterable[Credential]) -> None:
        """Take exactly these keys from now on; tokens of others are void, connections stay."""
        credentials = list(credentials)
        self.keys = len(credentials)
        if credentials or self._authenticator is not None:
            self.authenticator.configure(credentials)


def _location_secrets(document: MachineDocument) -> list[str]:
    """What clients may show besides keys, each as a digest where the cloud has sent it."""
    cloud = document.cloud
    if cloud is None:
        return []
    return [one for one in (cloud.location_secret, *(each.secret for each in cloud.location_secrets)) if one]
