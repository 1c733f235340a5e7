"""Common parts of HTTP/1.1 and HTTP/2: ASGI, gRPC-Web encoding, request heads, limits and the byte stream."""
