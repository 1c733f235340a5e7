"""What the driver of an update needs of the program that it updates, and of its surroundings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from agent.hooks.moments import HookAnswer, HookedChange, HookMoment
from agent.maintenance.decide import MaintenanceVerdict
from agent.update.record import Release


class ProgramFacts(NamedTuple):
    """State of a program at one moment."""

    sha256: str = ""  # of the release that runs; empty if the program does not run
    up: float = 0.0  # seconds since the driver first saw this process
    served: bool = False  # it answers requests
    configured: bool = False  # it has fetched its configuration from the cloud since its start
    offline: str = ""  # a stable word for why the machine is offline, or empty


class UpdatedProgram(Protocol):
    """Controls and observes one program. Nothing here changes links or records."""

    async def stop(self, reason: str) -> None:
        """End the program if a change of its links requires that. Raises MachineError."""
        ...

    async def start(self, sha256: str) -> None:
        """Let the launcher start the release that is linked, `sha256`; replace a process of another release.

        Returns before it serves. Raises MachineError.
        """
        ...

    async def facts(self) -> ProgramFacts:
        """Return the state now. Takes at most some seconds."""
        ...

    async def change(self) -> None:
        """Wait until the state may have changed since the last `facts`."""
        ...

    def obstacle(self) -> str:
        """Return why a new release could not be tried now, such as that the program is disabled; or empty."""
        ...


class ReleaseFiles(Protocol):
    """Where the files of releases come from."""

    async def check(self, release: Release) -> None:
        """Return if this release may still be installed. MachineError (NOT_FOUND) if it was withdrawn."""
        ...

    async def download(self, release: Release, file: Path) -> None:
        """Download the file of a release, continuing with what is in `file`. Cancelled when its time is over.

        Raises MachineError: INVALID if the content is too long or cannot be the release.
        """
        ...


class UpdateHooks(Protocol):
    """Programs of the device's owner, which run before and after changes."""

    @property
    def revision(self) -> int:
        """A number that is increased whenever hooks may have changed."""
        ...

    async def before(self, moment: HookMoment, change: HookedChange) -> HookAnswer:
        """Run a hook; return why what follows must wait. Takes some minutes at most."""
        ...

    def after(self, moment: HookMoment, change: HookedChange, result: str = "", reason: str = "") -> None:
        """Run a hook later. Never waits."""
        ...

    def changed(self) -> Callable[[], Awaitable[None]]:
        """Return a function that waits until hooks may have changed since this call."""
        ...


class RestartPermission(Protocol):
    """Decides whether a program may be stopped now."""

    async def may_restart(self, program: str, waiting_since: float, requested: bool) -> MaintenanceVerdict:
        """Return the decision now. `waiting_since` is in seconds since 1970; `requested`: a person wants it now."""
        ...

    def change(self) -> Callable[[], Awaitable[None]]:
        """Return a function that waits until the decision may have changed since this call.

        That time passes does not count. Call this before `may_restart`, so that no change is missed.
        """
        ...
