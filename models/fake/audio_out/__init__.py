"""A simulated loudspeaker that takes as long as the audio lasts, and counts what it has played."""
