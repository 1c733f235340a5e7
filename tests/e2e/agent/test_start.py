"""The start of machine-agent: which modules it loads, and credentials that name what does not exist."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    "asyncio", "tarfile", "h11", "difflib", "rich", "tuf", "securesystemslib", "cryptography", "starlette", "hypercorn",
    "trio_websocket", "unittest", "email", "importlib.metadata", "csv", "zipfile", "h2", "httpcore",
    "runtime", "cloud", "agent.install", "agent.diagnosis",
)  # fmt: skip
"""Modules that the agent needs rarely or never: they would occupy memory of every device all the time."""


def test_an_idle_agent_loads_no_large_modules() -> None:
    program = (
        "import sys\nfrom support.start import lean_imports\nimport agent.cli\n"
        "with lean_imports():\n    import agent.app\n"
        "from support.program_version import version\nassert version() != '0.0.0+unknown'\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("credentials", "message"),
    [
        ({"ca_file": "missing.pem"}, "certificate authority"),
        ({"app_address": "https://cloud.example/path"}, "is not a valid address of a cloud"),
    ],
)
def test_credentials_that_cannot_be_used_are_named_without_a_traceback(
    credentials: dict[str, str], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "machine.json"
    cloud = {"id": "p1", "secret": "s3cret-part", "app_address": "https://cloud.example", **credentials}
    file.write_text(json.dumps({"cloud": cloud}))
    file.chmod(0o600)
    command = [sys.executable, "-m", "agent.start", "--dev-mode", "--root", str(tmp_path / "opt"), "-c", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "s3cret-part" not in done.stderr


def test_an_agent_that_does_not_stop_in_time_is_ended() -> None:
    program = "import threading\nfrom agent.shutdown import limit_stop\nlimit_stop(0.2)\nthreading.Event().wait()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert done.stderr == "machine-agent did not stop within 0.2 s\n"
