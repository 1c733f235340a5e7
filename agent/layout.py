"""Files and folders of machine-agent on a device. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

AGENT: Final = "machine-agent"
SERVER: Final = "machine-server"
PROGRAMS: Final = (AGENT, SERVER)
"""The programs that are installed and updated."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Paths below the root of the installation, and below the folder for files that need not survive a restart."""

    root: Path = Path("/opt/machine")
    run: Path = Path("/run/machine")

    @property
    def launcher(self) -> Path:
        """The program that starts a release and counts the starts of a trial."""
        return self.root / "bin" / "machine-launch"

    def releases(self, program: str) -> Path:
        """Return the folder with the staged releases of a program."""
        return self.root / "releases" / program

    def release(self, program: str, sha256: str) -> Path:
        """Return the folder of one staged release; `run` in it is the program."""
        return self.releases(program) / sha256

    def launch(self, program: str) -> Path:
        """Return the folder that tells the launcher what to start: links `run` and `back`, file `trial`."""
        return self.root / "launch" / program

    def record(self, program: str) -> Path:
        """Return the file of the record of a program's releases and update."""
        return self.state / f"{program}.json"

    @property
    def state(self) -> Path:
        """The folder with what the agent remembers."""
        return self.root / "state"

    @property
    def reserve(self) -> Path:
        """A file that is deleted when the disk is full, so that records and links can be written."""
        return self.state / "reserve"

    @property
    def downloads(self) -> Path:
        """The folder with files that are being downloaded, or wait to be staged."""
        return self.root / "downloads"

    @property
    def queue(self) -> Path:
        """The folder with log entries that are not uploaded yet."""
        return self.root / "queue"

    @property
    def journal_queue(self) -> Path:
        """The folder with entries of the system's journal that are not uploaded yet, and the place in the journal."""
        return self.queue / "journal"

    @property
    def trust(self) -> Path:
        """The folder with the trusted metadata of signed releases."""
        return self.root / "tuf"

    @property
    def home(self) -> Path:
        """The folder with everything that machine-server keeps, if systemd starts it."""
        return self.root / "home"

    @property
    def hooks(self) -> Path:
        """The folder with the hooks of the device's owner."""
        usual = Path("/opt/machine")
        return Path("/etc/machine-agent/hooks") if self.root == usual else self.root / "hooks"

    @property
    def network_runtime(self) -> Path:
        """The record of the interfaces that the agent has taken over, and of the addresses that it has added."""
        return self.run / "network.json"

    @property
    def console(self) -> Path:
        """The control socket."""
        return self.run / "agent.sock"

    @property
    def leases(self) -> Path:
        """The folder in which programs hold off maintenance: a file for each lease."""
        return self.run / "leases"

    @property
    def lock(self) -> Path:
        """The lock that only one agent can hold."""
        return self.run / "agent.lock"

    @property
    def installation_lock(self) -> Path:
        """The lock that only one installation or removal can hold."""
        return self.run / "install.lock"

    @property
    def folders(self) -> tuple[Path, ...]:
        """All folders that must exist, parents first."""
        return (
            self.root,
            self.root / "bin",
            self.root / "releases",
            *(self.releases(program) for program in PROGRAMS),
            self.root / "launch",
            *(self.launch(program) for program in PROGRAMS),
            self.state,
            self.downloads,
            self.queue,
            self.trust,
            self.home,
            self.run,
        )
