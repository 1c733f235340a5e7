"""Updates over the network: looks for an image at an address, installs it, and confirms a program that is healthy.

The service `ota_service` of the configuration has `url`, of an image made by `machine micro package`. The key is in the
file `update.key` next to the slots: the modulus in hexadecimal digits. The image is read in pieces of 512 bytes.
"""

import asyncio
import hashlib

from micro.hosts.loop import CHUNK, close
from micro.hosts.net import LIMIT_S, Site
from micro.hosts.settings import BadFile
from micro.update.image import BadImage
from micro.update.store import SlotStore
from micro.update.updater import Updater

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from micro.engine.machine import Machine

PERIOD_MS = 600000  # between two looks at the address
HEALTHY_MS = 60000  # for which a program on trial must run
MAX_HEAD = 2048
HTTP_OK = b"200"


def modulus_of(path: str) -> int:
    """Return the key in a file. BadFile if there is none."""
    try:
        with open(path) as file:
            return int(file.read(1024).strip(), 16)
    except (OSError, ValueError):
        raise BadFile(f"{path} has no key: no image can be verified") from None


def url_of(document: "dict[str, Any]") -> str:
    """Return the address of images in a machine document, "" without the service."""
    for service in document.get("services") or []:
        if isinstance(service, dict) and str(service.get("model", "")).endswith("ota_service"):
            attributes = service.get("attributes")
            return str(attributes.get("url", "")) if isinstance(attributes, dict) else ""
    return ""


class Updating:
    """Updates of a machine whose slots are in `folder`."""

    def __init__(self, machine: "Machine", folder: str, sha256: "Callable[[bytes], bytes]") -> None:
        self.url = ""
        self.healthy: Callable[[], bool] = lambda: True
        self._machine = machine
        self._store = SlotStore(folder, sha256)
        self._updater = Updater(self._store, modulus_of(folder + "/update.key"), hashlib.sha256)

    def configure(self, document: "dict[str, Any]") -> None:
        """Use the address of a machine document."""
        self.url = url_of(document)

    async def run(self) -> None:
        """Confirm the program that runs when it is healthy, and look for images."""
        await self._confirm()
        last = ""
        while True:
            if self.url:
                reason = await self._try()
                if not reason:
                    self._machine.log("info", "update", "the new image starts now")
                    self._machine.restart_in(1000)
                    return
                if reason != last:
                    last = reason
                    self._machine.log("warn", "update", reason)
            await self._machine.port.sleep(PERIOD_MS if self.url else 1000)

    async def _confirm(self) -> None:
        """Wait until this program was healthy for a while without a break."""
        port = self._machine.port
        if not self._store.load().trial:
            return
        began = port.now()
        while port.now() - began < HEALTHY_MS:
            await port.sleep(1000)
            if not self.healthy():
                began = port.now()
        if self._updater.confirm():
            self._machine.log("info", "update", "the new program is healthy and stays")

    async def _try(self) -> str:
        """Install the image at the address; return why it was not, "" if it was."""
        try:
            await self._install()
        except BadImage as error:
            return str(error)
        except (OSError, ValueError) as error:
            return f"{self.url} cannot be read: {error}"
        except MemoryError:
            return "no memory for an update"
        return ""

    async def _install(self) -> None:
        scheme, _, rest = self.url.partition("://")
        authority, _, path = rest.partition("/")
        site = Site(f"{scheme}://{authority}")
        if site.secure:
            raise BadImage("images are read by http: their signature protects them, and TLS would need a certificate")
        reader, writer = await site.open()
        try:
            writer.write(f"GET /{path} HTTP/1.0\r\nHost: {site.authority}\r\n\r\n".encode())
            await writer.drain()
            await self._skip_head(reader)
            image = self._updater.install()
            while True:
                data = await asyncio.wait_for(reader.read(CHUNK), LIMIT_S)
                if not data:
                    break
                image.feed(data)
            self._updater.complete(image)
        except asyncio.TimeoutError:
            raise OSError("it stopped") from None
        finally:
            await close(writer)

    async def _skip_head(self, reader: "Any") -> None:
        line = await asyncio.wait_for(reader.readline(), LIMIT_S)
        words = line.split(b" ")
        if len(words) < 2 or words[1] != HTTP_OK:
            raise OSError("the server answers " + str(b" ".join(words[1:2]), "utf-8"))
        size = 0
        while line not in (b"\r\n", b""):
            line = await asyncio.wait_for(reader.readline(), LIMIT_S)
            size += len(line)
            if size > MAX_HEAD:
                raise OSError("the head of the answer is too long")
