"""Imports at the start of a program."""

from __future__ import annotations

import subprocess
import sys


def test_asyncio_is_imported_when_structlog_uses_it() -> None:
    program = """
import sys
from support.start import lean_imports
with lean_imports():
    import structlog.stdlib
before = "asyncio" in sys.modules
sleep = structlog.stdlib.asyncio.sleep
import asyncio, gc
print([before, sleep is asyncio.sleep, gc.isenabled(), "rich" in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[False, True, True, False]"
