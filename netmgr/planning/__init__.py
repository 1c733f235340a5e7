"""Computes the desired state of the network, the changes that lead to it, and their explanation. Pure."""
