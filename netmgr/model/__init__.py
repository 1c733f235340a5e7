"""Records that the parts of netmgr exchange: networks, settings, what was observed, and what is to be. Pure."""
