"""A real nginx in front of machine-cloud, with the configuration from the documentation."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trio

from cloud.domain.certificates.issue import new_leaf, new_root

ROOT: Final = Path(__file__).resolve().parents[3]
SHOWN: Final = ROOT / "docs/howto/nginx.conf"
UNPACKED: Final = ROOT / "build/nginx/usr/sbin/nginx"  # unpacked by tools/setup, so that no service is started
HTTP: Final = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr info;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
{site}
}}
"""


def nginx() -> str | None:
    """Return the path of nginx, or None if it is not installed."""
    return str(UNPACKED) if UNPACKED.exists() else shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")


def listener() -> socket.socket:
    """Return the socket on which nginx will listen; connections wait there until it does."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.set_inheritable(True)
    return listening


@asynccontextmanager
async def before(cloud: str, place: socket.socket, folder: Path) -> AsyncIterator[Path]:
    """Run nginx on `place`, with TLS for `localhost`, in front of the cloud at address `cloud`; yield its CA file."""
    os.makedirs(folder)
    now = datetime.now(UTC)
    root = new_root("proxy", now)
    leaf = new_leaf(root, ("localhost",), now)
    authority = folder / "ca.pem"
    authority.write_text(root.certificate)
    (folder / "cloud.pem").write_text(leaf.certificate)
    (folder / "cloud.key").write_text(leaf.key)
    site = SHOWN.read_text()
    for shown, here in (
        ("127.0.0.1:8090", cloud),
        ("listen 443 ", f"listen 127.0.0.1:{place.getsockname()[1]} "),
        ("/etc/ssl/", f"{folder}/"),
        ("cloud.example", "localhost"),
    ):
        assert shown in site, shown
        site = site.replace(shown, here)
    (folder / "nginx.conf").write_text(HTTP.format(site=site))
    program, log = nginx(), folder / "nginx.log"
    assert program is not None
    with log.open("wb") as output:
        process = await trio.lowlevel.open_process(
            [program, "-p", str(folder), "-e", "stderr", "-c", "nginx.conf"],
            stdout=output,
            stderr=output,
            pass_fds=[place.fileno()],
            env={**os.environ, "NGINX": f"{place.fileno()};"},  # nginx passes its sockets to its successor like this
        )
    place.close()
    try:
        yield authority
        assert process.poll() is None, log.read_text()
    finally:
        if process.poll() is None:
            process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()
