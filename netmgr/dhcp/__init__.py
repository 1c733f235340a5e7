"""DHCP for IPv4: the codec, a client and the server of the hotspot as state machines, and their packet sockets."""
