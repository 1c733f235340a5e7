"""The archive of `machine agent bundle`: facts for support, without secrets. The functions block.

Every text passes a masker that knows the secrets of this device by value and recognizes others by their form. The
credentials file itself is never included.
"""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from agent.diagnosis.checks import CheckedDevice
from agent.diagnosis.facts import output
from agent.layout import PROGRAMS
from schema import Masker
from support.foreign import walk

MAX_TEXT: Final = 8 << 20  # bytes of one entry; the end is kept, because it is the newest of a log
JOURNAL_LINES: Final = 5000
LISTED: Final = 5000  # entries of the list of files

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "system/uname.txt": ("uname", "-a"),
    "system/disks.txt": ("df", "-h"),
    "system/memory.txt": ("free", "-m"),
    "system/addresses.txt": ("ip", "address"),
    "system/routes.txt": ("ip", "route"),
    "system/time.txt": ("timedatectl",),
    "system/failed-units.txt": ("systemctl", "--failed", "--no-pager"),
    "system/kernel.txt": ("journalctl", "--dmesg", "--no-pager", "--lines", "500"),
    **{
        f"journal/{program}.txt": ("journalctl", "--unit", program, "--no-pager", "--lines", str(JOURNAL_LINES))
        for program in PROGRAMS
    },
    **{f"units/{program}.txt": ("systemctl", "cat", f"{program}.service", "--no-pager") for program in PROGRAMS},
}
"""Entries that are the output of a command; those whose command fails or is not installed are left out."""

FILES: Final = ("/etc/os-release", "/proc/device-tree/model", "/proc/meminfo")


def bundle_contents(device: CheckedDevice, findings: str, status: bytes | None) -> Iterator[tuple[str, bytes]]:
    """Yield the name and text of each entry, from the text of the checks and the status (JSON) of a running agent."""
    masker = _masker(device)

    def masked(data: bytes) -> bytes:
        return masker.text(data[-MAX_TEXT:].decode("utf-8", "replace")).encode()

    yield "checks.txt", masked(findings.encode())
    if status is not None:
        yield "status.json", masked(status)
    for program in PROGRAMS:
        record = _read(device.layout.record(program))
        if record is not None:
            yield f"state/{program}.json", _without_queries(record, masked)
    for name in (*FILES, str(device.defaults)):
        text = _read(Path(name))
        if text is not None:
            yield f"files{name}", masked(text.rstrip(b"\0"))
    yield "files.txt", masked("\n".join(_listed(device.layout.root)).encode())
    for name, command in COMMANDS.items():
        text_of_command = output(command)
        if text_of_command:
            yield name, masked(text_of_command.encode())


def write_bundle(path: Path, entries: Iterator[tuple[str, bytes]]) -> int:
    """Write entries to a new compressed archive, readable only by its owner; return their number.

    FileExistsError if `path` exists; other OSErrors if it cannot be written, and then nothing is left.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    count = 0
    try:
        with open(descriptor, "wb") as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, data in entries:
                member = tarfile.TarInfo(f"{path.name.partition('.')[0]}/{name.lstrip('/')}")
                member.size, member.mtime, member.mode = len(data), int(time.time()), 0o600
                archive.addfile(member, io.BytesIO(data))
                count += 1
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return count


def _masker(device: CheckedDevice) -> Masker:
    """Return a masker that knows the secrets of credentials, defaults, and the settings of the cloud.

    All values of environment variables count as secrets, whatever their names.
    """
    masker = Masker()
    for path in (device.config, device.defaults, device.layout.state / "settings.json"):
        try:
            document = msgspec.json.decode(_read(path) or b"{}")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        masker = masker.and_those_of(document)
        advanced = document.get("advanced_settings") if isinstance(document, dict) else None
        variables = advanced.get("viam_server_env") if isinstance(advanced, dict) else None
        if isinstance(variables, dict):
            masker = masker.and_those_of({"secrets": [str(value) for value in variables.values()]})
    return masker


def _without_queries(record: bytes, masked: Callable[[bytes], bytes]) -> bytes:
    """Return a record without the queries of its URLs, which may be signatures."""
    try:
        document = msgspec.json.decode(record)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return b"the record is damaged\n"

    def cleaned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: cleaned(item) for key, item in value.items()}
        if isinstance(value, list):
            return [cleaned(item) for item in value]
        return value.partition("?")[0] if isinstance(value, str) and "://" in value else value

    return masked(msgspec.json.format(msgspec.json.encode(cleaned(document)), indent=1))


def _listed(root: Path) -> Iterator[str]:
    """Yield a line for each file and folder of the installation, without the insides of releases."""
    count = 0
    for folder, folders, files in walk(root):
        if Path(folder).parent.parent == root / "releases":
            folders.clear()
            files = files[:20]
        for name in sorted((*folders, *files)):
            count += 1
            if count > LISTED:
                yield f"... and more than {LISTED} further entries"
                return
            path = Path(folder, name)
            try:
                status = path.lstat()
            except OSError:
                continue
            link = f" -> {os.readlink(path)}" if path.is_symlink() else ""
            yield f"{status.st_mode:o} {status.st_uid}:{status.st_gid} {status.st_size:>10} {path}{link}"


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_TEXT)
    except OSError:
        return None
