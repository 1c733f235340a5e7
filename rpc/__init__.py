"""gRPC, gRPC-Web, pages and WebSockets on Trio: the port of a machine and the channel to one."""
