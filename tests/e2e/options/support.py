"""Helpers for tests of options: documents, HTTP requests, waiting for another process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.e2e.harness import Server, in_namespace, namespace_refusal

T = TypeVar("T")
LIMIT_S = 60.0
ROOT = Path(__file__).parents[3]


def motor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": "rdk:component:motor", "model": "fake", "attributes": attributes}


def get(server: Server, path: str, *, host: str = "", limit: float = LIMIT_S) -> tuple[int, bytes]:
    """Return the status and the body of a plaintext HTTP request."""
    request = urllib.request.Request(f"http://{server.address}{path}", headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=limit) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def until(look: Callable[[], T], what: str) -> T:
    """Return the result of `look` once it is true; it reads the state of another process, which sends no events."""
    deadline = time.monotonic() + LIMIT_S
    while not (result := look()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return result


def until_logged(server: Server, words: str) -> str:
    """Return the log once it contains `words`."""
    return until(lambda: server.log() if words in server.log() else "", f"{words!r} is not in the log:\n{server.log()}")


def inside(what: str, folder: Path) -> Any:
    """Run `tests.e2e.options.inside` in namespaces with another address, where it can mount."""
    if refusal := namespace_refusal():
        pytest.skip(f"no network namespace: {refusal}")
    done = subprocess.run(
        in_namespace(["unshare", "--mount", sys.executable, "-m", "tests.e2e.options.inside", what, str(folder)]),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
