"""Benchmarks: each module prints medians and ratios, and keeps them in results."""
