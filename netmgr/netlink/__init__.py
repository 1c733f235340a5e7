"""The kernel's network configuration through rtnetlink, on Trio sockets with pyroute2's codecs."""
