"""Python for Windows: what can be imported, and the suites that run there without change."""

from __future__ import annotations

import json
import re

import pytest

from tests.wine.room import Room
from tools.platforms import PACKAGES, UNLOADABLE

SOURCE = "/opt/machine"
IMPORTS = r"Z:\opt\machine\tests\wine\inside\imports.py"


def test_every_module_that_claims_windows_can_be_imported(room: Room) -> None:
    done = room.python(IMPORTS, r"Z:\opt\machine", *PACKAGES)
    assert done.returncode == 0, done.stdout[-3000:]
    result = json.loads(done.stdout[done.stdout.index('{"count"') :])
    assert result["count"] > 1000
    assert set(result["failed"]) == UNLOADABLE, result["failed"]


@pytest.mark.parametrize(
    ("folders", "least"),
    [
        (("unit/schema",), 1500),
        (("unit/nursery_graph", "unit/triggers/test_operators.py", "unit/triggers/test_retry.py"), 80),
        (
            (
                "unit/support/files/test_seams.py",
                "unit/engine/test_process_metrics.py",
                "e2e/shutdown/test_process_trees.py",
            ),
            28,
        ),
        (("unit/rpc/http2", "unit/rpc/http1"), 100),
        (("unit/agent/launch", "unit/agent/update"), 160),
        (("sim/agent/test_crashes.py",), 8),
        (("unit/rpc/network/test_local.py", "unit/rpc/network/test_local_windows.py", "unit/agent/console"), 33),
    ],
    ids=["schema", "nursery_graph", "seams", "rpc", "launcher", "kills", "channel"],
)
@pytest.mark.limit(240)
def test_a_suite_passes_on_windows(room: Room, folders: tuple[str, ...], least: int) -> None:
    paths = [f"tests/{folder}" for folder in folders]
    options = (
        "-q",
        "-p",
        "no:cacheprovider",
        r"--basetemp=C:\t\suite",
        "--noconftest",
        "-p",
        "tests.wine.inside.plugin",
    )
    done = room.python("-m", "pytest", *options, *paths, cwd=SOURCE, limit=220)
    assert done.returncode == 0, done.stdout[-6000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= least, done.stdout[-500:]
