"""Tunnels: clients reach TCP ports of this computer through the machine's RPC, those that the configuration lists."""
