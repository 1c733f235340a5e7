"""Media of peer connections: outgoing videos, and the renegotiation that they need."""
