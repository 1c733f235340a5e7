"""HTTP/2 connections, streams and flow control for servers and clients.

Public, in the order in which to read them:

* `codec.hpack`: HPACK (RFC 7541): a stateful decoder and a stateless encoder
* `client`: Client side of an HTTP/2 connection
* `server`: Server side of an HTTP/2 connection: requests become gRPC calls or other HTTP exchanges
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.http2.client import ClientConnection as ClientConnection
    from rpc.http2.codec.hpack import encode_header as encode_header
    from rpc.http2.codec.hpack import encode_headers as encode_headers
    from rpc.http2.server import serve_http2 as serve_http2
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "codec.hpack": ["encode_header", "encode_headers"],
            "client": ["ClientConnection"],
            "server": ["serve_http2"],
        },
    )
