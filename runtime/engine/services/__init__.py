"""Base classes of the service APIs, one module each: `from runtime.engine.services.vision import Vision`."""
