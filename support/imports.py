"""Imports of a program's large modules at its start: fast, and without libraries that it does not use."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def lean_imports() -> Iterator[None]:
    """Import modules in this context without garbage collection, and without rich, which structlog would load.

    Imported objects stay: scanning them takes a tenth of the start-up, and time in each later collection. So all
    objects that exist at the end are exempt from collections.
    """
    modules: dict[str, Any] = sys.modules  # None as a value is the documented way to make an import fail
    hidden = "rich" not in modules
    if hidden:
        modules["rich"] = None
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if hidden:
            del modules["rich"]
