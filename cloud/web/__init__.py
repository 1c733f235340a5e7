"""HTTP and WebSocket interface of the cloud, besides RPC: pages for people and the push channel for machines."""
