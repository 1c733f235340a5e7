"""Release files that contain a small script instead of a whole machine-server."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path

from agent.releases.unpack import MARK
from uplink.platforms import platform
from uplink.releases import normal_platform

SERVER = f'exec {sys.executable} -m runtime.server.start "$@"\n'
"""Script of a release that is a real machine-server."""

_FAKE = f"""\
exec {sys.executable} -c '
import json, os, socket, time
listener = socket.create_server(("127.0.0.1", 0))
address = "127.0.0.1:" + str(listener.getsockname()[1])
with open(os.environ["MACHINE_ADDRESS_FILE"], "w") as file:
    json.dump({{"pid": os.getpid(), "addresses": [address], "tls": False}}, file)
while True:
    client = listener.accept()[0]
    page = client.recv(1000).split()[1]
    body = b"STATUS" if page == b"/restart_status" else b"fake"
    client.sendall(b"HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\n" + body)
    client.close()
'
"""


def fake_server(*, configured: bool = True) -> str:
    """Return the script of a release that answers the agent, and nothing else."""
    # The script is in double quotes of Python and single quotes of the shell.
    status = json.dumps({"restart_allowed": True, "configured": configured}).replace('"', '\\"')
    return _FAKE.replace("STATUS", status)


def write_release(
    file: Path, version: str, script: str, *, program: str = "machine-server", on: str | None = None
) -> Path:
    """Write a release file whose program is a shell script; return its path."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        content = f"#!/bin/sh\n{script}".encode()
        member = tarfile.TarInfo("run")
        member.size, member.mode = len(content), 0o755
        archive.addfile(member, io.BytesIO(content))
    names = {"program": program, "version": version, "platform": on or normal_platform(platform())}
    header = f"#!/bin/sh\n# machine-release {json.dumps(names)}\nexit 1"
    file.write_bytes(header.encode() + MARK + buffer.getvalue())
    return file
