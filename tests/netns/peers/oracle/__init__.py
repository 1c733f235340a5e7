"""An engine of peer connections on aiortc: an independent peer for the engine of the product."""
