"""The configuration as one frozen tree: every key, its type, default, range and meaning (WO-32 to WO-34, WO-40, WO-41).

`gateway.config.load.load` makes a `Config` from a file; nothing else reads the file. The descriptions here are what docs/configuration.md says.
A bare `Config()` has the defaults, with `agent_workspace` and `data_dir` not yet made absolute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import AfterValidator, Field, SecretStr, model_validator

from agent.llm.demo_window import CONTEXT_TOKENS as DEMO_CONTEXT_WINDOW
from gateway.config.channels import Discord, Telegram, WeChatIlink, WeChatOfficial, WeCom
from gateway.config.memory import Background, Chroma, Dream, Memory, Scheduler, Search, Summary
from gateway.config.recall import Chunk, Companion, Context, Days, Entries, Inspector, Profile, Recall, Receipts
from gateway.config.saved import Saved
from gateway.config.types import (
    RESTART,
    Folder,
    HeaderName,
    HeadRows,
    Host,
    Id,
    Prefix,
    SameAs,
    Secret,
    Section,
    Url,
    Zone,
    hide_login,
    logins,
)

DEFAULT_CHARACTER = "default"
DEFAULT_NAME = "Yume"
MAIN_ACCOUNT = "model"
UNKNOWN_CONTEXT_WINDOW = 8192


class Log(Section):
    level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="The least grave lines that are written.")
    format: Annotated[Literal["text", "json"], RESTART] = Field(default="text", description="How a line looks: for people, or one JSON object each.")


class Database(Section):
    url: Annotated[str, RESTART] = Field(default="", description="SQLAlchemy address of the database; empty is SQLite in `data_dir`.")


class Price(Section):
    input: float = Field(default=0, ge=0, description="Cost of a million input tokens.")
    output: float = Field(default=0, ge=0, description="Cost of a million output tokens.")
    cached: float = Field(default=0, ge=0, description="Cost of a million input tokens that the provider had cached.")


class ModelAccount(Section):
    provider: Literal["demo", "openai"] = Field(default="demo", description="The built-in demo model, or any endpoint that speaks OpenAI's form.")
    base_url: Url = Field(default="", description="Address of the endpoint, for example http://127.0.0.1:11434/v1.")
    api_key: Secret = Field(default=SecretStr(""), description="Key for the endpoint; local servers often need none.")
    name: str = Field(default="", description="The model's name as the endpoint knows it.")
    context_window: int = Field(default=0, ge=0, description=f"Tokens the model can hold; 0 is unknown and counts as {UNKNOWN_CONTEXT_WINDOW}.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="How freely the model chooses words; null leaves it to the provider.")
    max_output_tokens: int = Field(default=0, ge=0, description="Longest answer in tokens; 0 leaves it to the provider.")
    timeout_s: float = Field(default=600, gt=0, description="Seconds that one request may take in all.")
    first_byte_s: float = Field(default=120, gt=0, description="Seconds to wait for the first word of an answer.")
    stall_s: float = Field(default=60, gt=0, description="Seconds that a begun answer may stand still.")
    sees_images: bool = Field(default=False, description="Whether pictures are sent to the model.")
    supports_tools: bool = Field(default=True, description="Whether tools are offered to the model.")
    embedding_model: Annotated[str, RESTART] = Field(
        default="", description="Embedding model of this account; empty: it has none of its own. The default account's goes before `embedding`."
    )
    embedding_url: Annotated[Url, RESTART] = Field(default="", description="Address for embeddings, in OpenAI's form; empty is `base_url`.")
    embedding_from: Annotated[str, RESTART] = Field(
        default="", description='Account whose embeddings are used: an id of `models`, or "model" for the default one.'
    )
    price: Price = Price()

    @property
    def window_tokens(self) -> int:
        """The context window to count with, in tokens: of the demo model its own, whatever is set."""
        return DEMO_CONTEXT_WINDOW if self.provider == "demo" else self.context_window or UNKNOWN_CONTEXT_WINDOW

    @property
    def calls_tools(self) -> bool:
        """Whether tools are offered; the demo model would lose its way among them."""
        return self.supports_tools and self.provider != "demo"

    @property
    def answer_tokens(self) -> int:
        """Tokens of the window that the longest answer needs; 0 where none is set, or the window is a guess, against which nothing is held."""
        return self.max_output_tokens if self.context_window else 0


class Embedding(Section):
    provider: Annotated[Literal["builtin", "openai", "none"], RESTART] = Field(
        default="builtin", description="Who makes vectors of texts when the default account does not; none: search by words alone."
    )
    base_url: Annotated[Url, RESTART] = Field(
        default="",
        description="Address of the endpoint for the provider openai; Google's is https://generativelanguage.googleapis.com/v1beta/openai.",
    )
    api_key: Annotated[Secret, RESTART] = Field(default=SecretStr(""), description="Key for that endpoint.")
    model: Annotated[str, RESTART] = Field(
        default="", description='Embedding model at that endpoint; built in: "e5" is slower and better in Japanese, empty is the fast one.'
    )


class Transcription(Section):
    provider: Literal["none", "openai"] = Field(default="none", description="Who writes voice notes down; none: they are named, not heard.")
    base_url: Url = Field(default="", description="Address of the endpoint for the provider openai, which is asked at /audio/transcriptions.")
    api_key: Secret = Field(default=SecretStr(""), description="Key for that endpoint.")
    model: str = Field(default="", description="Speech model at that endpoint.")


class Character(Section):
    name: str = Field(default="", max_length=100, description="The name people see and call; empty is the id.")
    aliases: tuple[str, ...] = Field(default=(), description="Other names it answers to.")
    prompt: str = Field(
        default="",
        description="Who it is and how it speaks; stands at the head of every prompt. {{chat_summary}} and {{recalled_messages}} in it are "
        "where summaries and recalled passages go (docs/characters.md).",
    )
    attributes: Mapping[str, str] = Field(default={}, description="Facts about it, each a name and a text, placed after the prompt.")
    model: str = Field(default="", description="Model account that answers: an id of `models`; empty is `model`.")
    profile: str = Field(
        default="",
        description="Window profile of its chats, how much of the talk is sent: assistant, companion, calendar or an id of `profiles`; "
        "empty is the channel's.",
    )


class Turn(Section):
    max_steps: int = Field(default=16, ge=1, le=1000, description="Model requests that one answer may take.")
    max_tokens: int = Field(default=200000, ge=1, description="Tokens, in and out, that one answer may take.")
    max_seconds: float = Field(default=600, gt=0, description="Seconds that one answer may take.")
    tool_timeout_s: float = Field(default=60, gt=0, description="Seconds that one tool call may take.")


class Budgets(Section):
    person_day_tokens: int = Field(default=0, ge=0, description="Tokens for one person and day; 0 is no limit.")
    chat_day_tokens: int = Field(default=0, ge=0, description="Tokens for one chat and day; 0 is no limit.")
    day_tokens: int = Field(default=0, ge=0, description="Tokens for everybody and one day; 0 is no limit.")
    day_cost: float = Field(default=0, ge=0, description="Cost for everybody and one day, in the unit of the prices; 0 is no limit.")
    warn_percent: int = Field(default=80, ge=1, le=100, description="Share of a limit at which a warning is given.")


class Rate(Section):
    person_per_minute: int = Field(default=30, ge=0, description="Messages taken from one person in a minute; 0 is no limit.")
    chat_per_minute: int = Field(default=60, ge=0, description="Messages taken from one chat in a minute; 0 is no limit.")


class Policy(Section):
    read_rows: bool = Field(description="Whether saved memories are read.")
    write_rows: bool = Field(description="Whether saved memories are written.")
    ageing: bool = Field(description="Whether unused memories age, and are recalled.")
    head_rows: HeadRows = Field(description="Unpinned memories that stand in every prompt.")
    deep_memory: Literal["subscriber", "no"] = Field(description="Who gets deep memory.")
    dreams: bool = Field(description="Whether dreams and scheduled summaries include these chats.")
    chat_summaries: bool = Field(description="Whether long chats are summarised.")
    notice: Literal["toast", "short", "full", "hidden", "result", "none"] = Field(description="How a person hears that something was remembered.")


def _policy(notice: str, **other: Any) -> dict[str, Any]:
    rows = {"read_rows": True, "write_rows": True, "ageing": True, "head_rows": 100, "deep_memory": "no", "dreams": True, "chat_summaries": True}
    return rows | {"notice": notice} | other


_NOTHING = _policy("none", read_rows=False, write_rows=False, ageing=False, head_rows=0, dreams=False, chat_summaries=False)
# The platform matrix (SM 3.5). A file may give some keys of a row; the others stay as here.
POLICY_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "web": _policy("toast", deep_memory="subscriber"),
    "telegram": _policy("short"),
    "discord_space": _policy("full", head_rows="all"),
    "discord_direct": _policy("full"),
    "wechat": _policy("hidden"),
    "api": _policy("result", dreams=False),
    "challenge": _NOTHING,
    "signed_out": _NOTHING,
}


class Policies(Section):
    web: Policy
    telegram: Policy
    discord_space: Policy
    discord_direct: Policy
    wechat: Policy
    api: Policy
    challenge: Policy
    signed_out: Policy

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        rows = cast("dict[str, object]", given)
        filled: dict[str, object] = dict(rows)
        for name, defaults in POLICY_DEFAULTS.items():
            row = rows.get(name, {})
            filled[name] = {**defaults, **cast("dict[str, object]", row)} if isinstance(row, dict) else row
        return filled


class Busy(Section):
    mode: Literal["steer", "queue"] = Field(default="steer", description="What a message does while an answer is made: join it, or wait its turn.")
    waiting_max: int = Field(default=20, ge=1, le=1000, description="Messages that may wait in one chat; more are refused.")


class Delivery(Section):
    answer_expires_s: float = Field(default=900, gt=0, description="Seconds after which an answer that could not be sent expires.")
    reminder_expires_s: float = Field(default=86400, gt=0, description="Seconds after which a reminder that could not be sent expires.")
    notice_expires_s: float = Field(default=60, gt=0, description="Seconds after which a notice that could not be sent expires.")
    stale_s: float = Field(default=3600, gt=0, description="Age in seconds from which waiting messages are answered together, as late ones.")
    drop_s: float = Field(default=86400, gt=0, description="Age in seconds from which a waiting message is only kept, not answered.")
    part_marks: bool = Field(default=False, description="Whether each of several messages of one answer ends with a mark such as (1/3).")
    attempts: int = Field(default=3, ge=1, le=20, description="Times a message is tried before it is given up and the operator told.")
    drain_s: float = Field(default=20, ge=0, description="Seconds that running answers get when the gateway stops.")
    concurrency: Annotated[int, RESTART] = Field(default=256, ge=1, le=10000, description="Answers that may be made at the same time.")


class TrustedProxy(Section):
    header: HeaderName = Field(default="", description="Header in which a proxy names the person; empty is none.")
    secret: Secret = Field(default=SecretStr(""), description="Secret that the proxy sends along in X-Proxy-Secret.")


class Web(Section):
    enabled: Annotated[bool, RESTART] = Field(default=True, description="Whether the web page and its API run.")
    host: Annotated[Host, RESTART] = Field(default="127.0.0.1", description="Address to listen on; other than loopback only with a sign-in.")
    port: Annotated[int, RESTART] = Field(default=8420, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")
    public_url: Url = Field(default="", description="Address at which people reach the page, used in links; empty is made of host and port.")
    guests: bool = Field(default=False, description="Whether people may chat without signing in; nothing of it is kept.")
    trusted_proxy: TrustedProxy = TrustedProxy()
    attachments_max: int = Field(default=10, ge=0, le=100, description="Files that one message may carry.")
    attachment_bytes: int = Field(default=20_000_000, ge=1, le=1_000_000_000, description="Largest file in bytes.")


class Channels(Section):
    web: Web = Web()
    telegram: Telegram = Telegram()
    discord: Discord = Discord()
    wechat_ilink: WeChatIlink = WeChatIlink()
    wechat_official: WeChatOfficial = WeChatOfficial()
    wecom: WeCom = WeCom()


class Webhooks(Section):
    host: Annotated[Host, RESTART] = Field(default="127.0.0.1", description="Address to listen on for calls of platforms, never for the page.")
    port: Annotated[int, RESTART] = Field(default=8421, ge=0, le=65535, description="Port to listen on; 0 takes any free one.")


def _with_default(characters: Mapping[str, Character]) -> Mapping[str, Character]:
    given = characters.get(DEFAULT_CHARACTER, Character())
    named = given if given.name else given.model_copy(update={"name": DEFAULT_NAME})
    return {DEFAULT_CHARACTER: named} | {name: character for name, character in characters.items() if name != DEFAULT_CHARACTER}


Characters: TypeAlias = Annotated[Mapping[Id, Character], AfterValidator(_with_default)]


class Config(Section):
    """The whole tree. `characters` always holds `default`."""

    agent_workspace: Annotated[Folder, RESTART] = Field(
        default=Path("~/yumegate"), description="Folder of the files the agent works with: memories, notes, knowledge."
    )
    agent_max_context_tokens: int = Field(default=50000, ge=1000, description="Tokens that one prompt may take in all.")
    agent_max_context_turns: int = Field(default=20, ge=1, le=1000, description="Turns of a chat that are sent word for word.")
    context: Context = Context()
    knowledge: bool = Field(default=True, description="Whether pages under knowledge/ are used and may be written by the model.")
    onboarding: bool = Field(default=True, description="Whether the owner is asked a few questions at first.")
    memory: Memory = Memory()
    summary: Summary = Summary()
    deep_dream_enabled: bool = Field(default=True, description="Whether memory dreams by itself at night; by hand it always may.")
    dream: Dream = Dream()
    background: Background = Background()
    scheduler: Scheduler = Scheduler()
    search: Search = Search()
    saved: Saved = Saved()
    recall: Recall = Recall()
    chunk: Chunk = Chunk()
    companion: Companion = Companion()
    profiles: Mapping[Id, Profile] = Field(default={}, description="Window profiles of your own, each under an id.")
    channel_profiles: Mapping[str, str] = Field(
        default={},
        description="Window profile of the chats of a channel, under its name such as telegram or telegram:ACCOUNT; without one, assistant.",
    )
    days: Days = Days()
    entries: Entries = Entries()
    receipts: Receipts = Receipts()
    inspector: Inspector = Inspector()
    chroma: Chroma = Chroma()
    timezone: Zone = Field(default="", description="Zone in which days begin and times are shown; empty is the system's.")
    data_dir: Annotated[Folder, RESTART] = Field(
        default=Path(), description="Folder of the database, backups and uploads; empty is `.yumegate` in the workspace."
    )
    log: Log = Log()
    database: Database = Database()
    model: ModelAccount = ModelAccount()
    models: Annotated[Mapping[Id, ModelAccount], SameAs("model")] = Field(default={}, description="More model accounts, each under an id of its own.")
    helper_model: str = Field(default="", description="Account for small work such as titles: an id of `models`; empty is the chat's.")
    fallback_model: str = Field(default="", description="Account that answers when the chat's own fails: an id of `models`; empty is none.")
    embedding: Embedding = Embedding()
    transcription: Transcription = Transcription()
    characters: Characters = Field(default=_with_default({}), description="Who answers, each under an id of its own; `default` always exists.")
    turn: Turn = Turn()
    budgets: Budgets = Budgets()
    rate: Rate = Rate()
    policies: Policies = Policies.model_validate({})
    busy: Busy = Busy()
    delivery: Delivery = Delivery()
    command_prefixes: Annotated[tuple[Prefix, ...], Field(min_length=1)] = Field(default=("/",), description="What a command begins with.")
    channels: Channels = Channels()
    webhooks: Webhooks = Webhooks()

    def account(self, name: str) -> ModelAccount:
        """The model account called `name` (WO-41); "" and "model" are the default one. `KeyError` for an unknown name, which `load` refuses."""
        return self.model if name in ("", MAIN_ACCOUNT) else self.models[name]


def masked(config: Config) -> dict[str, Any]:
    """The effective values as plain JSON, secrets as "***" (unset ones as "") and passwords in addresses hidden (WO-64)."""
    return cast("dict[str, Any]", _plain(config))


def _plain(value: object) -> object:
    match value:
        case Section():
            return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
        case Mapping():
            return {key: _plain(item) for key, item in cast("Mapping[str, object]", value).items()}
        case tuple():
            return [_plain(item) for item in cast("tuple[object, ...]", value)]
        case SecretStr():
            return "***" if value.get_secret_value() else ""
        case Path():
            return "" if value == Path() else str(value)
        case str():
            return hide_login(value)
        case _:
            return value


def secret_values(config: Config) -> set[str]:
    """Every secret and every password in an address, for the log filter. Those under 4 characters are left out: hiding them would hide all text."""
    return {secret for value in _values(config) for secret in _secrets(value) if len(secret) >= 4}


def _values(value: object) -> Iterator[object]:
    match value:
        case Section():
            for name in type(value).model_fields:
                yield from _values(getattr(value, name))
        case Mapping():
            for item in cast("Mapping[str, object]", value).values():
                yield from _values(item)
        case _:
            yield value


def _secrets(value: object) -> set[str]:
    match value:
        case SecretStr():
            return {value.get_secret_value()}
        case str():
            return logins(value)
        case _:
            return set()


def changed_sections(old: Config, new: Config) -> set[str]:
    """The top-level keys whose values differ, channels one by one: "model", "log", "channels.web" … (WO-31)."""
    names = {name for name in Config.model_fields if name != "channels" and getattr(old, name) != getattr(new, name)}
    return names | {f"channels.{name}" for name in Channels.model_fields if getattr(old.channels, name) != getattr(new.channels, name)}
