"""A simulated gamepad that repeats events while a client listens, and accepts triggered events."""
