"""Certificate authorities of this cloud, and the certificates that they sign for its own port and for machines.

The cloud's own port has one authority, and the machines of each organization have another. A client that trusts the
machines of one organization does not trust the machines of others, nor a machine that claims to be the cloud.
"""
