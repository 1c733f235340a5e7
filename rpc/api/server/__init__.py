"""Server side of the published services, implemented by Python classes."""
