"""Client channels, calls and credentials.

Public, in the order in which to read them:

* `response`: Receiving side of a client call: headers, messages and status
* `target`: The address of a server to connect to
* `web`: Client of calls over gRPC-Web, on any HTTP client: for programs that do not run on Trio
* `websocket`: Opening of client WebSockets with a single exception type for all failures, and their use as byte streams
* `blocking`: Calls that block, for programs that wait for one answer after the other: they need no event loop
* `call`: Client side of one call, as used by generated stubs
* `channel`: Client channel: calls to one server over one HTTP/2 connection, opened on demand and reopened after a loss
* `credentials`: Client credentials, exchanged once for a token that is sent with every call
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.client.blocking import PlainHttp as PlainHttp
    from rpc.client.blocking import run_blocking as run_blocking
    from rpc.client.call import ClientCall as ClientCall
    from rpc.client.channel import Channel as Channel
    from rpc.client.credentials import ApiKey as ApiKey
    from rpc.client.response import Response as Response
    from rpc.client.target import DialTarget as DialTarget
    from rpc.client.web import StreamingWebChannel as StreamingWebChannel
    from rpc.client.web import WebChannel as WebChannel
    from rpc.client.websocket import NotOpened as NotOpened
    from rpc.client.websocket import Stream as Stream
    from rpc.client.websocket import byte_stream as byte_stream
    from rpc.client.websocket import open_websocket as open_websocket
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "response": ["Response"],
            "target": ["DialTarget"],
            "web": ["StreamingWebChannel", "WebChannel"],
            "websocket": ["NotOpened", "Stream", "byte_stream", "open_websocket"],
            "blocking": ["PlainHttp", "run_blocking"],
            "call": ["ClientCall"],
            "channel": ["Channel"],
            "credentials": ["ApiKey"],
        },
    )
