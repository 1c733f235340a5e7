"""The hardware of a computer with Windows: none of the ports is built, and each says why."""
