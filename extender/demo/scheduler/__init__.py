"""Stands in for kube-scheduler: as much of its queue and its cycle as an extender can notice."""
