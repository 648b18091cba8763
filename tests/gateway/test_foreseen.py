"""Which failures of jobs are logged in one line, and which with the stack that led to them."""

from __future__ import annotations

import pytest

from agent.errors import ModelBroken, ModelBusy
from gateway.background import BudgetSpent
from gateway.dreams.errors import DreamFailed, ForgottenMeanwhile
from gateway.jobs.failures import is_foreseen
from gateway.judging import JudgementUnusable, NoJudge
from gateway.tasks.runner import ChannelAbsent
from memory.errors import StoreUnavailable
from memory.index_errors import EmbedderFailed
from memory.recall.answers import InvalidOutput
from memory.summaries import AnswerUnusable


@pytest.mark.rule("WD-100")
@pytest.mark.parametrize(
    ("error", "foreseen"),
    [
        (AnswerUnusable("the answer is no JSON object"), True),
        (InvalidOutput("no summary"), True),
        (JudgementUnusable(), True),
        (NoJudge(), True),
        (BudgetSpent(60.0), True),
        (DreamFailed("outside of the contract"), True),
        (ForgottenMeanwhile(), True),
        (ChannelAbsent(), True),
        (ModelBusy("overloaded"), True),
        (ModelBroken("no choices"), True),
        (EmbedderFailed("no answer"), True),
        (StoreUnavailable("locked"), True),
        (ValueError("'x'"), False),
        (KeyError("x"), False),
        (AssertionError(), False),
    ],
)
def test_only_what_nobody_foresaw_is_logged_with_a_stack(error: Exception, foreseen: bool) -> None:
    assert is_foreseen(error) is foreseen
