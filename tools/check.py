"""Run every static check, two at a time (`make check`). Print a line for each; exit 1 if any fails."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BIN = Path(sys.executable).parent
CHECKS: dict[str, list[str]] = {
    "types": [str(BIN / "mypy")],
    "windows": [sys.executable, "-m", "tools.check_types", "win32"],
    "macos": [sys.executable, "-m", "tools.check_types", "darwin"],
    "platforms": [sys.executable, "-m", "tools.check_platforms"],
    "web": [sys.executable, "-m", "tools.web", "check"],
    "docs": [str(BIN / "sphinx-build"), "-q", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html"],
    "floors": [str(BIN / "lint-imports"), "--no-cache"],
    "contracts": [sys.executable, "-m", "tools.break_contracts"],
    "style": [str(BIN / "ruff"), "check", "."],
    "format": [str(BIN / "ruff"), "format", "--check", "."],
    "pure": [sys.executable, "-m", "tools.check_pure"],
    "generate": [sys.executable, "-m", "tools.generate", "--check"],
    "sizes": [sys.executable, "tools/check_sizes.py"],
    "layout": [sys.executable, "tools/check_layout.py"],
    "imports": [sys.executable, "tools/check_imports.py"],
    "doors": [sys.executable, "-m", "tools.check_doors"],
    "words": [sys.executable, "-m", "tools.check_words"],
    "names": [sys.executable, "-m", "tools.check_names"],
    "groups": [sys.executable, "-m", "tools.check_groups"],
    "sql": [sys.executable, "tools/check_sql.py"],
    "foreign": [sys.executable, "tools/check_foreign.py"],
    "commits": [sys.executable, "tools/check_commits.py"],
}


def run(name: str) -> tuple[str, int, str, float]:
    """Run one check; return its name, exit status, output and seconds."""
    begin = time.monotonic()
    done = subprocess.run(CHECKS[name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return name, done.returncode, done.stdout, time.monotonic() - begin


def main() -> int:
    """Run all checks and print the full output of those that fail."""
    failed = False
    with ThreadPoolExecutor(max_workers=2) as pool:
        for name, status, output, seconds in pool.map(run, CHECKS):
            print(f"{'ok  ' if status == 0 else 'FAIL'} {name:9} {seconds:5.1f} s", flush=True)
            if status:
                failed = True
                print(output, flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
