"""HTTP/2, HPACK, protobuf and WebSocket as values: bytes in, bytes out. Pure."""
