"""DHCP for IPv4: the codec, a client and the hotspot's server as state machines without I/O, and their packet sockets."""
