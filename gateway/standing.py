"""What changes while the gateway runs, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from gateway.casting import name_given
from gateway.config import Config
from gateway.http.health import Phase
from gateway.http.views import FaultView


@dataclass(slots=True, kw_only=True)
class Standing:
    """What changes while the gateway runs, written by the one that runs it; the model's fault also by the end of each turn. `config`: as the operator
    wrote it."""

    config: Config
    config_path: str
    loaded_at: datetime
    faults: tuple[FaultView, ...] = ()
    phase: Phase = Phase.STARTING
    parked: bool = False  # deliveries of earlier runs wait for the operator (CH-102)
    model_fault: str = ""
    given_name: str = ""  # by the owner to the character that has none of the operator's (WD-34)
    _named: tuple[Config, str, Config] | None = None

    @property
    def named(self) -> Config:
        """The configuration with the names that people gave: what everything that speaks of characters goes by."""
        kept = self._named
        if kept is None or kept[0] is not self.config or kept[1] != self.given_name:
            kept = self._named = (self.config, self.given_name, name_given(self.config, self.given_name))
        return kept[2]
