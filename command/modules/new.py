"""`machine module new`: creates a working module from templates."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from schema import ErrorKind, MachineError

FILES: Final = {
    "driver.py.txt": "${file_name}.py",
    "test_driver.py.txt": "test_${file_name}.py",
    "meta.json.txt": "meta.json",
    "machine.json.txt": "machine.json",
    "run.sh.txt": "run.sh",
    "pytest.ini.txt": "pytest.ini",
    "README.md.txt": "README.md",
    "gitignore.txt": ".gitignore",
}
"""Target files by template."""

PROGRAMS: Final = frozenset({"run.sh"})
_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9]*([-_][a-zA-Z0-9]+)*\Z", re.ASCII)
_NAMESPACE: Final = re.compile(r"[a-zA-Z0-9][-\w]*\Z", re.ASCII)
_TAKEN: Final = frozenset(
    {
        "command",
        "rig",
        "engine",
        "models",
        "runtime",
        "schema",
        "rpc",
        "hal",
        "telemetry",
        "trio",
        "msgspec",
        "pytest",
        "test",
        "statistics",
    }
)


def words(name: str, namespace: str) -> dict[str, str]:
    """Return the substitutions for the templates. Raises MachineError (INVALID) for an invalid name or namespace."""
    if not _NAME.match(name) or len(name) > 60:
        raise _wrong(
            f"{name!r} is not a valid name for a module", "use letters, digits and single '-', such as rover-arm"
        )
    if name.lower().replace("-", "_") in _TAKEN:
        raise _wrong(f"{name!r} is the name of a package that the module imports", "choose another name")
    if not _NAMESPACE.match(namespace):
        raise _wrong(f"{namespace!r} is not a valid namespace", "use letters, digits, '-' and '_'")
    parts = re.split("[-_]", name)
    return {
        "name": name,
        "namespace": namespace,
        "file_name": "_".join(parts).lower(),
        "class_name": "".join(part[0].upper() + part[1:] for part in parts),
    }


def fill(name: str, namespace: str) -> dict[str, str]:
    """Return the files of a new module, by name."""
    substitute = words(name, namespace)
    templates = files("command.modules") / "template"
    return {
        Template(target).substitute(substitute): Template((templates / source).read_text("utf-8")).substitute(
            substitute
        )
        for source, target in FILES.items()
    }


def write(folder: Path, name: str, namespace: str) -> list[str]:
    """Write a new module, and return the names of its files.

    Raises MachineError (EXISTS) unless `folder` is empty or does not exist.
    """
    texts = fill(name, namespace)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise MachineError(f"{folder} is not empty", kind=ErrorKind.EXISTS, remedy="choose another place with --folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            path = folder / file
            path.write_text(text, "utf-8")
            if file in PROGRAMS:
                path.chmod(0o755)
    except OSError as error:
        raise MachineError(f"{folder} cannot be written: {error.strerror}", kind=ErrorKind.PRECONDITION) from error
    return list(texts)


def _wrong(message: str, remedy: str) -> MachineError:
    return MachineError(message, kind=ErrorKind.INVALID, remedy=remedy)
