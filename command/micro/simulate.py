"""`machine micro simulate`: a micro server on this computer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from command.micro.package import ROOT


def simulate(config: Path, port: int, micropython: str | None, heap: str) -> int:
    """Run a micro server until it ends or Ctrl-C; return its exit status."""
    interpreter = [sys.executable] if micropython is None else [micropython, "-X", f"heapsize={heap}"]
    words = [*interpreter, "-m", "micro.hosts.main", str(config.resolve()), "127.0.0.1", str(port)]
    try:
        return subprocess.run(words, cwd=ROOT, env=os.environ, check=False).returncode
    except KeyboardInterrupt:
        return 0
