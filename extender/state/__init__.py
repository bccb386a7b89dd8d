"""Belief: what we hold for true about the cluster. One writer, no I/O, no clock."""
