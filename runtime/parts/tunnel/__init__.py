"""Tunnels: clients connect through the machine's RPC to the TCP ports of this computer that the configuration lists."""
