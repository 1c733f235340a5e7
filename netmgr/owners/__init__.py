"""Other programs that configure the network: adopt their networks, take their interfaces over, and give them back."""
