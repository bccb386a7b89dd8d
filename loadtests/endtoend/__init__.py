"""Measurements on a real control plane: pods a second, beside kube-scheduler's own allocator in the same run."""
