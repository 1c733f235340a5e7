"""Keeps the facts about the network current, from events of the kernel and of netmgr's own tasks."""
