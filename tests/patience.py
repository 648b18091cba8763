"""How long a test waits: limits are written for a machine with nothing else to do, and hold on one that has."""

from __future__ import annotations

import os


def patience(seconds: float) -> float:
    """`seconds` of a free machine in seconds of this one, by the load of its last minute."""
    return seconds * max(1.0, 2 * os.getloadavg()[0] / (os.cpu_count() or 1))
