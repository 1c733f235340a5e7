"""Listening sockets, network interfaces, TLS contexts and the multicast DNS codec."""
