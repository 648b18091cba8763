"""What most parts are given, in one bundle: the store, the clock, the models, and the few ways in which they reach each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from channels.message import Account
from channels.port import Capabilities
from gateway.attachments import Attachments
from gateway.config import Config
from gateway.delivery.replies import Replies
from gateway.dreams.reading import FindManagers
from gateway.models import Models
from gateway.people import People
from gateway.prompt_shelf import PromptShelf
from gateway.streams import Streams
from memory.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """`wake_jobs`: there is new work in the job table; `page`: the address of the web page; `managers`: who of some people manages a space;
    `prompts`: of the newest replies."""

    db: Database
    config: Callable[[], Config]
    clock: Callable[[], datetime]
    models: Models
    replies: Replies
    streams: Streams
    attachments: Attachments
    people: People
    can: Callable[[Account], Capabilities | None]
    page: Callable[[], str]
    wake_jobs: Callable[[], None]
    managers: FindManagers
    prompts: PromptShelf
