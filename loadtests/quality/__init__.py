"""How good the devices are that pods get: on one node beside the exact optimum, and on a fleet."""
