"""Expressions over every function and operator, each with what Kubernetes' own environment answered."""
