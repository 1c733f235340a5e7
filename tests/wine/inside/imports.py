"""Import every module of some packages; print, as JSON, those that fail and why: `imports.py FOLDER PACKAGE...`."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from pathlib import Path


def main() -> None:
    """Import the modules of all packages in this process."""
    root = Path(sys.argv[1])
    failed, count = {}, 0
    for package in sys.argv[2:]:
        for path in sorted((root / package.replace(".", "/")).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if parts[-1] == "__main__" or "template" in parts:
                continue
            count += 1
            try:
                importlib.import_module(name)
            except BaseException as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                failed[name] = f"{type(error).__name__}: {error} ({Path(last.filename).name}:{last.lineno})"
    sys.stdout.write(json.dumps({"count": count, "failed": failed}) + "\n")


if __name__ == "__main__":
    main()
