"""Installation of machine-agent on a running system or into the tree of an image, and its removal."""
