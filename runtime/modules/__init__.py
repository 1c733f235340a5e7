"""Modules: programs that offer further models, run as child processes."""
