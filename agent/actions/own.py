"""machine-agent itself as a program that is updated: it ends, and systemd starts the release that is linked."""

from __future__ import annotations

from collections.abc import Callable

import structlog
import trio

from agent.actions.program import ProgramFacts

_log = structlog.get_logger("agent.update")


class OwnProgram:
    """Implements Program for the agent that runs this code.

    `release` is the hash of its release, from the variable MACHINE_RELEASE of the launcher. `offline` says why the
    machine is offline; `end` ends the agent, so that its service manager starts it again.
    """

    def __init__(self, release: str, offline: Callable[[], str], end: Callable[[], None]) -> None:
        self._release, self._offline, self._end = release, offline, end
        self._begin = trio.current_time()

    async def stop(self, reason: str) -> None:
        """End the program if a change of its links requires that.

        The agent changes its links while it runs, and ends in `start`.
        """

    async def start(self, sha256: str) -> None:
        """Let the launcher start the release that is linked, `sha256`; replace a process of another release.

        Does not return if another release is to run.
        """
        if sha256 == self._release:
            return
        _log.info("machine-agent ends, so that another release of it is started", release=sha256[:12])
        self._end()
        await trio.sleep_forever()

    async def facts(self) -> ProgramFacts:
        """Return the state now.

        An agent that has got this far serves; a successful call proves that the cloud accepts it.
        """
        offline = self._offline()
        return ProgramFacts(self._release, trio.current_time() - self._begin, True, offline == "", offline)

    async def change(self) -> None:
        """Wait until the state may have changed since the last `facts`. Only time changes something here."""
        await trio.sleep_forever()

    def obstacle(self) -> str:
        """Return why a new release could not be tried now, such as that the program is disabled; or empty."""
        return ""
