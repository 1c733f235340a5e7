"""The program that makes a lock, or an environment from one, with uv. An engine runs it, confined, with the network.

uv gets everything else from its environment variables. It downloads and unpacks wheels, and runs no code of a package:
only wheels are accepted, and the new environment is not used once something has been installed, because a package can
have code that runs with every start of its interpreter.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

WHEELS: Final = ("--only-binary", ":all:")
_QUIET: Final = ("--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url", "--quiet")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what the arguments say; return the exit status of uv."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", required=True)
    parser.add_argument("--python", required=True, help="the interpreter on which the environment is based")
    parser.add_argument("--requirements", required=True, help="requirements, or with --environment a lock")
    parser.add_argument("--lock", help="write the lock to this file")
    parser.add_argument("--environment", help="make this folder")
    parser.add_argument(
        "--index", action="append", default=[], help="URL of an index; the first that has a name counts"
    )
    settings = parser.parse_args(arguments)
    os.umask(0o022)
    indexes = [f"--index={url}" for url in settings.index[:-1]]
    indexes += [f"--default-index={url}" for url in settings.index[-1:]]
    common = [*WHEELS, *indexes]
    if settings.lock:
        return _run(
            settings.uv, "pip", "compile", *_QUIET, *common, "--python", settings.python, "--output-file",
            settings.lock, settings.requirements,
        )  # fmt: skip
    made = _run(settings.uv, "venv", "--quiet", "--relocatable", "--python", settings.python, settings.environment)
    return made or _run(
        settings.uv, "pip", "install", "--quiet", "--require-hashes", *common, "--python",
        f"{settings.environment}/bin/python", "--requirements", settings.requirements,
    )  # fmt: skip


def _run(*command: str) -> int:
    status = subprocess.run(command, check=False).returncode
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main())
