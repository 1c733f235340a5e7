"""The calls of RobotService and AuthService."""

from micro.engine.resource import READY
from micro.wire.faults import PRECONDITION, CallFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from micro.engine.machine import Machine

    Request = dict[str, Any]
    Reply = dict[str, Any]

VERSION = "0.1.0"
API_VERSION = "v0.1.0"
RUNNING = 2
WRONG_KEY_MS = 1000
RESTART_MS = 200  # after the answer to Shutdown has been sent


class Caller:
    """Who calls: the id of its key, and the fields of the request that calls read."""

    def __init__(self, owner: str, headers: "dict[bytes, bytes]") -> None:
        self.owner = owner
        self.headers = headers


class Robot:
    """Answers the calls for the whole machine. A call has the fields of the request and its caller."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine

    def authenticate(self, request: "Request", caller: "Caller") -> "Any":
        """Return a token for an API key. The answer to a wrong one comes late, and delays no other caller."""
        credentials = request["credentials"] or {"type": "", "payload": ""}
        try:
            token = self._machine.access.sign_in(request["entity"], credentials["type"], credentials["payload"])
        except CallFailure as failure:
            return self._refuse(failure)
        return {"access_token": token}

    async def _refuse(self, failure: CallFailure) -> None:
        await self._machine.port.sleep(WRONG_KEY_MS)
        raise failure

    def resource_names(self, request: "Request", caller: "Caller") -> "Reply":
        """Return the components that are ready."""
        return {"resources": [name_of(entry.key) for entry in self._machine.entries if entry.state == READY]}

    def get_machine_status(self, request: "Request", caller: "Caller") -> "Reply":
        """Return the state of every component."""
        machine = self._machine
        resources = [
            {
                "name": name_of(entry.key),
                "state": entry.state,
                "last_updated": stamp(entry.since),
                "revision": machine.revision,
                "error": entry.reason,
            }
            for entry in machine.entries
        ]
        config = {"revision": machine.revision, "last_updated": stamp(machine.configured_at)}
        return {"resources": resources, "config": config, "state": RUNNING}

    def get_version(self, request: "Request", caller: "Caller") -> "Reply":
        """Return the platform and the versions."""
        return {"platform": self._machine.port.platform, "version": VERSION, "api_version": API_VERSION}

    def get_cloud_metadata(self, request: "Request", caller: "Caller") -> "Reply":
        """Return the ids of the machine in its cloud."""
        cloud = self._machine.cloud
        if not cloud:
            raise CallFailure(PRECONDITION, "this machine is not managed by a cloud")
        reply = {}
        for name in ("primary_org_id", "location_id", "machine_id"):
            reply[name] = str(cloud.get(name, ""))
        reply["machine_part_id"] = str(cloud.get("id", ""))
        return reply

    def get_operations(self, request: "Request", caller: "Caller") -> "Reply":
        """Return the calls that take time and have not ended. The TypeScript SDK begins with this call."""
        running = self._machine.running
        return {
            "operations": [
                {"id": operation, "method": running[operation][0], "started": stamp(running[operation][1])}
                for operation in running
            ]
        }

    def start_session(self, request: "Request", caller: "Caller") -> "Reply":
        """Start or resume a session."""
        machine = self._machine
        wish = caller.headers.get(b"machine-heartbeat-window", b"")
        session = machine.sessions.start(request["resume"], caller.owner, wish, machine.port.now())
        window = {"seconds": session.window // 1000, "nanos": session.window % 1000 * 1000000}
        return {"id": session.sid, "heartbeat_window": window}

    def send_session_heartbeat(self, request: "Request", caller: "Caller") -> "Reply":
        """Extend a session."""
        machine = self._machine
        machine.sessions.find(request["id"], caller.owner).touch(machine.port.now())
        return {}

    def stop_all(self, request: "Request", caller: "Caller") -> "Reply":
        """Stop everything that moves."""
        self._machine.halt_all()
        return {}

    def log(self, request: "Request", caller: "Caller") -> "Reply":
        """Put lines of a client into the log."""
        for line in request["logs"]:
            self._machine.log(line["level"] or "info", line["logger_name"] or "client", line["message"])
        return {}

    def shutdown(self, request: "Request", caller: "Caller") -> "Reply":
        """Restart: a computer without an operator that stays off would be lost."""
        self._machine.restart_in(RESTART_MS)
        return {}


def name_of(key: "tuple[str, str]") -> "dict[str, str]":
    """Return a ResourceName."""
    return {"namespace": "rdk", "type": "component", "subtype": key[0], "name": key[1]}


def stamp(moment: "tuple[int, int]") -> "dict[str, int]":
    """Return a Timestamp."""
    return {"seconds": moment[0], "nanos": moment[1]}
