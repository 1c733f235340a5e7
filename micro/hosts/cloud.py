"""The connection to the cloud: it pushes the configuration, and asks for connections on which calls are answered.

`/machine/v1/follow` and `/machine/v1/serve` are WebSockets of machine-cloud; logs and captured data are uploaded by its
published calls. While the cloud cannot be reached, the machine runs with what it got last, from a file.
"""

import asyncio
import gc
import json
import time

from micro.engine.resource import READY
from micro.engine.robot import VERSION
from micro.hosts import settings
from micro.hosts.net import CloudChannel, Site, SocketStream, open_websocket
from micro.wire.faults import UNAUTHENTICATED, CallFailure
from micro.wire.messages import CALLS, SERVICES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from micro.hosts.loop import Host

MAX_PUSH = 32768  # bytes of a message of the cloud; a quarter of the free heap, if that is less
FIRST_MS, LAST_MS = 1000, 60000  # waits before a new try
PING_MS = 20000
UPLOAD_MS = 5000
LINES = 10  # of an upload
MOST_BATCH, LEAST_BATCH = 1024, 128  # bytes of readings of an upload; less after one for which there was no memory
LIVE_MS = 1000
MAX_LIVE = 16  # components of a snapshot
STATES = {READY: "ready"}
TABULAR = 2  # DataType of captured readings
AUTHENTICATE = next(service[2][0] for service in SERVICES if service[0] == "proto.rpc.v1.AuthService")


def _row(service: str) -> "tuple[str, str, int, int, bool]":
    return next(entry[2][0] for entry in CALLS if entry[0] == service)


LOG, UPLOAD = "viam.app.v1.RobotService", "viam.app.datasync.v1.DataSyncService"


class CloudLink:
    """Follows a cloud. `section` is that of the configuration; `configured` applies what the cloud sends."""

    def __init__(
        self, host: "Host", section: "dict[str, Any]", cache: str, configured: "Callable[[Any], None]"
    ) -> None:
        self._host = host
        self._machine = host.machine
        self._cache = cache
        self._configured = configured
        self._part = str(section.get("id") or "")
        self._secret = str(section.get("secret") or "")
        self._token = ""
        self._socket: SocketStream | None = None
        self._reported = ""
        self._watched = 0  # until when a person looks at the machine
        self._serving = 0
        self._batch = MOST_BATCH
        context = None
        address = str(section.get("app_address") or "")
        if address.startswith("https://"):
            from micro.hosts.secure import client_context

            if not section.get("ca_file"):
                raise settings.BadFile("cloud.ca_file is missing: it has the certificate of the cloud's authority")
            context = client_context(str(section["ca_file"]))
        try:
            self._site = Site(address, context)
        except ValueError as error:
            raise settings.BadFile(f"cloud.app_address: {error}") from None
        self._context = context

    def is_connected(self) -> bool:
        """Return whether the push channel is open."""
        return self._socket is not None

    def start(self) -> None:
        """Apply what the cloud sent last, if that is known; without it, no key opens the machine."""
        self._machine.access.closed = True
        try:
            self._configured(settings.read_json(self._cache))
        except settings.BadFile:
            pass

    async def run(self) -> None:
        """Stay connected."""
        wait = FIRST_MS
        while True:
            began = self._machine.port.now()
            try:
                await self._follow()
                reason = "the cloud has closed the connection"
            except CallFailure as failure:
                reason = failure.text
                self._token = ""
            except OSError as error:
                reason = str(error)
                self._token = ""
            except MemoryError:
                gc.collect()
                reason = "no memory for what the cloud sends"
            except Exception as error:  # a defect of this program must not end the connection for ever
                reason = repr(error)
            if self._machine.port.now() - began > LAST_MS:
                wait = FIRST_MS
            self._machine.log("warn", "cloud", f"not connected: {reason}")
            await self._machine.port.sleep(wait)
            wait = min(LAST_MS, wait * 2)

    async def _sign_in(self) -> str:
        """Return a token."""
        if not self._token:
            channel = CloudChannel(self._site, self._host.bounds, self._machine.port.now)
            try:
                credentials = {"type": "robot-secret", "payload": self._secret}
                values = {"entity": self._part, "credentials": credentials}
                reply = await channel.call(AUTHENTICATE, "proto.rpc.v1.AuthService", values)
                self._token = str(reply["access_token"])
            finally:
                await channel.close()
        return self._token

    # The push channel

    async def _follow(self) -> None:
        port = self._machine.port
        token = await self._sign_in()
        path = f"/machine/v1/follow?part={self._part}&platform=micropython/{port.platform}&tags=micro:yes"
        most = min(MAX_PUSH, port.free() // 4)
        socket = await open_websocket(self._site, path, token, most)
        self._socket = socket
        self._reported = ""
        tending = asyncio.create_task(self._tend(socket))
        try:
            while True:
                message = await socket.text()
                if not message:
                    return
                self._take(message)
                del message
                gc.collect()
        finally:
            self._socket = None
            tending.cancel()
            await socket.wait_closed()

    def _take(self, message: bytes) -> None:
        try:
            data = json.loads(message)
        except ValueError:
            return
        if not isinstance(data, dict):
            return
        if "serve" in data:
            asyncio.create_task(self._serve(data["serve"]))  # noqa: RUF006 - ends with its connection
        elif "watched" in data:
            self._watched = self._machine.port.now() + int(float(data["watched"]) * 1000)
        elif data.get("restart"):
            self._machine.log("info", "cloud", "the cloud asks for a restart")
            self._machine.restart_in(FIRST_MS)
        elif isinstance(data.get("document"), dict):
            self._configured(data)
            self._keep(data)

    def _keep(self, data: "dict[str, Any]") -> None:
        """Keep a configuration for starts without the cloud."""
        kept = {key: data.get(key) for key in ("revision", "document", "keys", "cloud")}
        try:
            settings.write_text(self._cache, json.dumps(kept))
        except (OSError, MemoryError) as error:
            self._machine.log("error", "cloud", f"the configuration cannot be kept for the next start: {error!r}")

    async def _tend(self, socket: SocketStream) -> None:
        """Report changes, show the machine to those who watch it, and notice a cloud that is gone."""
        port = self._machine.port
        seen, ping_at, live_at = -1, port.now() + PING_MS, 0
        try:
            while True:
                await port.sleep(250)
                now = port.now()
                report = json.dumps({"report": self._report()})
                if report != self._reported:
                    self._reported = report
                    await socket.send_text(report.encode())
                if now < self._watched and now >= live_at:
                    live_at = now + LIVE_MS
                    await socket.send_text(json.dumps({"live": await self._live()}).encode())
                if now >= ping_at:
                    if socket.seen == seen:
                        await socket.wait_closed()
                        return
                    seen, ping_at = socket.seen, now + PING_MS
                    await socket.ping()
        except (OSError, MemoryError):
            await socket.wait_closed()

    def _report(self) -> "dict[str, Any]":
        machine = self._machine
        ready = len([entry for entry in machine.entries if entry.state == READY])
        return {
            "host": machine.port.platform,
            "os": "MicroPython",
            "platform": "micropython/" + machine.port.platform,
            "version": VERSION,
            "state": "running",
            "revision": machine.revision,
            "rejected": "",
            "ready": ready,
            "unhealthy": len(machine.entries) - ready,
            "waiting": 0,
            "problems": 0,
        }

    async def _live(self) -> "dict[str, Any]":
        """Return a snapshot for the page of the machine."""
        machine = self._machine
        resources, readings = [], {}
        for entry in machine.entries[:MAX_LIVE]:
            name = _full(entry)
            resources.append(
                {
                    "name": name,
                    "model": str(entry.config.get("model")),
                    "state": STATES.get(entry.state, "unhealthy"),
                    "reason": entry.reason,
                    "since": _iso(entry.since[0]),
                    "dependencies": [_full(other) for other in machine.entries if other.key[1] in entry.needs],
                }
            )
            handler = getattr(entry.resource, "get_readings", None)
            if handler is not None:
                readings[name] = await _read(handler)
        return {
            "state": "running",
            "started": _iso(machine.configured_at[0]),
            "addresses": [],
            "revision": machine.revision,
            "rejected": "",
            "pending": "",
            "problems": [],
            "resources": resources,
            "readings": readings,
            "downloads": [],
            "omitted": max(0, len(machine.entries) - MAX_LIVE),
        }

    # Calls through the cloud

    async def _serve(self, request: "Any") -> None:
        """Open a connection for calls, and answer them."""
        machine = self._machine
        if not isinstance(request, dict) or self._serving >= self._host.bounds.connections:
            machine.log("warn", "cloud", "a caller was refused: there are too many connections")
            return
        self._serving += 1
        try:
            caller = request.get("caller") or {}
            owner = f"{caller.get('type')}:{caller.get('id')}"
            address = str(request.get("address") or "")
            site = Site(address, self._context) if address else self._site
            path = f"/machine/v1/serve?part={self._part}&request={request.get('id')}"
            socket = await open_websocket(site, path, self._token, 0)
            try:
                await self._host.serve(socket, socket, owner)
            finally:
                await socket.wait_closed()
        except (OSError, ValueError) as error:
            machine.log("warn", "cloud", f"no connection for a caller: {error}")
        except MemoryError:
            gc.collect()
            machine.log("warn", "cloud", "no memory for a connection of a caller")
        finally:
            self._serving -= 1

    # Uploads

    async def upload(self) -> None:
        """Upload logs and captured readings as long as the machine runs."""
        failing = ""
        while True:
            await self._machine.port.sleep(UPLOAD_MS)
            if self._socket is None or not (self._machine.logs.lines or self._machine.ring.readings):
                continue
            try:
                await self._upload()
                failing = ""
            except (CallFailure, OSError, MemoryError) as error:
                text = getattr(error, "text", None) or repr(error)
                if isinstance(error, MemoryError):
                    gc.collect()
                    self._batch = max(LEAST_BATCH, self._batch // 2)
                    text = "no memory for so much at once"
                if isinstance(error, CallFailure) and error.status == UNAUTHENTICATED:
                    self._token = ""
                if text != failing:  # and not again while it stays the same, since each line is one more to upload
                    failing = text
                    self._machine.log("warn", "cloud", f"uploading fails: {text}")

    async def _upload(self) -> None:
        token = await self._sign_in()
        channel = CloudChannel(self._site, self._host.bounds, self._machine.port.now)
        try:
            lines = self._machine.logs.take(LINES)
            try:
                if lines:
                    await channel.call(
                        _row(LOG), LOG, {"id": self._part, "logs": [_entry(line) for line in lines]}, token
                    )
                    lines = []
            finally:
                self._machine.logs.put_back(lines)
            batch = self._machine.ring.batch(self._batch)
            while batch:
                await channel.call(_row(UPLOAD), UPLOAD, self._contents(batch), token)
                self._machine.ring.remove(batch)
                batch = self._machine.ring.batch(self._batch)
        finally:
            await channel.close()

    def _contents(self, batch: "list[Any]") -> "dict[str, Any]":
        capture = batch[0].capture
        metadata = {
            "part_id": self._part,
            "component_type": "rdk:component:" + capture.key[0],
            "component_name": capture.key[1],
            "method_name": capture.method,
            "type": TABULAR,
            "tags": capture.tags,
        }
        return {"metadata": metadata, "sensor_contents": [reading.data for reading in batch]}


def _full(entry: "Any") -> str:
    return f"rdk:component:{entry.key[0]}/{entry.key[1]}"


def _entry(line: "Any") -> "dict[str, Any]":
    stamp = {"seconds": line.seconds, "nanos": line.nanos}
    return {"level": line.level, "time": stamp, "logger_name": line.logger, "message": line.text}


def _iso(seconds: int) -> str:
    epoch = 946684800 if time.gmtime(0)[0] == 2000 else 0
    year, month, day, hour, minute, second = time.gmtime(max(0, seconds - epoch))[:6]
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}+00:00"


async def _read(handler: "Any") -> "dict[str, Any]":
    """Return readings as a page shows them: key, text, and number or None."""
    try:
        reply = handler({})
        if hasattr(reply, "send"):
            reply = await reply
        values = []
        for key, value in reply["readings"].items():
            number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
            values.append([key, str(value), number])
        return {"values": values, "error": ""}
    except (CallFailure, OSError, ValueError) as error:
        return {"values": [], "error": getattr(error, "text", None) or str(error)}
