"""A kube-scheduler extender that allocates DRA devices by topology."""
