"""The implementation of the ports for Linux."""
