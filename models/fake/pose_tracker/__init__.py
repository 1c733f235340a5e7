"""A simulated pose tracker that tracks simulated bases and one circling body."""
