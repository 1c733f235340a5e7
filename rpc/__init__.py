"""gRPC, gRPC-Web, web pages and WebSockets on Trio: server port and client channel of a machine."""
