"""Control of things that move: how fast now, how much power, how far have we come. Pure."""
