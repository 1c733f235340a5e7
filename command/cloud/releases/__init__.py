"""`machine cloud releases`: signed releases of an organization. Keys of people stay on their computers."""
