"""Nouns: the values that every other floor speaks of. Frozen, and free of I/O, clocks and logging."""
