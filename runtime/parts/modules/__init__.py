"""Modules: child processes that provide further models."""
