"""Child process that unpacks one archive of a stranger; see `support.foreign.apart`.

The order is JSON on its standard input: the paths of the archive and of the new folder, the place in the file where the
archive begins, and the bounds. Its standard output is empty if it succeeded; otherwise JSON: `bad` with the reason, or
the number and text of an OSError. It limits itself before it opens anything, and imports little, because it starts for
every archive.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, Final

from support.foreign.stream import BadArchiveError, NoSpaceError
from support.foreign.tar import Bounds
from support.foreign.unpacking import unpack

DESCRIPTORS: Final = 300  # a path has fewer folders


def main() -> None:
    """Unpack the archive of the order."""
    order = json.load(sys.stdin)
    bounds = Bounds(**order["bounds"])
    _confine(bounds)
    sys.stdout.write(json.dumps(_answer(order, bounds)))
    sys.stdout.flush()
    os._exit(0)  # skip cleanup


def _answer(order: dict[str, Any], bounds: Bounds) -> dict[str, Any]:
    try:
        with open(order["archive"], "rb") as source:
            source.seek(order["begin"])
            unpack(source, Path(order["folder"]), bounds)
    except BadArchiveError as error:
        return {"bad": str(error)}
    except NoSpaceError as error:
        return {"free": error.free, "needed": error.needed}
    except OSError as error:
        return {"number": error.errno or 0, "text": error.strerror or str(error)}
    except MemoryError:
        return {"bad": "it needs too much memory"}
    return {}


def _confine(bounds: Bounds) -> None:
    """Set hard limits. If the parent dies, the alarm ends this process at the latest."""
    os.umask(0o022)
    signal.setitimer(signal.ITIMER_REAL, bounds.wall + 5)
    for limited, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, bounds.size),
        (resource.RLIMIT_CPU, bounds.cpu),
        (resource.RLIMIT_AS, bounds.memory),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, DESCRIPTORS),
    ):
        hard = resource.getrlimit(limited)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limited, (value, value))
