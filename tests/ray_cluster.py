"""A stand-in for the Jobs API of a Ray cluster, written from its documented REST interface.

It runs entry points with a shell on this computer, as Ray does on a node, and can do what a cluster does at bad times:
know nothing after a restart, lose the link to a node, answer without end, refuse a token, or have no node for a job.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryFile
from typing import Any, Final

import h11
import trio

TOKEN: Final = "a-token-of-the-tests"
ENDED: Final = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})
NODE: Final = "10.0.0.3"  # the address of the node
STOP_WAIT: Final = 3.0  # seconds from the request to stop to the kill: RAY_JOB_STOP_WAIT_TIME_S
_VERSION: Final = {"version": "4", "ray_version": "2.60.0", "session_name": "session_of_tests"}
_BLOCK: Final = b" " * 65536


@dataclass
class Job:
    """A submission."""

    body: dict[str, Any]
    status: str = "PENDING"
    message: str = "Job has not started yet."
    process: trio.Process | None = None
    exit_code: int | None = None

    def finish(self, status: str, message: str, exit_code: int | None = None) -> None:
        """Record the end of the job, once."""
        if self.status not in ENDED:
            self.status, self.message, self.exit_code = status, message, exit_code


class Cluster:
    """A cluster with one node. Attributes say how it misbehaves; all of them can be changed at any time."""

    def __init__(self, nursery: trio.Nursery, url: str) -> None:
        self._nursery = nursery
        self.url = url
        self.jobs: dict[str, Job] = {}
        self.calls: list[tuple[str, str]] = []
        self.has_node = True  # without one, jobs stay PENDING
        self.unseen = ""  # a folder that the node does not see
        self.endless = False  # answers have no end
        self.silent = False  # connections are accepted, and nothing is answered
        self.drops = 0  # further submissions that are accepted, and whose answer is lost

    async def serve(self, stream: trio.abc.Stream) -> None:
        """Answer one request."""
        connection = h11.Connection(h11.SERVER)
        async with stream:
            try:
                await self._serve(connection, stream)
            except (trio.BrokenResourceError, h11.RemoteProtocolError):  # the client has closed the connection
                pass

    async def _serve(self, connection: h11.Connection, stream: trio.abc.Stream) -> None:
        request, body = await _request(connection, stream)
        method, path = request.method.decode(), request.target.decode()
        self.calls.append((method, path))
        if self.silent:
            await trio.sleep_forever()
        token = dict(request.headers).get(b"authorization", b"").decode()
        status, answer = (401, "Unauthorized") if token != f"Bearer {TOKEN}" else self._answer(method, path, body)
        if method == "POST" and path == "/api/jobs/" and self.drops:
            self.drops -= 1
            return
        content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        headers = [] if self.endless else [("Content-Length", str(len(content)))]
        await stream.send_all(
            connection.send(h11.Response(status_code=status, headers=[*headers, ("Connection", "close")]))
        )
        while self.endless:
            await stream.send_all(connection.send(h11.Data(data=_BLOCK)))
        await stream.send_all(connection.send(h11.Data(data=content)))

    def _answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        if (method, path) == ("GET", "/api/version"):
            return 200, _VERSION
        if (method, path) == ("POST", "/api/jobs/"):
            return self._submit(json.loads(body))
        name, _, action = path.removeprefix("/api/jobs/").partition("/")
        job = self.jobs.get(name)
        if job is None:
            return 404, f"Job {name} does not exist"
        if (method, action) == ("POST", "stop"):
            stopped = job.status not in ENDED
            self._nursery.start_soon(_stop, job)
            return 200, {"stopped": stopped}
        agent = None if job.process is None else f"http://{NODE}:52365"
        end = {"status": job.status, "message": job.message, "driver_exit_code": job.exit_code}
        return 200, {"submission_id": name, "type": "SUBMISSION", "driver_agent_http_address": agent, **end}

    def _submit(self, body: dict[str, Any]) -> tuple[int, Any]:
        name = body["submission_id"]
        if name in self.jobs:
            return 500, f"Traceback: ValueError: Job with submission_id {name} already exists."
        if self.unseen:
            body["entrypoint"] = body["entrypoint"].replace(self.unseen, "/not-mounted")
        self.jobs[name] = job = Job(body)
        if self.has_node:
            self._nursery.start_soon(_run, job)
        return 200, {"job_id": name, "submission_id": name}

    def cut(self, name: str) -> None:
        """Lose the link to the node of a job: it is FAILED for the cluster, and its program goes on."""
        self.jobs[name].finish("FAILED", "Job supervisor actor died: the node was terminated unexpectedly")
        self.jobs[name].process = None  # a stop does not arrive there

    def restart(self) -> None:
        """Forget all submissions, whose programs go on, as a head without storage does."""
        self.jobs = {}


@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    """Provide a cluster on the loopback interface; its programs are killed at the end."""
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        result = Cluster(nursery, f"http://127.0.0.1:{listener.socket.getsockname()[1]}")
        nursery.start_soon(partial(trio.serve_listeners, result.serve, [listener]))
        try:
            yield result
        finally:
            nursery.cancel_scope.cancel()


async def _request(connection: h11.Connection, stream: trio.abc.Stream) -> tuple[h11.Request, bytes]:
    request, body = None, b""
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(bytes(await stream.receive_some(65536)))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        else:
            if request is None:
                raise trio.BrokenResourceError
            return request, body


async def _run(job: Job) -> None:
    """Run the entry point with a shell, in a process group, as the supervisor of Ray does."""
    with TemporaryFile() as log:
        process = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", job.body["entrypoint"]],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        job.process = process
        if job.status == "PENDING":
            job.status, job.message = "RUNNING", "Job is currently running."
        try:
            status = await process.wait()
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                with trio.CancelScope(shield=True):
                    await process.wait()
        log.seek(0)
        tail = log.read().decode(errors="replace")[-20_000:]
    if not status:
        job.finish("SUCCEEDED", "Job finished successfully.", 0)
        return
    begin = f"INFO job_manager.py:581 -- Runtime env is setting up.\nRunning entrypoint: {job.body['entrypoint']}\n"
    logs = f"last available logs (truncated to 20,000 chars):\n{begin}{tail}"
    job.finish("FAILED", f"Job entrypoint command failed with exit code {status}, {logs}", status)


async def _stop(job: Job) -> None:
    process = job.process
    job.finish("STOPPED", "Job was intentionally stopped.")
    if process is not None and process.returncode is None:
        os.killpg(process.pid, signal.SIGTERM)
        with trio.move_on_after(STOP_WAIT):
            await process.wait()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
