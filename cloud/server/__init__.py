"""Composition of machine-cloud: the command line and all running parts."""
