"""Output of the machine's spans and metrics, and input of spans from modules and clients."""
