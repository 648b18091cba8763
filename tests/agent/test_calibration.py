from __future__ import annotations

import pytest

from agent.llm.calibration import Calibration


@pytest.mark.rule("WD-41")
@pytest.mark.parametrize(
    ("reports", "factor"),
    [([], 1.0), ([1200], 1.2), ([10], 0.7), ([9000], 1.5), ([1200] * 20, 1.2), ([500] + [1300] * 20, 1.29), ([0], 1.0)],
)
def test_a_models_factor_follows_its_reports_within_bounds(reports: list[int], factor: float) -> None:
    calibration = Calibration()
    for reported in reports:
        calibration.learn("m", counted=1000, reported=reported)
    assert calibration.factor("m") == pytest.approx(factor, abs=0.02)
    assert calibration.factor("another") == 1.0


def test_a_tiny_request_teaches_nothing() -> None:
    calibration = Calibration()
    calibration.learn("m", counted=20, reported=60)
    assert calibration.factor("m") == 1.0
