"""`machine-server -install` and `-uninstall`: a unit of systemd that runs machine-server without machine-agent.

The functions block. The unit is `machine-server.service`, as with machine-agent: a computer has one of them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from schema import ErrorKind, MachineError
from support.files import replace_file
from uplink.releases import MAX_HEADER, SERVER, read_header

MARK: Final = "# Written by machine-server -install."
UNIT: Final = "etc/systemd/system/machine-server.service"
PROGRAM: Final = "usr/local/bin/machine-server"
AGENT: Final = ("opt/machine/launch/machine-server", "etc/systemd/system/machine-agent.service",
                "usr/local/lib/systemd/system/machine-agent.service")  # fmt: skip
"""Files that exist if machine-agent is installed."""
FILE: Final = "MACHINE_RELEASE_FILE"
"""Variable in which a release file that is executed names itself."""
LIMIT: Final = 150.0  # seconds for a command; machine-server may take 120 s to stop

_SWITCHES: Final = (
    "debug", "no_tls", "allow_insecure_creds", "allow_open_shell", "reveal_sensitive_config_diffs",
    "output_telemetry", "disable_mdns", "untrusted_env", "webprofile",
)  # fmt: skip
_PATHS: Final = ("log_file", "shareddir")


def run_install(options: dict[str, Any]) -> int:
    """Install with the parsed options of the command line; print what is done, and return the exit code."""
    return _reported(lambda: install(Path("/"), words_of(options), release=_release()))


def run_uninstall() -> int:
    """Remove what `run_install` has installed; print what is done, and return the exit code."""
    return _reported(lambda: uninstall(Path("/")))


def words_of(options: dict[str, Any]) -> list[str]:
    """Return the arguments of the service for parsed options. Paths are absolute."""
    words = ["-config", str(options["config"].absolute())]
    words += [f"-{name.replace('_', '-')}" for name in _SWITCHES if options[name]]
    words += [
        word
        for name in _PATHS
        if options[name]
        for word in (f"-{name.replace('_', '-')}", str(options[name].absolute()))
    ]
    if not options["ftdc"]:
        words.append("-ftdc=false")
    if options["hardware"] != "linux":
        words += ["-hardware", options["hardware"]]
    return words


def install(root: Path, words: Sequence[str], *, release: Path | None) -> list[str]:
    """Write, enable and start the unit for these arguments; return what was done. Can be repeated.

    A release file that was executed, `release`, is copied to PROGRAM; otherwise the unit uses this Python environment.
    Raises MachineError: PRECONDITION if machine-agent or another program wrote the unit, or systemd does not run.
    """
    config, unit = Path(words[1]), root / UNIT
    _check(root, unit)
    if not (root / str(config).lstrip("/")).is_file():
        raise MachineError(f"-config {config} does not exist", kind=ErrorKind.PRECONDITION, remedy="create it first")
    done = []
    program = [sys.executable, "-m", "runtime.server.start"]
    text = unit_text([f"/{PROGRAM}"] if release is not None else program, words)
    if release is not None:
        copy = root / PROGRAM
        _check_program(release)
        if not (copy.exists() and copy.samefile(release)):
            if os.path.lexists(copy):
                _check_program(copy)
            copy.parent.mkdir(parents=True, exist_ok=True)
            part = copy.with_name(f".{copy.name}.part")
            part.unlink(missing_ok=True)
            shutil.copyfile(release, part)
            part.chmod(0o755)
            part.replace(copy)
            done.append(f"/{PROGRAM}: copied from {release}")
    replace_file(unit, text.encode())
    unit.chmod(0o644)
    done.append(f"/{UNIT}: written")
    for command in (["daemon-reload"], ["enable", unit.name], ["restart", unit.name]):
        _systemctl(*command)
    return [*done, f"{unit.name}: enabled and started; `journalctl -u machine-server` shows its log"]


def uninstall(root: Path) -> list[str]:
    """Stop the service, and remove its unit and the copied program; return what was done. Data and configuration stay.

    Raises MachineError (PRECONDITION) if the unit is not one of `install`.
    """
    unit, copy = root / UNIT, root / PROGRAM
    if not unit.exists():
        return [f"nothing is installed: /{UNIT} does not exist"]
    _check(root, unit)
    text = unit.read_text(errors="replace")
    _systemctl("disable", "--now", unit.name)
    unit.unlink()
    done = [f"{unit.name}: stopped", f"/{UNIT}: removed"]
    if f"/{PROGRAM} " in text and copy.is_file():
        _check_program(copy)
        copy.unlink()
        done.append(f"/{PROGRAM}: removed")
    _systemctl("daemon-reload")
    return done


def unit_text(program: Sequence[str], words: Sequence[str]) -> str:
    """Return the unit. MachineError (INVALID) for an argument that a unit cannot contain."""
    command = " ".join(_quoted(word) for word in (*program, *words))
    return f"""{MARK}
[Unit]
Description=machine-server
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart={command}
Restart=always
RestartSec=5
KillMode=mixed
TimeoutStopSec=120
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
"""


def _check(root: Path, unit: Path) -> None:
    if not (root / "run/systemd/system").is_dir():
        raise MachineError(
            "systemd is not the init process of this system",
            kind=ErrorKind.PRECONDITION,
            remedy="run machine-server under the supervision that the system has",
        )
    if os.geteuid() != 0:
        raise MachineError("root is required", kind=ErrorKind.PERMISSION, remedy="use sudo")
    if any(os.path.lexists(root / name) for name in AGENT):
        raise MachineError(
            "machine-agent manages machine-server on this computer",
            kind=ErrorKind.PRECONDITION,
            remedy="leave it to the agent, or remove both with `machine-agent --uninstall` first",
        )
    if os.path.lexists(unit) and not unit.read_text(errors="replace").startswith(MARK):
        raise MachineError(
            f"/{UNIT} was not written by machine-server -install",
            kind=ErrorKind.PRECONDITION,
            remedy="move it away, or keep it",
        )


def _release() -> Path | None:
    path = os.environ.get(FILE, "")
    return Path(path) if path else None


def _check_program(path: Path) -> None:
    """Raise MachineError unless this is a release file of machine-server."""
    try:
        with path.open("rb") as file:
            program = read_header(file.read(MAX_HEADER)).program
    except (MachineError, OSError):
        program = ""
    if program != SERVER:
        raise MachineError(
            f"{path} is not a release file of machine-server", kind=ErrorKind.PRECONDITION, remedy="move it away"
        )


def _quoted(word: str) -> str:
    if any(character in word for character in "\n\r\"'\\"):
        raise MachineError(
            f"{word!r} cannot be written into a unit",
            kind=ErrorKind.INVALID,
            remedy="use a path without quotes and backslashes",
        )
    return f'"{word.replace("%", "%%").replace("$", "$$")}"' if set(word) & set(" %$;") else word


def _systemctl(*words: str) -> None:
    try:
        done = subprocess.run(["systemctl", *words], capture_output=True, text=True, timeout=LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineError(f"`systemctl {' '.join(words)}` failed: {error}", kind=ErrorKind.PRECONDITION) from None
    if done.returncode != 0:
        raise MachineError(
            f"`systemctl {' '.join(words)}` failed: {done.stderr.strip()[:500]}", kind=ErrorKind.PRECONDITION
        )


def _reported(action: Any) -> int:
    try:
        lines = action()
    except MachineError as error:
        sys.stderr.write(f"machine-server: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"machine-server: {error.filename}: {error.strerror}\n")
        return 1
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0
