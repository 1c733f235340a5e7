"""What netmgr keeps on disk."""
