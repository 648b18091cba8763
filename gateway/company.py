"""The services about who may talk, in one bundle: for the commands, the command line and the operator's page."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.linking import Linking
from gateway.pairing import Pairing
from gateway.people import People
from gateway.places import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    people: People
    pairing: Pairing
    linking: Linking
    places: Places
