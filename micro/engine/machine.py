"""The machine: it applies configurations, one component at a time, and carries out calls.

A component that cannot run is unhealthy, with the reason; the others run. A new configuration keeps the components that
it does not change, and whose dependencies it does not change.
"""

from micro.components.models import load, model_of
from micro.engine import capture
from micro.engine.access import Access
from micro.engine.attributes import Attributes, Unfit
from micro.engine.logs import Line, Log
from micro.engine.resource import READY, UNCONFIGURED, UNHEALTHY, Resource
from micro.engine.rows import row_of
from micro.engine.sessions import MAX_WINDOW_MS, MIN_WINDOW_MS, WINDOW_MS, Sessions
from micro.wire import protobuf
from micro.wire.bounds import Bounds
from micro.wire.faults import NOT_FOUND, UNAVAILABLE, UNIMPLEMENTED, CallFailure
from micro.wire.messages import SENSOR_DATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from micro.hosts.port import Port

MAX_COMPONENTS = 32
MAX_NAME = 60
SENSORS = ("movement_sensor", "power_sensor")  # which also have GetReadings


class Entry:
    """A component of the configuration, with its state."""

    def __init__(self, key: "tuple[str, str]", config: "dict[str, Any]", since: "tuple[int, int]") -> None:
        self.key = key
        self.config = config
        self.since = since
        self.state = UNCONFIGURED
        self.reason = ""
        self.needs: list[str] = []
        self.resource: Resource | None = None
        self.captures: list[capture.Capture] = []


class Machine:
    """A machine on a port."""

    def __init__(self, port: "Port", digest: "Callable[[bytes], bytes]", bounds: "Bounds | None" = None) -> None:
        bounds = bounds or Bounds()
        self.port = port
        self.entries: list[Entry] = []
        self.revision = ""
        self.configured_at = port.unix()
        self.cloud: dict[str, Any] = {}
        self.access = Access(port.random, digest)
        self.sessions = Sessions(port.random)
        self.logs = Log(bounds.log)
        self.ring = capture.Ring(bounds.ring)
        self.capturing = True
        self.restart_at = 0
        self.running: dict[str, tuple[str, tuple[int, int]]] = {}  # calls that take time: id -> method and start
        self.print: Callable[[str], None] | None = None

    # Configuration

    def apply(self, document: "dict[str, Any]", revision: str) -> None:
        """Apply a machine document."""
        self.revision = revision
        self.configured_at = self.port.unix()
        configs = document.get("components") or []
        if not isinstance(configs, list):
            self.log("error", "config", "components is not a list: the last configuration stays in force")
            return
        self._settings(document)
        entries = self._entries(configs)
        names = {entry.key[1]: entry for entry in entries}
        kept: dict[tuple[str, str], Entry] = {}
        for entry in self.entries:  # in the order in which they were built: dependencies first
            stays = entry.state == READY and any(entry.key == new.key and entry.config == new.config for new in entries)
            if stays and all(name in names and names[name].key in kept for name in entry.needs):
                kept[entry.key] = entry
        for entry in reversed(self.entries):
            if entry.key not in kept:
                self._close(entry)
        self.entries = [kept.get(entry.key, entry) for entry in entries]
        self._build()
        ready = len([entry for entry in self.entries if entry.state == READY])
        self.log("info", "config", f"configured: {ready} of {len(self.entries)} components are ready")

    def _settings(self, document: "dict[str, Any]") -> None:
        network = document.get("network") or {}
        sessions = network.get("sessions") if isinstance(network, dict) else None
        window = sessions.get("heartbeat_window") if isinstance(sessions, dict) else None
        try:
            self.sessions.window = WINDOW_MS if window is None else milliseconds(window)
            self.sessions.window = max(MIN_WINDOW_MS, min(MAX_WINDOW_MS, self.sessions.window))
        except ValueError:
            self.log("error", "config", f"network.sessions.heartbeat_window is {window!r}: expected a time, such as 2s")
        self.capturing = True
        for service in document.get("services") or []:
            if isinstance(service, dict) and "data_manager" in str(service.get("api") or service.get("type")):
                attributes = service.get("attributes") or {}
                self.capturing = not attributes.get("capture_disabled", False)
            elif not (isinstance(service, dict) and str(service.get("model", "")).endswith("ota_service")):
                self.log("warn", "config", "services: this server has none but data_manager and ota_service")
        for section in ("modules", "remotes", "processes", "packages", "jobs"):
            if document.get(section):
                self.log("warn", "config", f"{section}: this server has none")

    def _entries(self, configs: "list[Any]") -> "list[Entry]":
        """Return an entry for each component that has a name and an API."""
        entries: list[Entry] = []
        for index in range(len(configs)):
            config = configs[index]
            problem = ""
            key = ("", "")
            if not isinstance(config, dict):
                problem = "is not an object"
            else:
                name, api = config.get("name"), config.get("api") or config.get("type") or ""
                if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME:
                    problem = f"has no name of at most {MAX_NAME} characters"
                elif not isinstance(api, str) or not api:
                    problem = "has no api"
                else:
                    key = (api.split(":")[-1], name)
                    if any(entry.key[1] == name for entry in entries):
                        problem = f"has the name {name!r}, which another one has already"
                    elif len(entries) >= MAX_COMPONENTS:
                        problem = f"is too many: this server has at most {MAX_COMPONENTS} components"
            if problem:
                self.log("error", "config", f"components[{index}] {problem}")
            else:
                entries.append(Entry(key, config, self.port.unix()))
        return entries

    def _build(self) -> None:
        """Create the components that are not ready, dependencies first, and order all by that."""
        ordered = [entry for entry in self.entries if entry.state == READY]
        waiting = [entry for entry in self.entries if entry.state != READY]
        for entry in waiting:
            self._prepare(entry)
        while waiting:
            done = {entry.key[1] for entry in ordered}
            todo = {entry.key[1] for entry in waiting}
            ready = [entry for entry in waiting if not any(name in todo for name in entry.needs)]
            if not ready:
                for entry in waiting:
                    self._fail(entry, f"depends on itself through {', '.join(entry.needs)}")
                ordered += waiting
                break
            for entry in ready:
                self._create(entry, done)
                ordered.append(entry)
            waiting = [entry for entry in waiting if entry not in ready]
        self.entries = ordered

    def _prepare(self, entry: Entry) -> None:
        config = entry.config
        try:
            model = load(entry.key[0], config.get("model"))
            attributes = Attributes(config.get("attributes") or {})
            depends = config.get("depends_on") or []
            entry.needs = [str(name).split(":")[-1].split("/")[-1] for name in depends]
            entry.needs += [name for name in model.requires(attributes) if name not in entry.needs]
            entry.captures = capture.captures_of(entry.key, config.get("service_configs") or [])
        except Unfit as error:
            self._fail(entry, str(error))

    def _create(self, entry: Entry, done: "set[str]") -> None:
        if entry.state == UNHEALTHY:
            return
        deps: dict[str, Resource] = {}
        for name in entry.needs:
            other = [each for each in self.entries if each.key[1] == name]
            if not other or other[0].resource is None:
                self._fail(entry, f"needs {name}, which is {'unhealthy' if other else 'not configured'}")
                return
            deps[name] = other[0].resource
        attributes = Attributes(entry.config.get("attributes") or {}, model=model_of(entry.config))
        try:
            model = load(entry.key[0], entry.config.get("model"))
            model.requires(attributes)
            entry.resource = model(entry.key[1], self.port, attributes, deps)
        except (Unfit, ValueError) as error:
            self._fail(entry, str(error))
        except CallFailure as failure:
            self._fail(entry, failure.text)
        except OSError as error:
            self._fail(entry, f"the hardware does not answer: {error}")
        else:
            entry.state = READY
            for name in attributes.unread():
                self.log("warn", entry.key[1], f"{name} is ignored: this server does not have it")

    def _fail(self, entry: Entry, reason: str) -> None:
        if entry.state != UNHEALTHY:
            entry.state = UNHEALTHY
            entry.reason = reason
            self.log("error", entry.key[1], reason)

    def _close(self, entry: Entry) -> None:
        self.sessions.forget(entry.key)
        resource, entry.resource = entry.resource, None
        if resource is not None:
            try:
                resource.close()
            except (OSError, CallFailure) as error:
                self.log("error", entry.key[1], f"cannot be stopped: {error}")

    def close(self) -> None:
        """Stop and release everything."""
        for entry in reversed(self.entries):
            self._close(entry)
        self.entries = []

    def find(self, key: "tuple[str, str]") -> Resource:
        """Return a component that is ready; CallFailure if it is not. A sensor may also be of another kind."""
        for entry in self.entries:
            if entry.key == key or (key[0] == "sensor" and entry.key[0] in SENSORS and entry.key[1] == key[1]):
                if entry.resource is None:
                    raise CallFailure(UNAVAILABLE, f"{key[1]} is not ready: {entry.reason}")
                return entry.resource
        raise CallFailure(NOT_FOUND, f"there is no {key[0]} {key[1]!r}")

    def halt_all(self) -> None:
        """Stop everything that moves; a component that cannot be stopped does not keep the others moving."""
        for entry in reversed(self.entries):
            self._halt(entry)

    def _halt(self, entry: Entry) -> None:
        if entry.resource is not None:
            try:
                entry.resource.halt()
            except (OSError, CallFailure, ValueError) as error:
                self.log("error", entry.key[1], f"cannot be stopped: {error}")

    # Time

    def tick(self) -> None:
        """End sessions that were silent for too long; called about ten times a second."""
        for key in self.sessions.expire(self.port.now()):
            self.log("warn", "sessions", f"stopping {key[1]}: its client is silent")
            for entry in self.entries:
                if entry.key == key:
                    self._halt(entry)

    async def capture_due(self) -> None:
        """Capture what is due."""
        now = self.port.now()
        for entry in self.entries:
            for each in entry.captures:
                if self.capturing and entry.resource is not None and now >= each.due:
                    each.due = max(each.due + each.period, now - each.period) if each.due else now + each.period
                    await self._capture(entry, each)

    async def _capture(self, entry: Entry, each: capture.Capture) -> None:
        api, call = capture.METHODS[each.method]
        try:
            row = row_of(api if each.method == "Readings" else entry.key[0], call)
            handler = getattr(entry.resource, row[1], None)
            if handler is None:
                raise CallFailure(UNIMPLEMENTED, f"{entry.key[1]} does not have {call}")
            begun = self.port.unix()
            values = handler(protobuf.decode(row[2], b""))
            if hasattr(values, "send"):
                values = await values
            data = capture.sensor_data(SENSOR_DATA, begun, self.port.unix(), values)
            self.ring.add(capture.Reading(each, data))
            each.failing = ""
        except (CallFailure, OSError, ValueError) as error:
            if each.failing != str(error):
                each.failing = str(error)
                self.log("error", entry.key[1], f"cannot capture {each.method}: {error}")

    def restart_in(self, ms: int) -> None:
        """Restart soon: the host looks at `restart_at`."""
        self.halt_all()
        self.restart_at = self.port.now() + ms

    def log(self, level: str, logger: str, text: str) -> None:
        """Write a line into the log."""
        seconds, nanos = self.port.unix()
        line = Line(seconds, nanos, level, logger, text)
        self.logs.add(line)
        if self.print is not None:
            self.print(f"{level} {logger}: {line.text}")


def milliseconds(text: "Any") -> int:
    """Return a time such as 2s or 500ms; ValueError if it is none."""
    if isinstance(text, (int, float)):
        return int(text * 1000)
    for end, factor in (("ms", 1), ("s", 1000)):
        if isinstance(text, str) and text.endswith(end):
            return int(float(text[: -len(end)]) * factor)
    raise ValueError("not a time")
