"""A micro server is found by `machine discover`, in a network namespace with an interface of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import in_namespace, namespace_refusal
from tests.e2e.micro.build import ROOT
from tests.e2e.micro.machines import SMALL
from tests.e2e.micro.program import FIRMWARE, PYTHON, words_of
from tests.scope import some_of

SCRIPT = """
ip link add wire type veth peer name other && ip link set other up || exit 9
ip address add 10.99.0.1/24 dev wire && ip link set wire up multicast on || exit 9
ip route add 224.0.0.0/4 dev wire || exit 9
"$@" -m micro.hosts.main "$CONFIG" 10.99.0.1 8080 > "$LOG" 2>&1 &
server=$!
while ! grep -q "listening on" "$LOG"; do kill -0 $server || exit 8; done
(cd "$ROOT" && "$PYTHON" -m command.cli discover --wait 2 --json)
kill $server
"""


@pytest.mark.parametrize("host", some_of(1, [FIRMWARE, PYTHON], 4))
def test_micro_servers_are_discovered(tmp_path: Path, host: str) -> None:
    if problem := namespace_refusal():
        pytest.skip(problem)
    config = tmp_path / "machine.json"
    config.write_text(json.dumps(SMALL))
    command = in_namespace(["sh", "-c", SCRIPT, "sh", *words_of(host, "64k" if host == FIRMWARE else "")])
    environ = {"CONFIG": str(config), "LOG": str(tmp_path / "log"), "ROOT": str(ROOT), "PYTHON": sys.executable}
    environ |= {"PYTHONUNBUFFERED": "1", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    cwd = ROOT if host == PYTHON else tmp_path
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 9:
        pytest.skip(f"no interface can be added: {done.stderr}")
    assert done.returncode == 0, done.stderr
    (found_machine,) = json.loads(done.stdout)
    assert found_machine["name"].startswith("micro-")
    assert "10.99.0.1" in str(found_machine)
    assert "mdns" not in (tmp_path / "log").read_text()
