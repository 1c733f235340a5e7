"""A minimal HTTP/1.1 client for exporters: POST of one JSON document."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import trio

from schema import ErrorKind, MachineError

DEFAULT_PORT: Final = 4318  # OTLP over HTTP
_GRPC_PORT: Final = 4317
_MAX_ANSWER: Final = 65536  # bytes of an answer that are read


@dataclass(frozen=True, slots=True)
class CollectorEndpoint:
    """The address of a collector. `path` is the path before `/v1/traces`."""

    host: str
    port: int
    tls: bool
    path: str = ""

    @classmethod
    def parse(cls, text: str) -> CollectorEndpoint:
        """Parse `http://host:4318`, `https://host/path` or `host:4318`. Raises ValueError for anything else."""
        parts = urlsplit(text if "://" in text else f"http://{text}")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise ValueError(
                f"{text!r} is not the address of a collector: write http://host:{DEFAULT_PORT} or https://host"
            )
        port = parts.port or (443 if parts.scheme == "https" else DEFAULT_PORT)
        return cls(parts.hostname, port, parts.scheme == "https", parts.path.rstrip("/").removesuffix("/v1/traces"))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path}"


async def post(endpoint: CollectorEndpoint, path: str, body: bytes) -> None:
    """Send `body` to `path` below the endpoint, without a time limit. Raises MachineError unless it is accepted."""
    try:
        stream: trio.abc.Stream = await trio.open_tcp_stream(endpoint.host, endpoint.port)
        if endpoint.tls:
            context = ssl.create_default_context()
            stream = trio.SSLStream(stream, context, server_hostname=endpoint.host, https_compatible=True)
        async with stream:
            status, answer = await _exchange(stream, endpoint, path, body)
    except (OSError, trio.BrokenResourceError) as error:
        raise MachineError(f"{endpoint} cannot be reached: {error}", kind=ErrorKind.UNAVAILABLE) from None
    if status >= 300:
        text = answer.decode("utf-8", "replace").strip()[:200]
        raise MachineError(f"{endpoint}{path} answered {status}{f': {text}' if text else ''}")


async def _exchange(stream: trio.abc.Stream, endpoint: CollectorEndpoint, path: str, body: bytes) -> tuple[int, bytes]:
    import h11

    connection = h11.Connection(h11.CLIENT)
    head = h11.Request(
        method="POST",
        target=endpoint.path + path,
        headers=[
            ("host", f"{endpoint.host}:{endpoint.port}"),
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ],
    )
    await stream.send_all(
        connection.send(head) + connection.send(h11.Data(data=body)) + connection.send(h11.EndOfMessage())
    )
    status, answer = 0, b""
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(bytes(await stream.receive_some(65536)))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                answer += bytes(event.data)
                if len(answer) > _MAX_ANSWER:
                    return status, answer
            elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                return status or 502, answer
    except h11.RemoteProtocolError:
        remedy = f"use its port for OTLP over HTTP, usually {DEFAULT_PORT}; {_GRPC_PORT} is for gRPC"
        raise MachineError(f"{endpoint} does not speak HTTP/1.1", remedy=remedy) from None
