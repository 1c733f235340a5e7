"""The Jobs API of a Ray cluster (REST, on the port of its dashboard). Ray itself is not imported."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpcore
import trio

from schema import ErrorKind, MachineError

PORT: Final = 8265  # of the dashboard, by default
MAX_ANSWER: Final = 1024 * 1024  # bytes of an answer that are read
TIME: Final = 15.0  # seconds for one call
TERMINAL: Final = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
_SCHEMES: Final = {"ray": ("http", PORT), "ray+https": ("https", 443)}
_TEXT: Final = 500  # characters of a message of the cluster that are passed on


@dataclass(frozen=True, slots=True)
class Placement:
    """What a node must have for a job. Memory is in bytes; 0 is not requested."""

    cpus: float = 1.0
    gpus: float = 0.0
    memory: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        named = {"CPU": self.cpus, "GPU": self.gpus, "memory": self.memory / 2**20, **self.resources}
        return ",".join(f"{name}={value:g}" for name, value in named.items() if value)


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission as the cluster knows it: PENDING, RUNNING, or one of TERMINAL."""

    status: str
    message: str
    node: str = ""  # the address of the node that has started it
    exit_code: int = 0  # of its command, negative for a signal; 0 if the cluster does not know it


def parse_address(text: str) -> str:
    """Return the URL of the cluster at `ray://HOST[:PORT]` or `ray+https://...`. ValueError explains mistakes."""
    parts = urlsplit(text)
    if parts.username is not None or parts.password is not None:
        raise ValueError("the address of the cluster must not contain a user or password: use --ray-token FILE")
    more = parts.path not in ("", "/") or parts.query or parts.fragment
    if parts.scheme not in _SCHEMES or not parts.hostname or more:
        raise ValueError(f"{text!r} is not `local`, ray://HOST[:PORT] or ray+https://HOST[:PORT]")
    scheme, port = _SCHEMES[parts.scheme]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{scheme}://{host}:{parts.port or port}"


def parse_placement(text: str) -> Placement:
    """Parse `CPU=2,GPU=1,memory=8192,trainer=1`; memory is in MiB. ValueError explains mistakes."""
    values: dict[str, float] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = entry.partition("=")
        try:
            values[name] = float(number)
        except ValueError:
            values[name] = -1.0
        if not name or not 0 <= values[name] < 1e9:
            raise ValueError(f"{entry!r} is not NAME=NUMBER: write for example CPU=2,GPU=1,memory=8192")
    return Placement(values.pop("CPU", 1.0), values.pop("GPU", 0.0), int(values.pop("memory", 0.0) * 2**20), values)


class RayJobs:
    """Calls of one cluster. All raise MachineError: UNAVAILABLE if it does not answer, PERMISSION for a wrong token."""

    def __init__(self, url: str, token: str, pool: httpcore.AsyncConnectionPool) -> None:
        self.url = url
        self._headers = [("Authorization", f"Bearer {token}"), ("Content-Type", "application/json")]
        self._pool = pool

    async def submit(self, submission: str, entrypoint: str, placement: Placement) -> None:
        """Submit a command line. A submission with this id that exists is kept: an answer may have been lost."""
        body: dict[str, Any] = {
            "submission_id": submission,
            "entrypoint": entrypoint,
            "entrypoint_num_cpus": placement.cpus,
            "entrypoint_num_gpus": placement.gpus,
        }
        if placement.memory:
            body["entrypoint_memory"] = placement.memory
        if placement.resources:
            body["entrypoint_resources"] = dict(placement.resources)
        status, content = await self._call("POST", "/api/jobs/", body)
        if status != 200 and await self.state(submission) is None:
            raise MachineError(
                f"the Ray cluster refused the job with HTTP {status}: {_text(content)}", kind=ErrorKind.PRECONDITION
            )

    async def state(self, submission: str) -> Submission | None:
        """Return a submission; None if the cluster does not know it."""
        status, content = await self._call("GET", f"/api/jobs/{quote(submission, safe='')}")
        if status == 404:
            return None
        details = _object(content)
        if status != 200 or not isinstance(details.get("status"), str):
            raise MachineError(
                f"the Ray cluster answered with HTTP {status}: {_text(content)}", kind=ErrorKind.UNAVAILABLE
            )
        address, exit_code = details.get("driver_agent_http_address"), details.get("driver_exit_code")
        return Submission(
            details["status"],
            _printable(str(details.get("message") or "")),
            _printable(str(address or "").partition("://")[2].rpartition(":")[0]),
            exit_code if isinstance(exit_code, int) else 0,
        )

    async def stop(self, submission: str) -> None:
        """Ask the cluster to stop a submission, if it runs. An unknown one is no error."""
        await self._call("POST", f"/api/jobs/{quote(submission, safe='')}/stop")

    async def version(self) -> str:
        """Return the version of Ray."""
        status, content = await self._call("GET", "/api/version")
        version = _object(content).get("ray_version")
        if status != 200 or not isinstance(version, str):
            raise MachineError(
                f"{self.url} is not the dashboard of a Ray cluster: HTTP {status}", kind=ErrorKind.PRECONDITION
            )
        return version[:40]

    async def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, bytes]:
        content, answer = None if body is None else json.dumps(body).encode(), b""
        request = self._pool.stream(method, self.url + path, headers=self._headers, content=content)
        with trio.move_on_after(TIME) as scope:
            try:
                async with request as response:
                    async for piece in response.aiter_stream():
                        answer += piece
                        if len(answer) > MAX_ANSWER:  # an error here would leave httpcore's generators open
                            scope.cancel()
            except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
                raise _unreachable(self.url, str(error) or type(error).__name__) from error
        if len(answer) > MAX_ANSWER:
            raise _unreachable(self.url, f"its answer is longer than {MAX_ANSWER} bytes")
        if scope.cancelled_caught:
            raise _unreachable(self.url, f"no answer within {TIME:g} s")
        if response.status in (401, 403):
            raise MachineError(
                f"the Ray cluster {self.url} refuses the token", kind=ErrorKind.PERMISSION, remedy="correct --ray-token"
            )
        return response.status, answer


@asynccontextmanager
async def ray_jobs(url: str, token: str) -> AsyncIterator[RayJobs]:
    """Provide a client of a cluster, and close its connections."""
    async with httpcore.AsyncConnectionPool(max_connections=8, keepalive_expiry=30.0) as pool:
        yield RayJobs(url, token, pool)


def _unreachable(url: str, reason: str) -> MachineError:
    return MachineError(f"the Ray cluster {url} cannot be reached: {reason}", kind=ErrorKind.UNAVAILABLE)


def _object(content: bytes) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _text(content: bytes) -> str:
    return _printable(content.decode(errors="replace"))


def _printable(text: str) -> str:
    """Return the end of a text, on one line."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[-_TEXT:]
