"""What the tests of machine-agent run in the guest: questions to the agent, the state of both programs, moments.

    python3 inside.py ask COMMAND [ARGUMENTS]      the last value that the agent answers to a command
    python3 inside.py state                        what runs, and what is wrong with it
    python3 inside.py wait PROGRAM STEP COUNT SECONDS

`wait` prints `now` when the program's update has reached the step, and then COUNT changes of files below /opt/machine
or SECONDS have passed, whichever comes first. With the step `end`, it waits for the end of the update.

Standard library only, so that it starts fast.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path("/opt/machine")
CONSOLE: Final = "/run/machine/agent.sock"
PROGRAMS: Final = ("machine-agent", "machine-server")
SUMS: Final = "SHA256SUMS"
LIMIT: Final = 20.0  # seconds for an answer of the agent
START_LIMIT: Final = 60.0  # seconds until an update begins
_EVENTS: Final = 0x002 | 0x0C0 | 0x100 | 0x200  # modified, moved, created, deleted
_HEADER: Final = struct.Struct("iIII")


def ask(command: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return {"value": …} with the last value, or {"error": …}."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(LIMIT)
        try:
            peer.connect(CONSOLE)
            peer.sendall(json.dumps({"command": command, "arguments": arguments}).encode() + b"\n")
            value: Any = None
            for line in peer.makefile():
                reply = json.loads(line)
                if reply.get("error"):
                    return {"error": reply["error"]}
                value = reply.get("value", value)
                if reply.get("end"):
                    return {"value": value}
        except OSError as error:
            return {"error": f"no answer: {error}"}
    return {"error": "the connection ended"}


def state() -> dict[str, Any]:
    """Return what runs, the records, and `wrong`: everything that must never be so."""
    wrong: list[str] = []
    result: dict[str, Any] = {"wrong": wrong}
    for program in PROGRAMS:
        pid = int(_output("systemctl", "show", "-PMainPID", f"{program}.service") or 0)
        variables = _variables(pid) if pid else {}
        release = variables.get("MACHINE_RELEASE", "")
        facts: dict[str, Any] = {"pid": pid, "release": release, "version": "", "record": _record(program)}
        facts["fell_back"] = variables.get("MACHINE_LAUNCH_FELL_BACK", "")
        if release:
            facts["version"] = _version(program, release)
            folder = ROOT / "releases" / program / release
            if not variables.get("PYTHONPATH", f"{folder}/").startswith(f"{folder}/"):
                wrong.append(f"{program} {release[:8]} runs with modules of {variables['PYTHONPATH']}")
            wrong += _problems(program, release)
        for name in ("run", "back"):
            link = ROOT / "launch" / program / name
            if link.is_symlink():
                wrong += _problems(program, link.resolve().name)
        folder = ROOT / "releases" / program
        facts["kept"] = sorted(path.name for path in folder.iterdir() if not path.is_symlink())
        result[program] = facts
    result["downloads"] = sorted(path.name for path in (ROOT / "downloads").iterdir())
    return result


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _variables(pid: int) -> dict[str, str]:
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _record(program: str) -> Any:
    try:
        return json.loads((ROOT / "state" / f"{program}.json").read_bytes())["record"]
    except (OSError, ValueError, KeyError):
        return None


def _version(program: str, release: str) -> str:
    try:
        return str(json.loads((ROOT / "releases" / program / release / "release.json").read_bytes())["version"])
    except (OSError, ValueError, KeyError):
        return ""


def _problems(program: str, release: str) -> Iterator[str]:
    """Yield what is wrong with the files of a release: each must be there, complete, and of this version."""
    folder, what = ROOT / "releases" / program / release, f"{program} {release[:8]}"
    version = _version(program, release)
    try:
        lines = (folder / SUMS).read_text().splitlines()
    except OSError as error:
        yield f"{what}: {error}"
        return
    for line in lines:
        sha256, _, name = line.partition("  ")
        try:
            content = (folder / name).read_bytes()
        except OSError as error:
            yield f"{what}: {error}"
            continue
        if hashlib.sha256(content).hexdigest() != sha256:
            yield f"{what}: {name} is not complete: {len(content)} bytes"
        if name.startswith("part-") and not content.startswith(f"{program} {version}\n".encode()):
            yield f"{what}: {name} is of {content.partition(bytes([10]))[0]!r}, and not of {version}"


class Changes:
    """The changes of files in the folders of the agent, by inotify."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._add = libc.inotify_add_watch
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched: dict[int, Path] = {}
        for folder in (
            "state",
            "downloads",
            *(f"{kind}/{name}" for kind in ("launch", "releases") for name in PROGRAMS),
        ):
            self._watch(ROOT / folder)

    def _watch(self, path: Path) -> None:
        number = self._add(self._descriptor, os.fsencode(path), _EVENTS)
        if number >= 0:
            self._watched[number] = path

    def wait(self, seconds: float) -> int:
        """Return the number of changes until now; wait for one at most that long. New folders are watched too."""
        if not select.select([self._descriptor], [], [], max(0.0, seconds))[0]:
            return 0
        data, count, offset = os.read(self._descriptor, 65536), 0, 0
        while offset < len(data):
            number, mask, _, length = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size
            name = os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
            offset += length
            count += 1
            if mask & 0x100 and mask & 0x40000000:  # a new folder
                self._watch(self._watched[number] / name)
        return count


def wait(program: str, step: str, count: int, seconds: float) -> str:
    """Return the step at the moment of the cut."""
    changes = Changes()
    print("ready", flush=True)
    begun, reached, limit = False, False, time.monotonic() + START_LIMIT
    while not reached and time.monotonic() < limit:
        progress = (_record(program) or {}).get("progress")
        begun = begun or progress is not None
        reached = progress is None and begun if step == "end" else progress is not None and progress["step"] == step
        if not reached:
            changes.wait(limit - time.monotonic())
    limit = time.monotonic() + seconds
    while count > 0 and (left := limit - time.monotonic()) > 0:
        count -= changes.wait(left)
    return str(((_record(program) or {}).get("progress") or {}).get("step", "end"))


def main(words: list[str]) -> None:
    """Carry out a command line."""
    if words[0] == "ask":
        print(json.dumps(ask(words[1], json.loads(words[2]) if len(words) > 2 else {})))
    elif words[0] == "state":
        print(json.dumps(state()))
    else:
        print(f"now {wait(words[1], words[2], int(words[3]), float(words[4]))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
