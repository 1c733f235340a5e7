"""Release files of the cloud's own version: those in a folder, and those that can be built from its sources."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Final

import trio

from nursery_graph import process_group
from schema import ErrorKind, MachineError
from support import version
from uplink.releases import MAX_FILE, MAX_HEADER, PROGRAMS, Header, read_header

PLATFORMS: Final = ("linux/x86_64", "linux/aarch64")
"""Platforms for which the cloud looks for releases of its version."""

BUILDER: Final = "tools/release/__main__.py"
TOOLS: Final = {"mmdebstrap": "mmdebstrap", "patchelf": "patchelf", "readelf": "binutils"}
"""Programs that a build needs, and their Debian packages: as in `tools/release/inputs.py`, which a test compares."""

_TAIL: Final = 600  # characters of the output that are shown if a build fails
_LINE: Final = 400  # characters of a line of its progress


@dataclass(frozen=True, slots=True)
class Sources:
    """Places of release files. `checkout` is the folder of the sources, or None if the cloud is installed otherwise."""

    folder: Path
    checkout: Path | None = None
    version: str = ""  # of the programs

    @classmethod
    def of(cls, folder: Path) -> Sources:
        """Return the places of this cloud, with `folder` for release files."""
        root = Path(__file__).resolve().parents[3]
        return cls(folder, root if (root / BUILDER).is_file() else None, version())

    def files(self, platform: str) -> dict[str, Path]:
        """Return the files of a platform by program. Blocks. Raises MachineError for one that is not what it says."""
        folders = [self.folder, *([self.checkout / "build" / "release"] if self.checkout is not None else [])]
        result = {}
        for program in PROGRAMS:
            name = f"{program}-v{self.version}-{platform.rpartition('/')[2]}"
            path = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if path is not None:
                self._check(path, Header(program, self.version, platform))
                result[program] = path
        return result

    def _check(self, path: Path, expected: Header) -> None:
        try:
            with path.open("rb") as file:
                header = read_header(file.read(MAX_HEADER))
            size = path.stat().st_size
        except OSError as error:
            raise MachineError(
                f"{path} cannot be read: {error.strerror}",
                kind=ErrorKind.PRECONDITION,
                remedy="let the user of machine-cloud read it",
            ) from None
        except MachineError as error:
            raise MachineError(f"{path}: {error.message}", kind=error.kind, remedy="build or copy it again") from None
        if header != expected or size > MAX_FILE:
            raise MachineError(
                f"{path} is {header.program} {header.version} for {header.platform}, with {size:,} bytes",
                kind=ErrorKind.INVALID,
                remedy="remove it, or give it the name of what it is",
            )

    def refusal(self, platform: str) -> MachineError | None:
        """Return why releases for a platform cannot be built here; None if they can. Blocks briefly."""
        machine = platform.rpartition("/")[2]
        copy = (
            f"copy machine-agent-v{self.version}-{machine} and machine-server-v{self.version}-{machine} into "
            f"{self.folder} and try again"
        )
        if self.checkout is None:
            return MachineError(
                f"there are no release files of version {self.version} for {platform}, and this cloud does not run "
                "from its sources, from which it could build them",
                kind=ErrorKind.PRECONDITION,
                remedy=copy,
            )
        absent = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
        if absent:
            return MachineError(
                f"there are no release files of version {self.version} for {platform}, and programs to build them are "
                "missing on this computer",
                kind=ErrorKind.PRECONDITION,
                remedy=f"apt-get install {' '.join(absent)}; or {copy}",
            )
        return None

    async def build(self, platform: str, say: Callable[[str], Awaitable[None]]) -> None:
        """Build both programs for a platform, with `say` for lines of progress. Raises MachineError.

        The files appear in the folder when both are complete; an interrupted build leaves none there.
        """
        assert self.checkout is not None
        work, machine = self.folder / "build", platform.rpartition("/")[2]
        command = [sys.executable, "-m", "tools.release", "--machine", machine, "--out", str(work)]
        try:
            async with process_group(command, cwd=self.checkout, stdout=PIPE, stderr=STDOUT) as group:
                output = group.process.stdout
                assert output is not None
                last = await _follow(output, say)
                code = await group.wait()
        except OSError as error:
            raise _failed(platform, str(error)) from None
        if code:
            raise _failed(platform, last)
        for program in PROGRAMS:
            name = f"{program}-v{self.version}-{machine}"
            try:
                (work / name).replace(self.folder / name)
            except OSError as error:
                raise _failed(platform, f"{work / name}: {error.strerror}") from None


async def _follow(output: trio.abc.ReceiveStream, say: Callable[[str], Awaitable[None]]) -> str:
    """Pass on the lines of a program's output, and return its end."""
    rest, last = b"", ""
    async for piece in output:
        *lines, rest = (rest + piece).split(b"\n")
        rest = rest[-_TAIL:]
        for line in lines:
            text = line.decode(errors="replace")
            last = f"{last}\n{text}"[-_TAIL:]
            await say(text[:_LINE])
    return f"{last}\n{rest.decode(errors='replace')}"[-_TAIL:].strip()


def _failed(platform: str, reason: str) -> MachineError:
    return MachineError(
        f"the build for {platform} failed: {reason}",
        kind=ErrorKind.UNAVAILABLE,
        remedy="correct the cause and try again; `make release` in the folder of the sources does the same",
    )
