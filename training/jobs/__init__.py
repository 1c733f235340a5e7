"""Training jobs: their states, the rules of submission, and their events. Pure."""
