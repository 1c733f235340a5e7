"""Machines as they report themselves: time of the last call, live state, and an overview of all machines."""
