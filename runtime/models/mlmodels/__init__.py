"""ML models: inference on this computer, and tensors."""
