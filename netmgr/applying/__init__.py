"""Applies the effects of a plan to the kernel and the daemons."""
