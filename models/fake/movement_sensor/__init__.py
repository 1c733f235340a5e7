"""A simulated movement sensor with constant measurements, or those of the simulated base that carries it."""
