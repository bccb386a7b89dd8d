"""Decisions: pure functions over values; numpy and CEL, no I/O."""
