"""Break each contract of .importlinter once and check that import-linter reports it.

A contract that names the wrong modules is always kept. This tool copies the packages, adds one forbidden import for a
contract, checks that contract alone, and requires that the report names the added import. Then it removes the import.
"""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tools.check_sizes import PACKAGES

BIN: Final = Path(sys.executable).parent
CONFIG: Final = ".importlinter"
_PREFIX: Final = "importlinter:contract:"

FORBIDDEN: Final = {
    "floors": ("schema.names", "support.worker"),
    "loop": ("hal.lines", "asyncio"),
    "messages": ("cloud.values.author", "viam"),
    "netlink": ("rpc.status", "pyroute2"),
    "hardware": ("cloud.values.times", "serial"),
    "aggregates": ("cloud.domain.people.people", "socket"),
    "hardware-of-machines": ("uplink.files", "hal.lines"),
    "cloud": ("cloud.store.sql", "cloud.domain.people.people"),
    "cloud-domain": ("cloud.domain.organizations.tenants", "cloud.domain.people.people"),
    "cloud-services": ("cloud.services.common.standing", "cloud.services.triggers.triggers"),
    "cloud-web": ("cloud.web.common.site", "cloud.web.pages.logs"),
    "cloud-transactions": ("cloud.web.pages.logs", "cloud.store.sqlite"),
    "trainers": ("training.engine.reasons", "training.trainers.head"),
    "circles": ("schema.errors", "schema.names"),
    "agent": ("agent.layout", "agent.update.record"),
    "runtime": ("runtime.programs.command", "runtime.parts.mdns.names"),
    "parts": ("runtime.parts.ftdc.recorder", "runtime.parts.mdns.names"),
    "micro": ("micro.wire.bounds", "schema.names"),
    "without-micro": ("support.worker", "micro.wire.bounds"),
    "micro-layers": ("micro.wire.bounds", "micro.hosts.loop"),
    "runtime-circles": ("command.groups", "command.cli"),
}
"""For each contract, a module and an import that the contract forbids in it."""


def contracts(config: Path) -> list[str]:
    """Return the identifiers of all contracts."""
    parser = configparser.ConfigParser()
    parser.read(config)
    return [name.removeprefix(_PREFIX) for name in parser.sections() if name.startswith(_PREFIX)]


def is_reported(root: Path, contract: str, module: str, target: str) -> bool:
    """Return whether import-linter reports the import of `target` in `module`, added for this call, for a contract."""
    path = root.joinpath(*module.split(".")).with_suffix(".py")
    text = path.read_text("utf-8")
    path.write_text(f"{text}\nimport {target}\n", "utf-8")
    command = [str(BIN / "lint-imports"), "--no-cache", "--contract", contract]
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    finally:
        path.write_text(text, "utf-8")
    report = done.stdout.partition("Broken contracts")[2]
    return done.returncode == 1 and module.rpartition(".")[2] in report and target.rpartition(".")[2] in report


def problems(root: Path) -> Iterator[str]:
    """Yield a line for each contract in a copy of the packages at `root` that is not tried, or not reported."""
    names = contracts(root / CONFIG)
    for name in sorted({*names, *FORBIDDEN}):
        if name not in names or name not in FORBIDDEN:
            yield f"{name}: is not both in {CONFIG} and in FORBIDDEN of tools/break_contracts.py"
        elif not is_reported(root, name, *FORBIDDEN[name]):
            yield f"{name}: import-linter does not report the import of {FORBIDDEN[name][1]} in {FORBIDDEN[name][0]}"
        elif "-v" in sys.argv:
            print(f"{name}: {FORBIDDEN[name][0]} -> {FORBIDDEN[name][1]} is reported")


def main() -> int:
    """Print every contract that is not reported; return 1 if there is one. -v prints all contracts."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copy(CONFIG, root)
        for package in PACKAGES:
            shutil.copytree(package, root / package, ignore=shutil.ignore_patterns("__pycache__"))
        lines = list(problems(root))
    print("\n".join(lines))
    return int(bool(lines))


if __name__ == "__main__":
    raise SystemExit(main())
