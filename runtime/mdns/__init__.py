"""The machine announces itself by multicast DNS on the local network: RFC 6762 and 6763."""
