"""HTTP and WebSocket interface of the cloud, in addition to RPC: pages for users and the push channel for machines."""
