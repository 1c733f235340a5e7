"""Run mypy for Windows and macOS on the packages that claim them: `python -m tools.check_types win32 darwin`.

What is wrong in the modules that `tools.platforms` excepts is ignored: they are read, because others import them.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

from tools.platforms import LINUX, ONLY_LINUX, PACKAGES

FOLDER: Final = Path(".mypy_cache")


def main() -> int:
    """Check each platform of the command line; return 1 if anything is wrong."""
    return max(check(platform) for platform in sys.argv[1:])


def check(platform: str) -> int:
    """Run mypy for a platform; return its status."""
    FOLDER.mkdir(exist_ok=True)
    settings = FOLDER / f"{platform}.ini"
    settings.write_text(settings_of(tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["mypy"], platform))
    words = [str(Path(sys.executable).parent / "mypy"), "--config-file", str(settings), "--platform", platform]
    packages = [word for package in PACKAGES for word in ("-p", package)]
    return subprocess.run([*words, "--cache-dir", str(FOLDER / platform), *packages]).returncode


def settings_of(mypy: dict[str, Any], platform: str) -> str:
    """Return the settings of pyproject.toml for mypy, with those modules ignored that the platform does not have."""
    lines = [
        "[mypy]",
        *(f"{key} = {_text(value)}" for key, value in mypy.items() if key not in ("packages", "overrides")),
    ]
    for override in mypy.get("overrides", []):
        modules = override["module"]
        lines.append(f"[mypy-{modules if isinstance(modules, str) else ','.join(modules)}]")
        lines += [f"{key} = {_text(value)}" for key, value in override.items() if key != "module"]
    for name in sorted(LINUX if platform == "win32" else {**LINUX, **ONLY_LINUX}):
        lines += [f"[mypy-{name}.*]", "ignore_errors = True"]
    return "\n".join(lines) + "\n"


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


if __name__ == "__main__":
    raise SystemExit(main())
