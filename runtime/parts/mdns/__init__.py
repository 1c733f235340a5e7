"""Announcement of the machine on the local network by multicast DNS: RFC 6762 and 6763."""
