"""Start Windows programs: Wine of Debian 13, in a root and a process namespace of its own.

When the keeper of the namespace ends, the kernel ends every process in it, also Wine's own.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PREFIX: Final = "opt/prefix"
DRIVE: Final = f"{PREFIX}/drive_c"
PYTHON: Final = r"C:\python\python.exe"
SOURCE: Final = "opt/machine"  # where the checkout is mounted, Z:\opt\machine for Windows programs
KEEPER: Final = """
set -e
mount --make-rprivate /
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/tmp"
if [ -n "$2" ]; then mount --bind "$2" "$1/opt/machine"; fi
echo ready
exec sleep infinity
"""
ENVIRONMENT: Final = {
    "PATH": "/usr/sbin:/usr/bin",
    "HOME": "/root",
    "WINEPREFIX": f"/{PREFIX}",
    "WINEDEBUG": "-all",
    "LANG": "C.UTF-8",
    "XDG_RUNTIME_DIR": "/tmp",
    "PYTHONPYCACHEPREFIX": r"C:\compiled",
    "PYTHONUTF8": "1",
    "VIAM_HOME": r"C:\machine-home",
}


class Room:
    """A running namespace with Wine's server, which all Windows programs of a test run share."""

    def __init__(self, root: Path, pid: int) -> None:
        self.root = root
        self._pid = pid

    @property
    def drive(self) -> Path:
        """The folder that is drive C: of Windows programs."""
        return self.root / DRIVE

    def folder(self, name: str) -> tuple[Path, str]:
        """Create a folder on drive C:; return its path here and there."""
        path = self.drive / "t" / name
        path.mkdir(parents=True)
        return path, rf"C:\t\{name}"

    def words(self, *command: str, env: Mapping[str, str] | None = None, cwd: str = "/opt/prefix/drive_c") -> list[str]:
        """Return the words that start a Windows program by Wine. Its input and output must be pipes."""
        settings = [f"{name}={value}" for name, value in {**ENVIRONMENT, **(env or {})}.items()]
        enter = ["nsenter", f"--target={self._pid}", "--mount", "--pid", "chroot", str(self.root)]
        return [*enter, "env", "-i", f"--chdir={cwd}", *settings, "/usr/lib/wine/wine64", *command]

    def run(
        self, *command: str, env: Mapping[str, str] | None = None, cwd: str = "/opt/prefix/drive_c", limit: float = 200
    ) -> subprocess.CompletedProcess[str]:
        """Run a Windows program; return its status and output, with standard error in it."""
        return subprocess.run(
            self.words(*command, env=env, cwd=cwd),
            input="",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit,
        )

    def python(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: str = "/opt/prefix/drive_c",
        limit: float = 200,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python for Windows."""
        return self.run(PYTHON, *arguments, env=env, cwd=cwd, limit=limit)


@contextmanager
def open_room(root: Path, source: Path | None = None) -> Iterator[Room]:
    """Enter a room, with a checkout in it; end all of its processes afterwards."""
    keeper = subprocess.Popen(
        [
            "unshare",
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            KEEPER,
            "sh",
            str(root),
            str(source or ""),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "ready\n":
            raise RuntimeError("no namespace for Windows programs could be made, see standard error")
        children = Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()
        room = Room(root, int(children[0]))
        yield room
        subprocess.run(
            [*room.words()[: room.words().index("/usr/lib/wine/wine64")], "/usr/lib/wine/wineserver64", "-k"],
            check=False,
            timeout=30,
        )
    finally:
        keeper.kill()
        keeper.communicate()
