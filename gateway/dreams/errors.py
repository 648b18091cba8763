"""What a dream fails with."""

from __future__ import annotations


class DreamFailed(Exception):
    """This dream cannot succeed as it is: an answer outside of the contract after its repair, a spent budget, a file that cannot be written.

    The job is parked and visible, the days stay unused, and the next night takes them again (WD-72, WD-79, WD-85).
    """

    permanent = True


class ForgottenMeanwhile(Exception):
    """Something of the scope was forgotten while the model was asked: what it answered counts for nothing, for it was shown too much (WD-92)."""

    foreseen = True


class BudgetGone(DreamFailed):
    """What one dream may cost is spent (WD-87)."""
