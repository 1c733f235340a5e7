"""Chip drivers that follow the data sheets: registers, conversions and procedures on a port, without resources."""
