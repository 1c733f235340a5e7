"""Check the messages of the commits since the last release tag: subject `area: imperative`, and a body.

Without a release tag, the commits since the one that added this file are checked: older ones had no rules. Outside a
git checkout, nothing is checked.
"""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

LONGEST: Final = 72  # characters of a subject
SUBJECT: Final = re.compile(r"[a-z0-9_.-]+(, [a-z0-9_.-]+)*: [^A-Z\s].*[^.]")


def problems(message: str) -> list[str]:
    """Return the problems of a commit message."""
    subject, _, body = message.partition("\n")
    wrong = []
    if not SUBJECT.fullmatch(subject):
        wrong.append("the subject is not of the form 'area: do something', in lower case and without a full stop")
    if len(subject) > LONGEST:
        wrong.append(f"the subject has {len(subject)} characters: at most {LONGEST}")
    if not body.strip():
        wrong.append("there is no body: say why, and with which evidence")
    return wrong


def git(*words: str) -> str | None:
    """Return the output of a git command; None if it fails."""
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else None


def main() -> int:
    """Print each invalid message; return 1 if there is one."""
    if git("rev-parse", "HEAD") is None:
        print("not a git checkout: no commit messages are checked")
        return 0
    start = git("describe", "--tags", "--abbrev=0", "--match", "v[0-9]*")
    if start is None:
        start = git("log", "--diff-filter=A", "--max-count=1", "--format=%h", "--", "tools/check_commits.py")
    commits = [f"{start.strip()}..HEAD"] if start else []
    failed = False
    for entry in (git("log", "--no-merges", "-z", "--format=%h %B", *commits) or "").split("\0"):
        name, _, message = entry.partition(" ")
        for problem in problems(message.strip()) if name else ():
            failed = True
            print(f"{name} {message.partition(chr(10))[0]!r}: {problem}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
