"""What the cloud serves besides RPC: pages for people, the push channel for machines."""
