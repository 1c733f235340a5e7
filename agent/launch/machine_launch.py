"""The launcher for Windows: starts a release of a program, and counts the starts of a release that is on trial.

    python machine_launch.py PROGRAM [ARGUMENT...]

It does what the script `machine-launch` does elsewhere, with the same files below %MACHINE_ROOT%: launch/PROGRAM/run
and `back`, which name the folder of a release, `trial`, the number of starts of `run`, and releases/PROGRAM/factory.

This file is copied to the folder of the installation, and must not need anything of the release that it starts: it
imports only the standard library, and runs with an interpreter that is installed next to it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Final, NamedTuple

MAX_STARTS: Final = 3
PATIENCE: Final = 2.0  # seconds to wait for readers of a file that is replaced
TRIAL_SECONDS: Final = 2400.0  # 10 minutes more than the agent takes to judge itself
RELEASE: Final = "MACHINE_RELEASE"
FELL_BACK: Final = "MACHINE_LAUNCH_FELL_BACK"
WRONG_USAGE: Final = 64
NOTHING_TO_START: Final = 78
_LINK: Final = "link to "
_MAX_BYTES: Final = 4096
_PROGRAM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")


class Start(NamedTuple):
    """What is started: the words of the command, and the folder of the release."""

    command: list[str]
    folder: Path
    fell_back: bool

    def environment(self, inherited: MutableMapping[str, str]) -> dict[str, str]:
        """Return the variables of the program."""
        variables = {name: value for name, value in inherited.items() if name not in (RELEASE, FELL_BACK)}
        variables[RELEASE] = self.folder.name
        if self.fell_back:
            variables[FELL_BACK] = "1"
        return variables


def say(text: str) -> None:
    """Write a line for the log."""
    if sys.stderr is not None:
        sys.stderr.write(f"machine-launch: {text}\n")


def command_of(folder: Path) -> list[str] | None:
    """Return the words that start the release in a folder; None if there is no release that can be started."""
    try:
        with open(folder / "run", "rb") as file:
            words = json.loads(file.read(_MAX_BYTES))
        if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
            return None
        program = folder / words[0]
        return [str(program), *words[1:]] if program.is_file() and program.stat().st_size else None
    except (OSError, ValueError, RecursionError):
        return None


def starts(root: Path, program: str) -> Iterator[Start]:
    """Yield what to start: first `run`, then what is started instead if that is not possible. Counts the starts."""
    launch = root / "launch" / program
    for name in ("run", "back", "factory"):
        link = root / "releases" / program / name if name == "factory" else launch / name
        folder = _target(link)
        command = command_of(folder) if folder is not None else None
        if folder is None or command is None:
            say(f"{link} does not lead to a release that can be executed")
            continue
        if name == "run":
            if not _admit(launch, program):
                continue
        else:
            if (launch / "trial").exists():
                _store(launch, MAX_STARTS + 1)
            say(f"starting {folder}, to which {link} leads, instead")
        yield Start(command, folder, name != "run")


def end_trial(root: Path, program: str, start: Start) -> bool:
    """Let the next start be that of `back` if `start` is still on trial; return whether it was."""
    launch = root / "launch" / program
    if start.fell_back or not (launch / "trial").exists() or _target(launch / "run") != start.folder:
        return False
    say(f"the release of {program} on trial was not confirmed within {TRIAL_SECONDS:g} seconds: it is ended")
    _store(launch, MAX_STARTS + 1)
    return True


def _target(link: Path) -> Path | None:
    """Return the folder to which a link leads, which on Windows is a file; None if it leads to none."""
    try:
        text = os.readlink(link) if link.is_symlink() else link.read_bytes()[:_MAX_BYTES].decode()
    except (OSError, ValueError):
        return None
    if not link.is_symlink() and not text.startswith(_LINK):
        return None
    folder = Path(os.path.abspath(link.parent / text.removeprefix(_LINK)))
    return folder if folder.is_dir() else None


def _admit(launch: Path, program: str) -> bool:
    """Count a start of `run` if it is on trial; return whether it may be started."""
    try:
        text = (launch / "trial").read_bytes()[:_MAX_BYTES].strip()
    except FileNotFoundError:
        return True
    except OSError:
        text = b""
    if text in (b"0", b"1", b"2"):
        if _store(launch, int(text) + 1):
            return True
        say(f"a start of {program} cannot be counted in {launch / 'trial'}: its release on trial is not started")
    else:
        say(f"the release of {program} on trial was started {MAX_STARTS} times and was not confirmed")
    return False


def _store(launch: Path, count: int) -> bool:
    """Store the number of starts so that it survives a power cut; return whether the disk has accepted it."""
    part = launch / "trial.part"
    try:
        with open(part, "wb") as file:
            file.write(b"%d\n" % count)
            file.flush()
            os.fsync(file.fileno())
        _replace(part, launch / "trial")
    except OSError:
        return False
    return True


def _replace(source: Path, target: Path) -> None:
    """Rename a file, also while the agent reads the one that it replaces: then shortly after. Raises OSError."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            os.replace(source, target)
        except PermissionError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)  # there is no event for the end of another program's access
        else:
            return


def main(arguments: list[str]) -> int:
    """Start a program once and wait for its end; return its exit status."""
    if not arguments or not _PROGRAM.match(arguments[0]):
        say("usage: machine_launch.py PROGRAM [ARGUMENT...]")
        return WRONG_USAGE
    root = Path(os.environ.get("MACHINE_ROOT") or r"C:\opt\machine")
    for start in starts(root, arguments[0]):
        try:
            return subprocess.call([*start.command, *arguments[1:]], env=start.environment(os.environ))
        except OSError as error:
            say(f"{start.command[0]} cannot be started: {error}")
    say(f"nothing to start: install {arguments[0]} again")
    return NOTHING_TO_START


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
