"""Chips as their data sheets describe them: registers, conversions and procedures over a port. No resources."""
