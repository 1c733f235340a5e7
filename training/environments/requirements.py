"""The requirements of a training script: which of its files state them, and which lines are accepted.

Nothing of the script is run. Accepted are names with versions, extras and markers (PEP 508) only, because the cloud
downloads what they name with its own network and credentials. A file of a tenant chooses no index, URL, path or file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement

from schema import ErrorKind, MachineError

LOCK: Final = "requirements.lock"
MAX_LINES: Final = 500  # requirements
MAX_LOCKED: Final = 2000  # packages of a lock
MAX_LENGTH: Final = 1000  # characters of a requirement
MAX_FILE: Final = 256 * 1024  # bytes
MAX_LOCK: Final = 4 * 1024**2
_NAME: Final = "write a name with versions, such as numpy>=2,<3"
_INDEX: Final = "remove it: the operator of the cloud chooses the indexes"
_OPTIONS: Final[Mapping[str, str]] = {
    "-r": "write the requirements of that file here",
    "--requirement": "write the requirements of that file here",
    "-c": "write the versions here",
    "--constraint": "write the versions here",
    "-e": "put the package's files next to model/",
    "--editable": "put the package's files next to model/",
    "-i": _INDEX,
    "--index-url": _INDEX,
    "--extra-index-url": _INDEX,
    "--find-links": _INDEX,
    "-f": _INDEX,
    "--trusted-host": _INDEX,
    "--hash": f"call the file {LOCK} if it has hashes for all packages",
}
"""What to do instead of each option of a requirements file."""
_HASH: Final = re.compile(r"(?<=\s)--hash[=\s]+(\S+)")
_GOOD_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128}")
_COMMENT: Final = re.compile(r"(^|\s)#.*$")


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirements in normal form. `locked`: exact versions of all packages, with hashes."""

    file: str  # which states them
    lines: tuple[str, ...]
    locked: bool = False

    @property
    def text(self) -> str:
        """The content of a requirements file."""
        return "".join(f"{line}\n" for line in self.lines)


def requirements_of(program: Path) -> tuple[Requirements | None, str]:
    """Return the requirements of an unpacked script, None if it has none, and a remark for its log or "". Blocking.

    MachineError if a file cannot be used. The first of these files that exists counts: `requirements.lock`,
    `requirements.txt`, `pyproject.toml` with dependencies, `PKG-INFO` with Requires-Dist, `*.egg-info/requires.txt`.
    """
    for name, most, parse in _SOURCES:
        for file in sorted(program.glob(name)):
            if not file.is_file():
                continue
            shown = str(file.relative_to(program))
            lines = parse(shown, _content(file, shown, most))
            if lines is not None:
                return (Requirements(shown, lines, name == LOCK) if lines else None), ""
    setup = program / "setup.py"
    if setup.is_file() and b"install_requires" in setup.read_bytes()[:MAX_FILE]:
        return None, (
            "setup.py is not run, so its install_requires are not installed: add requirements.txt, or upload "
            "the archive that `python -m build --sdist` makes"
        )
    return None, ""


def _content(file: Path, name: str, most: int) -> str:
    size = file.stat().st_size
    if size > most:
        raise _refusal(name, f"it has {size} bytes", f"use at most {most} bytes")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refusal(name, f"byte {error.start} is not UTF-8", "save it as UTF-8") from None


def parse_text(file: str, text: str) -> tuple[str, ...]:
    """Return the requirements in a requirements file. MachineError names the file, the line and what would be right."""
    return _checked(file, ((f"line {number}", line) for number, line in _logical(text)), MAX_LINES, _requirement)


def parse_lock(file: str, text: str) -> tuple[str, ...]:
    """Return the lines of a lock: exact versions, each with hashes."""
    return _checked(file, ((f"line {number}", line) for number, line in _logical(text)), MAX_LOCKED, _pin)


def parse_project(file: str, text: str) -> tuple[str, ...] | None:
    """Return `project.dependencies` of pyproject.toml, None if it does not state them."""
    try:
        project = tomllib.loads(text).get("project")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _refusal(file, f"it is not TOML: {error}", "correct it") from None
    listed = project.get("dependencies") if isinstance(project, dict) else None
    if listed is None:
        return None
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise _refusal(file, "project.dependencies is not a list of texts", 'write ["numpy>=2"]')
    numbered = ((f"project.dependencies.{number}", entry) for number, entry in enumerate(listed))
    return _checked(file, numbered, MAX_LINES, _requirement)


def parse_metadata(file: str, text: str) -> tuple[str, ...] | None:
    """Return what `Requires-Dist` of PKG-INFO requires without extras, None if it has no such field."""
    header = text.partition("\n\n")[0].splitlines()
    prefix = "requires-dist:"
    fields = [
        (f"line {number}", line[len(prefix) :].strip())
        for number, line in enumerate(header, 1)
        if line.lower().startswith(prefix)
    ]
    lines = _checked(file, iter(fields), MAX_LINES, _requirement)
    return tuple(line for line in lines if not _of_extra(line)) if fields else None


def parse_egg(file: str, text: str) -> tuple[str, ...]:
    """Return what `requires.txt` of setuptools requires without extras: sections are `[extra:marker]`."""
    entries: list[tuple[str, str]] = []
    extra = marker = ""
    for number, line in _logical(text):
        if line.startswith("["):
            extra, _, marker = line.strip("[]").partition(":")
        elif not extra:
            entries.append((f"line {number}", f"{line} ; {marker}" if marker else line))
    return _checked(file, iter(entries), MAX_LINES, _requirement)


_Parse = Callable[[str, str], "tuple[str, ...] | None"]
_SOURCES: Final[tuple[tuple[str, int, _Parse], ...]] = (
    (LOCK, MAX_LOCK, parse_lock),
    ("requirements.txt", MAX_FILE, parse_text),
    ("pyproject.toml", MAX_FILE, parse_project),
    ("PKG-INFO", 4 * MAX_FILE, parse_metadata),  # it contains the whole description
    ("*.egg-info/requires.txt", MAX_FILE, parse_egg),
)
"""Files in the order in which they are looked for, their sizes, and how they are read."""


def _of_extra(line: str) -> bool:
    marker = Requirement(line).marker
    return marker is not None and "extra" in str(marker)


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and content of each line that is not empty; a backslash at the end continues a line."""
    start, pieces = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        start = start if pieces else number
        stripped = _COMMENT.sub("", line).strip()
        if stripped.endswith("\\"):
            pieces.append(stripped[:-1].strip())
            continue
        if content := " ".join([*pieces, stripped]).strip():
            yield start, content
        pieces = []


def _checked(file: str, entries: Iterator[tuple[str, str]], most: int, parse: Callable[[str], str]) -> tuple[str, ...]:
    lines: list[str] = []
    for place, entry in entries:
        if len(lines) == most:
            raise _refusal(file, f"it has more than {most} requirements", "name fewer packages")
        try:
            lines.append(parse(entry))
        except _UnfitError as error:
            raise _refusal(f"{file}, {place}: {_shown(entry)}", error.reason, error.remedy) from None
    return tuple(lines)


class _UnfitError(Exception):
    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def _requirement(entry: str) -> str:
    """Return a requirement in normal form."""
    if len(entry) > MAX_LENGTH:
        raise _UnfitError(f"it has {len(entry)} characters", f"use at most {MAX_LENGTH}")
    if entry.startswith("-") or " --" in entry:
        option = re.split(r"[\s=]", entry[entry.find("-") if entry.startswith("-") else entry.find(" --") + 1 :])[0]
        raise _UnfitError(f"the option {option[:40]} is not accepted", _OPTIONS.get(option, "remove it"))
    if "$" in entry:
        raise _UnfitError("environment variables are not replaced", "write the value")
    if not entry.isprintable():
        raise _UnfitError("it contains a control character", "remove it")
    try:
        parsed = Requirement(entry)
        text = str(parsed)
    except (InvalidRequirement, RecursionError):
        raise _UnfitError("it is not the requirement of a package", _NAME) from None
    if parsed.url is not None:
        raise _UnfitError("URLs and paths are not accepted", _NAME)
    return text


def _pin(entry: str) -> str:
    hashes = _HASH.findall(entry)
    wrong = [value for value in hashes if not _GOOD_HASH.fullmatch(value)]
    if not hashes or wrong:
        raise _UnfitError(
            f"{_shown(wrong[0])} is not a SHA-256" if wrong else "it has no hash",
            f"make {LOCK} with `uv pip compile --generate-hashes`",
        )
    requirement = _requirement(_HASH.sub("", entry).strip())
    versions = list(Requirement(requirement).specifier)
    if len(versions) != 1 or versions[0].operator != "==" or versions[0].version.endswith("*"):
        raise _UnfitError("it does not name one version", "write NAME==VERSION")
    return " ".join([requirement, *(f"--hash={value}" for value in sorted(set(hashes)))])


def _shown(text: str) -> str:
    return ascii(text if len(text) <= 100 else text[:99] + "…")


def _refusal(place: str, reason: str, remedy: str) -> MachineError:
    return MachineError(
        f"the requirements of the script cannot be used: {place}: {reason}",
        kind=ErrorKind.PRECONDITION,
        remedy=remedy,
    )
