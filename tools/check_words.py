"""Check for text that must not be committed: registry hosts, marks without an owner, waits in tests, house dialect.

Dialect is checked only below the folders in FINISHED. Add a folder there once it has been rewritten in plain English.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tools.check_sizes import PACKAGES

# In pieces, so that this file does not contain them.
HOSTS = ["py" + "pi.org", "pythonhosted" + ".org", "registry." + "npmjs", "deb.deb" + "ian.org", "pi" + "wheels.org"]
EVERYWHERE = re.compile("|".join(map(re.escape, HOSTS)))
MARKS = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
REFERENCE = re.compile(r'"""See (`|[A-Z]|[a-z_]+\.)')
WAITS = re.compile(r"\b(trio|time)\.sleep\((?!\))")
ALLOWED_WAIT = re.compile(r"#\s*wait:")  # marks a wait that is itself the behavior under test

PRODUCT = tuple(f"{package}/" for package in PACKAGES)
FINISHED = (
    "agent/", "bench/", "command/", "engine/", "examples/", "models/", "rig/", "schema/", "tools/", "triggers/",
    "cloud/", "hal/", "nursery_graph/", "rpc/", "runtime/", "support/", "telemetry/", "uplink/",
    "tests/e2e/", "tests/fuzz/", "tests/netns/", "tests/sim/", "tests/unit/",
    "web/", "docs/", "changes/", "README.md", "CONTRIBUTING.md",
)  # fmt: skip
"""Folders without dialect."""

# The column `told` of the table `live` is in released databases.
COLUMN = re.compile(r"\btold(?= INTEGER| = \?|, snapshot| IS NOT)|\"told\"")

_NAMES = "found|one|known|wanted|told|given|made"
DIALECT = {
    re.compile(p): cure
    for p, cure in (
        (r"\b(?i:whoever|anew|beside|besides|told|thereof|in the place of|goes on with|those who)\b", "say it plainly"),
        (
            r"(?<![\"/.])\b(?i:somebody|anybody|everybody|nobody(?! answers))\b(?!@|,gid)",
            "say who: the caller, another program, no task",
        ),
        (r"(?<![Tt]here )\bis (?:no (?!longer\b|more\b)|none\b)", "'x is not a valid ...: expected ...'"),
        (r"\b(?:is|are) impossible\b", "'x is not valid: expected ...'"),
        (r"\bis tried again\b|\bset aside\b|\bbrought to the disk\b", "'retried', 'renamed', 'synced to the disk'"),
        (
            r'"""(?:As [A-Z]|As the |Of (?:a|an|the)\b|That |By what |In words\b|None\.)',
            "begin with a verb or a noun phrase",
        ),
        (
            r"\b(?i:sign(?:ing|s)? in(?= (?:to|with|again|once|by)\b)|signed in(?= to\b)|sign-in|signed-in)\b",
            "log in, login",
        ),
        (rf"^\s+(?:{_NAMES})(?:: [^=]+)? = |\bfor (?:{_NAMES}) in\b", "name the variable by what it holds"),
    )
}
"""Phrases that readers had to translate, and what to write instead."""


BUILT = "rpc/pages/static/built/"
"""What `web/` builds; its sources are checked."""

LISTS = {"tools/check_words.py", "tools/check_names.py", "tests/unit/tools/test_check_names.py"}
"""Files that contain dialect to compare with."""

READ_BY_PEOPLE = {".py", ".html", ".js", ".ts", ".svelte", ".css", ".md"}
"""Endings of the files in which dialect is checked."""


def main() -> int:
    """Print every violation; return 1 if there is one."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout.split("\n")
    finds = []
    for name in filter(None, listed):
        path = Path(name)
        if not path.is_file() or path.suffix in {".png", ".jpg", ".pcd", ".bin", ".ico"}:
            continue
        if name.startswith(BUILT):
            continue
        for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), 1):
            if EVERYWHERE.search(line):
                finds.append(f"{name}:{number}: names a package registry's host")
            if path.suffix in {".py", ".sh", ".js", ".ts", ".svelte", ".toml"} and MARKS.search(line):
                finds.append(f"{name}:{number}: a mark without an owner; file an issue or fix it")
            if name.startswith((*PRODUCT, "tests/")) and REFERENCE.search(line):
                finds.append(f"{name}:{number}: give the contract instead of another place to look at")
            if name.startswith("tests/unit") and "time.sleep(" in line and not ALLOWED_WAIT.search(line):
                finds.append(f"{name}:{number}: real sleep in a unit test")
            if path.suffix in READ_BY_PEOPLE and name not in LISTS and name.startswith(FINISHED):
                text = COLUMN.sub("", line)
                finds += [
                    f"{name}:{number}: dialect: {cure}" for pattern, cure in DIALECT.items() if pattern.search(text)
                ]
    print("\n".join(finds))
    return int(bool(finds))


if __name__ == "__main__":
    raise SystemExit(main())
