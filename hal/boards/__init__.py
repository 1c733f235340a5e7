"""Board definitions as data: the chip and line of each header pin."""
