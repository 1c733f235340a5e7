"""`machine data` and `machine ftdc`: read recordings on this computer."""
