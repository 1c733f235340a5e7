"""Compare ways of packaging machine-server: size, time to `--version` and to the first answer, memory.

Run `make release` first. PyInstaller and shiv are installed into a temporary folder, so this needs a package registry:
`python -m bench.packaging [--runs 5]`. A way that cannot be built here is printed with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bench.footprint import ROOT, first_answer, free_port

PROGRAM = "machine-server"
WORK = ROOT / "build/release/work" / os.uname().machine
LIMIT_S = 60


class Way(NamedTuple):
    """A packaged machine-server."""

    file: Path  # what is transferred
    command: list[str]
    unpacked: Path | None = None  # what stays on the disk in addition to the file
    first: Callable[[], None] = lambda: None  # removes what an earlier start has unpacked


def run(*command: str, **environment: str) -> None:
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")


def compressed(folder: Path) -> Path:
    """Return the tar.xz of a folder, compressed as release files are."""
    file = folder.with_name(f"{folder.name}.tar.xz")
    run("tar", "-cJf", str(file), "-C", str(folder.parent), folder.name, XZ_OPT="-6 -T2")
    return file


def installed(work: Path) -> Way:
    program = Path(sys.executable).with_name(PROGRAM)
    return Way(program, [str(program)])


def release(work: Path) -> Way:
    file = next(iter(sorted((ROOT / "build/release").glob(f"{PROGRAM}-v*-{os.uname().machine}"))))
    cache = work / "cache"
    os.environ["MACHINE_RELEASE_CACHE"] = str(cache)
    return Way(file, [str(file)], cache, lambda: shutil.rmtree(cache, ignore_errors=True))


def tree(work: Path) -> Way:
    from agent.releases.unpack import unpack

    file = release(work).file
    unpack(file, work / "tree")
    return Way(file, [str(work / "tree/run")], work / "tree")


def squashfs(work: Path) -> Way:
    file, mounted = work / "tree.squashfs", work / "mounted"
    mounted.mkdir()
    run("mksquashfs", str(work / "tree"), str(file), "-comp", "xz", "-b", "1M", "-quiet", "-no-progress")
    run("mount", "-o", "loop,ro", str(file), str(mounted))
    return Way(file, [str(mounted / "run")])


def pyinstaller(work: Path, *, one_file: bool) -> Way:
    tools, clean, name = work / "tools", work / "clean", f"{PROGRAM}-{'file' if one_file else 'folder'}"
    if not tools.exists():
        run(sys.executable, "-m", "pip", "install", "-q", f"--target={tools}", "pyinstaller")
        run(sys.executable, "-m", "venv", "--without-pip", str(clean))  # it must not find optional packages
    (work / "start.py").write_text("from runtime.server.start import main\nmain()\n")
    packages = [*sorted(path.parent.name for path in ROOT.glob("*/py.typed")), "viam", "trio", "PIL"]
    run(
        *(
            str(clean / "bin/python"),
            "-m",
            "PyInstaller",
            "--noconfirm",
            "--onefile" if one_file else "--onedir",
            "--name",
            name,
        ),
        *(
            "--distpath",
            str(work / "dist"),
            "--workpath",
            str(work / "pyi"),
            "--specpath",
            str(work),
            "--log-level=ERROR",
        ),
        *(f"--collect-all={package}" for package in packages),
        *("--copy-metadata=machine-runtime", str(work / "start.py")),
        PYTHONPATH=f"{tools}:{WORK / 'packages'}",
    )
    if one_file:
        return Way(work / "dist" / name, [str(work / "dist" / name)])
    return Way(compressed(work / "dist" / name), [str(work / "dist" / name / name)], work / "dist" / name)


def shiv(work: Path) -> Way:
    tools, file, cache = work / "shiv-tools", work / "server.pyz", work / "shiv-cache"
    run(sys.executable, "-m", "pip", "install", "-q", f"--target={tools}", "shiv")
    run(
        *(sys.executable, "-m", "shiv", "--compressed", "--site-packages", str(WORK / "packages"), "-o", str(file)),
        *("-e", "runtime.server.start:main", "-p", sys.executable),
        PYTHONPATH=str(tools),
    )
    os.environ["SHIV_ROOT"] = str(cache)
    return Way(file, [str(file)], cache, lambda: shutil.rmtree(cache, ignore_errors=True))


WAYS: dict[str, Callable[[Path], Way]] = {
    "installed package": installed,
    "release file, executed directly": release,
    "release file, unpacked by the agent": tree,
    "the same tree in squashfs (xz)": squashfs,
    "PyInstaller, one folder, as tar.xz": lambda work: pyinstaller(work, one_file=False),
    "PyInstaller, one file": lambda work: pyinstaller(work, one_file=True),
    "shiv, needs a Python on the device": shiv,
}


def size(path: Path | None) -> float:
    """Return the MiB of a file or folder, without what links lead to."""
    if path is None:
        return 0
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(file.stat().st_size for file in files) / 2**20


def version_seconds(command: list[str]) -> float:
    begin = time.monotonic()
    subprocess.run([*command, "--version"], check=True, capture_output=True, timeout=LIMIT_S)
    return time.monotonic() - begin


def serving(command: list[str], work: Path) -> tuple[float, float]:
    """Return the seconds from the start to the first answer, and then the MiB of all processes (proportional)."""
    port, config = free_port(), work / "config.json"
    config.write_text(json.dumps({"network": {"bind_address": f"127.0.0.1:{port}"}}))
    begin = time.monotonic()
    process = subprocess.Popen(
        [*command, "-config", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=work
    )
    try:
        first_answer(port, begin + LIMIT_S)
        return time.monotonic() - begin, proportional_mib(process.pid)
    finally:
        process.terminate()
        process.wait(LIMIT_S)


def proportional_mib(pid: int) -> float:
    """Return the proportional memory of a process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    own = next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
    return own + sum(proportional_mib(int(child)) for child in children)


def measure(way: Way, work: Path, runs: int) -> str:
    way.first()
    first = version_seconds(way.command)
    versions = [version_seconds(way.command) for _ in range(runs)]
    starts = [serving(way.command, work) for _ in range(runs)]
    median = [statistics.median(values) for values in (versions, *zip(*starts, strict=True))]
    return (
        f"{size(way.file):.1f} MiB | {size(way.unpacked):.0f} MiB | {first:.2f} s | {median[0]:.2f} s | "
        f"{median[1]:.2f} s | {median[2]:.0f} MiB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser("python -m bench.packaging", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="starts of which the median is printed (5)")
    options = parser.parse_args()
    columns = ("way", "file", "unpacked", "first `--version`", "`--version`", "first answer", "memory")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        try:
            for label, build in WAYS.items():
                try:
                    print(f"| {label} | {measure(build(work), work, options.runs)}", flush=True)
                except (RuntimeError, OSError, StopIteration, subprocess.SubprocessError) as error:
                    print(
                        f"| {label} | not measured: {str(error).splitlines()[0] if str(error) else error!r} |",
                        flush=True,
                    )
        finally:
            if (work / "mounted").is_mount():
                run("umount", str(work / "mounted"))


if __name__ == "__main__":
    main()
