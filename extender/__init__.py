"""A kube-scheduler extender that allocates DRA devices by topology."""

from typing import Final

# Here, not asked of the installation: the image has the code alone.
VERSION: Final = "0.1.0"
