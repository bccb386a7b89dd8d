"""The verbs asked by locust: the real kube-scheduler's bodies, many users, mixes of pods, budgets that fail it."""
