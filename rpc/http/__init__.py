"""Common parts of HTTP/1.1 and HTTP/2: ASGI, gRPC-Web encoding, request heads, limits and the byte stream.

Public, in the order in which to read them:

* `limits`: Limits that the HTTP side of a port enforces on its peers, in addition to those of `rpc.limits`
* `message_stream`: Byte stream over a connection of binary messages, such as a WebSocket; message boundaries have no
  meaning
* `asgi`: ASGI 3 server on Trio for requests that are not gRPC, for any HTTP version
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.http.asgi import plain_response as plain_response
    from rpc.http.limits import HttpLimits as HttpLimits
    from rpc.http.message_stream import MessageStream as MessageStream
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "limits": ["HttpLimits"],
            "message_stream": ["MessageStream"],
            "asgi": ["plain_response"],
        },
    )
