"""`machine hal`: shows and checks the hardware of this computer."""
