"""Desired state of the network from settings, facts and a decision, the effects that lead there, and why. Pure."""
