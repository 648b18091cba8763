"""What changes while the gateway runs, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gateway.config import Config
from gateway.http.health import Phase
from gateway.http.views import FaultView


@dataclass(slots=True, kw_only=True)
class Standing:
    """What changes while the gateway runs, written by the one that runs it; the model's fault also by the end of each turn."""

    config: Config
    config_path: str
    loaded_at: datetime
    faults: tuple[FaultView, ...] = ()
    phase: Phase = Phase.STARTING
    parked: bool = False  # deliveries of earlier runs wait for the operator (CH-102)
    model_fault: str = ""
