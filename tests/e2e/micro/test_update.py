"""An update of a whole device: boot, slots, download, trial, confirmation, and a program that never becomes healthy."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from command.micro.flash import lay_out
from tests.e2e.micro.build import ROOT
from tests.e2e.micro.machines import SELF
from tests.e2e.micro.program import PYTHON, STOCK, MicroServer, words_of
from tests.loopback import free_port
from tests.scope import some_of
from tests.unit.micro.update.packing import image, modulus

SLOTS = "import sys; sys.path.insert(0, {boot!r}); from micro.update.boot import boot; boot(*sys.argv[1:])"


@contextmanager
def site(folder: Path) -> Iterator[str]:
    """Serve the files of a folder; yield the address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base class
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def program(version: str, healthy_ms: int = 300) -> dict[str, bytes]:
    """Return the files of a program, which says its version and needs little time to be healthy."""
    files = {str(path.relative_to(ROOT)): path.read_bytes() for path in sorted((ROOT / "micro").rglob("*.py"))}
    changes = {
        "micro/engine/robot.py": (b'VERSION = "0.1.0"', b'VERSION = "%s"' % version.encode()),
        "micro/hosts/updating.py": (b"HEALTHY_MS = 60000", b"HEALTHY_MS = %d" % healthy_ms),
    }
    for name, (old, new) in changes.items():
        assert old in files[name]
        files[name] = files[name].replace(old, new)
    return files


class Device:
    """A folder as the flash of a device."""

    def __init__(self, folder: Path, host: str, url: str) -> None:
        self.folder, self.host = folder, host
        self.port = free_port()
        service = {"name": "ota", "api": "rdk:service:generic", "model": "ota_service", "attributes": {"url": url}}
        self.config = folder / "machine.json"
        document = json.dumps({"components": [SELF], "services": [service]})
        lay_out(folder, document.encode(), f"{modulus():x}".encode(), 1)
        for name, data in program("old").items():
            (folder / "slot-a" / name).write_bytes(data)

    @contextmanager
    def start(self) -> Iterator[MicroServer]:
        script = SLOTS.format(boot=str(self.folder / "boot"))
        arguments = [
            str(self.folder),
            "micro.hosts.main",
            str(self.config),
            "127.0.0.1",
            str(self.port),
            str(self.folder),
        ]
        launcher = self.folder / "main.py"
        launcher.write_text(script)
        command = [*words_of(self.host, "500k" if self.host == STOCK else ""), str(launcher), *arguments]
        process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PYTHONUNBUFFERED": "1"}
        )
        server = MicroServer(process, self.port, self.config)
        try:
            yield server
        finally:
            process.kill()
            process.communicate()

    def version(self) -> str:
        command = [sys.executable, "-m", "command.cli", "--address", f"http://127.0.0.1:{self.port}", "status"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()[1]


@pytest.mark.parametrize("host", some_of(1, [STOCK, PYTHON], 10))
def test_a_device_is_updated_and_rolled_back(tmp_path: Path, host: str) -> None:
    files = tmp_path / "site"
    files.mkdir()
    (tmp_path / "flash").mkdir()
    with site(files) as url:
        device = Device(tmp_path / "flash", host, f"{url}/image")
        (files / "image").write_bytes(image(program("new"), 2, number=1))
        with device.start() as server:
            server.until("the signature is not that of the key of this device")
            assert device.version() == "old"
        (files / "image").write_bytes(image(program("new"), 2))
        with device.start() as server:
            server.until("the new image starts now")
            assert server.process.wait(30) == 0
        with device.start() as server:
            server.until("the new program is healthy and stays")
            assert device.version() == "new"
            server.until("its sequence 2 is not above 2")
        (files / "image").write_bytes(image({**program("ill"), "micro/hosts/main.py": b"raise SystemExit(1)\n"}, 3))
        with device.start() as server:
            server.until("the new image starts now")
            assert server.process.wait(30) == 0
        for _ in range(3):
            with device.start() as server:
                assert server.process.wait(30) == 1
        with device.start() as server:
            server.until("the image 3 was tried and was not healthy")
            assert device.version() == "new"
