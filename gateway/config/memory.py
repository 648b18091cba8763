"""The part of the configuration that is about memory in files: summaries, dreams, search, background work (section 10 of the workspace rules)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gateway.config.types import RESTART, Section, Url, WallTime

_MODEL = "Model account for this work: an id of `models`; empty is `helper_model`, and that empty the chat's."


class Summary(Section):
    enabled: bool = Field(default=True, description="Whether each day is summarised.")
    time: WallTime = Field(default="23:55", description="Local time at which the day is summarised.")
    jitter_seconds: int = Field(
        default=240, ge=0, le=3600, description="Scopes start within so many seconds of that time, each at its own; never past midnight."
    )
    catch_up_days: int = Field(default=14, ge=1, le=60, description="Missed days that are made up for by themselves.")
    model: str = Field(default="", description=_MODEL)


class Dream(Section):
    model: str = Field(default="", description=_MODEL)
    scopes: Literal["all", "owner"] = Field(default="all", description="Whose memory dreams at night.")
    notify: Literal["failures", "always", "never"] = Field(default="failures", description="When a dream of the night tells its person.")
    max_items: int = Field(default=50, ge=1, le=500, description="Lines that dreams may keep in one MEMORY.md; lines by people do not count.")
    max_new_items: int = Field(default=20, ge=1, le=100, description="Lines that one dream may add.")
    manual_per_day: int = Field(default=3, ge=0, le=100, description="Dreams that a person other than the owner may ask for in one day.")
    max_loss_percent: int = Field(default=25, ge=0, le=25, description="Share of the lines that one dream may let go.")
    max_shrink_percent: int = Field(default=50, ge=0, le=50, description="Share of its bytes that the file may lose in one dream.")
    max_calls: int = Field(default=4, ge=1, le=20, description="Model requests that one dream may take.")
    max_input_tokens: int = Field(default=60000, ge=2000, description="Tokens that one dream may read.")
    max_seconds: int = Field(default=600, ge=10, le=7200, description="Seconds that one dream may take.")


class Memory(Section):
    prompt_max_tokens: int = Field(default=4000, ge=0, description="Tokens of MEMORY.md that stand in the prompt.")
    search_results: int = Field(default=10, ge=1, le=50, description="Hits that a search gives when nobody says how many.")
    chunk_tokens: Annotated[int, RESTART] = Field(default=500, ge=50, le=4000, description="Tokens of one piece of a file in the index.")
    chunk_overlap: Annotated[int, RESTART] = Field(default=50, ge=0, le=1000, description="Tokens that neighbouring pieces share.")
    backups_keep: Annotated[int, RESTART] = Field(default=30, ge=1, le=1000, description="Older texts that are kept of each file at least.")
    backup_days: Annotated[int, RESTART] = Field(default=30, ge=0, le=3650, description="Days for which every older text is kept.")


class Background(Section):
    concurrency: Annotated[int, RESTART] = Field(default=2, ge=1, le=64, description="Model requests that background work may make at a time.")
    daily_token_budget: int = Field(default=1_000_000, ge=0, description="Tokens that background work may take in one day; 0 is no limit.")


class Chroma(Section):
    url: Annotated[Url, RESTART] = Field(
        default="", description="Address of a Chroma server; empty is the built-in one, in `chroma/` under `data_dir`."
    )
    canary_samples: Annotated[int, RESTART] = Field(
        default=64, ge=50, le=10000, description="Stored vectors that must find themselves before an index is used."
    )


class WordsWeight(Section):
    rows: float = Field(default=0.2, ge=0, le=3, description="Weight of words beside vectors when saved memories are searched.")
    files: float = Field(default=0.3, ge=0, le=3, description="The same when files are searched.")
    messages: float = Field(default=0.5, ge=0, le=3, description="The same when the talk is searched.")


class Search(Section):
    words_weight: WordsWeight = WordsWeight()


class Scheduler(Section):
    misfire_grace_seconds: int = Field(default=900, ge=60, le=86400, description="Seconds by which a reminder may be late without a note about it.")
    late_hours: int = Field(default=24, ge=0, le=720, description="Hours up to which a late reminder is still delivered.")
