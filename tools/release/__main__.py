"""Build release files of both programs: `make release`, or `python -m tools.release --machine aarch64`.

A release for another processor is assembled from packages of this processor; nothing of them is executed.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.release.elf import read_all
from tools.release.inputs import DEBIAN, SUITE, fetch_debian, fetch_packages, missing_tools
from tools.release.pack import pack
from tools.release.tree import assemble, run_script
from uplink.releases import PROGRAMS, Header, check_version

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """Build what the command line asks for; return the exit code."""
    options = _options(arguments)
    if absent := missing_tools():
        print(f"release: install {' '.join(absent)}: apt-get install {' '.join(absent)}", file=sys.stderr)
        return 1
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    try:
        check_version(version)
        build(options.machine, version, options.out, options.program or list(PROGRAMS))
    except (OSError, RuntimeError, LookupError, ValueError) as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


def build(machine: str, version: str, out: Path, programs: list[str]) -> None:
    """Build release files for a processor into `out`, and print what they are."""
    work = out / "work" / machine
    begin = time.monotonic()
    contents = fetch_debian(machine, work / "debian")
    _say(begin, f"unpacked {len(contents)} packages of Debian {SUITE} for {machine}")
    contents |= fetch_packages(machine, work / "packages", ROOT)
    _say(begin, f"installed the Python packages: {len(contents)} packages in all")
    tree = work / "tree"
    assemble(tree, debian=work / "debian", packages=work / "packages", contents=contents)
    oldest = max((elf.glibc, path) for path, elf in read_all(tree).items())
    _say(begin, f"needs glibc {oldest[0][0]}.{oldest[0][1]} because of {oldest[1].relative_to(tree)}")
    with ThreadPoolExecutor(max_workers=2) as pool:  # lzma runs without the lock of the interpreter
        jobs = [
            pool.submit(pack, Header(program, version, f"linux/{machine}"), tree, run_script(tree, program), out)
            for program in programs
        ]
    for packed in (job.result() for job in jobs):
        _say(begin, f"{packed.path}: {packed.size / 2**20:.1f} MiB, unpacked {packed.unpacked / 2**20:.0f} MiB")
        _say(begin, f"SHA-256 {packed.sha256}")


def _say(begin: float, text: str) -> None:
    print(f"{time.monotonic() - begin:5.1f} s  {text}", flush=True)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tools.release", description="Build release files.")
    parser.add_argument("--machine", choices=sorted(DEBIAN), default=os.uname().machine, help="processor (this one)")
    parser.add_argument("--program", choices=PROGRAMS, action="append", help="only this program (both)")
    parser.add_argument("--out", type=Path, default=ROOT / "build/release", help="folder (build/release)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
