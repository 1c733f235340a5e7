"""The native module of wrtc, loaded without its asyncio layer, which costs 7 MiB and 70 ms of a start."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


def _load() -> tuple[Any, Any]:
    """Import `wrtc` and `webrtc.enums`, the only parts in use, without the code of the package `webrtc`.

    The native module looks for enumerations and exceptions in submodules of `webrtc`, which import asyncio only in the
    package itself. Raises ImportError if wrtc is not installed or there is no build for this platform.
    """
    if "webrtc" not in sys.modules:
        spec = importlib.util.find_spec("webrtc")
        if spec is None:
            raise ImportError("wrtc is not installed", name="webrtc")
        package = ModuleType("webrtc")
        package.__path__ = list(spec.submodule_search_locations or ())
        sys.modules["webrtc"] = package
    native = importlib.import_module("wrtc")
    enums = importlib.import_module("webrtc.enums")
    importlib.import_module("webrtc.exceptions")
    return native, enums


native, enums = _load()
