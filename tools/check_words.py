"""Words that must not be committed: package registries' hosts, marks without an owner, waits by time in tests."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

# Written in pieces so that this file does not contain them.
HOSTS = ["py" + "pi.org", "pythonhosted" + ".org", "registry." + "npmjs", "deb.deb" + "ian.org", "pi" + "wheels.org"]
EVERYWHERE = re.compile("|".join(map(re.escape, HOSTS)))
MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
WAITS = re.compile(r"\b(trio|time)\.sleep\((?!\))")
ALLOWED_WAIT = re.compile(r"#\s*wait:")  # a wait that is the behaviour under test says so


def main() -> int:
    """Print every find; return 1 if there is one."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    finds = []
    for name in filter(None, listed):
        path = Path(name)
        if not path.is_file() or path.suffix in {".png", ".jpg", ".pcd", ".bin", ".ico"}:
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if EVERYWHERE.search(line):
                finds.append(f"{name}:{number}: names a package registry's host")
            if path.suffix in {".py", ".sh", ".js", ".toml"} and MARKS.search(line):
                finds.append(f"{name}:{number}: a mark without an owner; file an issue or mend it")
            if name.startswith("tests/unit") and "time.sleep(" in line and not ALLOWED_WAIT.search(line):
                finds.append(f"{name}:{number}: real sleep in a unit test")
    print("\n".join(finds))
    return int(bool(finds))


if __name__ == "__main__":
    raise SystemExit(main())
