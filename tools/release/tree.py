"""The tree of files of a release: an interpreter, its libraries, the packages, and the scripts that start programs.

Nothing in it names the folder in which it lies. The packages are in the folder of the standard library, so that neither
the module `site` nor an environment variable is needed to import them, and both are switched off.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tools.release.elf import missing, read_all
from uplink.releases import AGENT, SERVER

PYTHON: Final = "python3.11"
COMMAND: Final = "machine"
ENTRIES: Final[Mapping[str, str]] = {AGENT: "agent.start", SERVER: "runtime.server.start", COMMAND: "command.cli"}
"""The module of each program in a release."""

LIBRARY: Final = Path("lib", PYTHON)

# The standard library: what no program uses, and modules whose libraries would be needed only for them.
_UNUSED: Final = re.compile(
    r"(?:test|idlelib|tkinter|turtledemo|lib2to3|ensurepip|pydoc_data|config-.*|__pycache__|EXTERNALLY-MANAGED"
    r"|sitecustomize\.py|_distutils_system_mod\.py"
    r"|(?:_test\w*|xx\w*|_xxtestfuzz|nis|_dbm|_gdbm|_crypt|ossaudiodev|_curses\w*|readline|_tkinter)\.cpython.*)"
)
# What wheels contain and no program needs at run time. The SDK's library dials machines for the SDK only.
# Weights for training are for machine-cloud, of which there are no releases.
_UNUSED_PACKAGES: Final = (
    *("bin", "**/libviam_rust_utils.so", "training/weights/*.onnx"),
    *("**/RECORD", "**/direct_url.json", "**/REQUESTED"),
)

_RUN: Final = """\
#!/bin/sh
# Starts {program} of the folder in which this script lies, also if the script is called through a link.
root=$(readlink -f -- "$0") || exit 1
root=${{root%/*}}
exec "$root/bin/{python}" -I -S "$root/lib/start/{program}" "$@"
"""
_START: Final = """\
from {module} import main

if __name__ == "__main__":
    raise SystemExit(main())
"""


def assemble(tree: Path, *, debian: Path, packages: Path, contents: Mapping[str, str]) -> None:
    """Create the tree from unpacked Debian packages and installed Python packages. Replaces what is there.

    `contents` (name to version of all that is inside) is stored in `contents.json`. Raises FileNotFoundError if a
    library is in neither of them.
    """
    shutil.rmtree(tree, ignore_errors=True)
    (tree / "bin").mkdir(parents=True)
    shutil.copy2(debian / "usr/bin" / PYTHON, tree / "bin")
    shutil.copytree(
        debian / "usr" / LIBRARY,
        tree / LIBRARY,
        ignore=lambda folder, names: {name for name in names if _UNUSED.fullmatch(name)},
        symlinks=True,
    )
    shutil.copytree(packages, tree / LIBRARY, dirs_exist_ok=True, symlinks=True)
    for pattern in _UNUSED_PACKAGES:
        for path in list((tree / LIBRARY).glob(pattern)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    _add_libraries(tree, debian)
    for program, module in ENTRIES.items():
        _write(tree / "lib/start" / program, _START.format(module=module), 0o644)
        _write(run_script(tree, program), _RUN.format(program=program, python=PYTHON), 0o755)
    shutil.copy2(run_script(tree, COMMAND), tree / COMMAND)
    _write(tree / "contents.json", json.dumps(dict(sorted(contents.items())), indent=1) + "\n", 0o644)
    _compile(tree)


def run_script(tree: Path, program: str) -> Path:
    """Return the script that starts a program once it is in the root of the tree."""
    return tree / "lib/start" / f"{program}.sh"


def _add_libraries(tree: Path, debian: Path) -> None:
    """Copy the libraries that files of the tree need, and let these files find them relative to themselves."""
    folders = sorted({*debian.glob("usr/lib/*-linux-gnu"), *debian.glob("lib/*-linux-gnu")})
    files = read_all(tree)
    copied: set[str] = set()
    while absent := missing(files):
        for name, user in absent.items():
            source = next((folder / name for folder in folders if (folder / name).exists()), None)
            if source is None:
                raise FileNotFoundError(2, f"no Debian package of this build contains {name}, needed by {user}")
            target = tree / "lib" / name
            shutil.copyfile(source.resolve(), target)
            copied.add(name)
        files = read_all(tree)
    for path, elf in files.items():
        if path.parent == tree / "lib" or copied.intersection(elf.libraries):
            up = "/".join([".."] * (len(path.relative_to(tree).parts) - 2))
            place = "$ORIGIN/../lib" if path.parent.name == "bin" else f"$ORIGIN/{up}".rstrip("/")
            _run("patchelf", "--add-rpath", place, str(path))


def _compile(tree: Path) -> None:
    """Compile all modules; their compiled files are never compared with the sources, which do not change."""
    if not PYTHON.endswith(f"{sys.version_info[0]}.{sys.version_info[1]}"):
        raise RuntimeError(f"releases are compiled with {PYTHON}: create the virtual environment with it (PYTHON=…)")
    _run(
        *(sys.executable, "-I", "-m", "compileall", "-q", "-j", "2", "--invalidation-mode", "unchecked-hash"),
        *("-s", str(tree), "-x", r"/(?:bad_coding|lib2to3)", str(tree / LIBRARY)),
        environment={"PYTHONHASHSEED": "0"},
    )


def _run(*command: str, environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"{_shown(command)} failed: {(done.stderr or done.stdout).strip()[-2000:]}")


def _shown(command: Sequence[str]) -> str:
    return " ".join(command)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
