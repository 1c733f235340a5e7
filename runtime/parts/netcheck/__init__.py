"""Network checks: name resolution, connections, address translation, packet loss; with remedies."""
