"""Where vectors of texts come from, decided from the configuration alone (RS-24 to RS-28). Pure.

The default account's own embeddings, else those of the account it borrows from, else what `embedding` says, of which the default is the model built
in. The choice is of the whole gateway: rows, files and the talk are searched with one source, and a platform has none of its own. Only the built-in
source may have one encoder for each kind of text; it has one for all (docs/decisions/0007 and 0012).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from pydantic import SecretStr

from gateway.config import MAIN_ACCOUNT, Config, ModelAccount
from gateway.jsonfile import KeyPath

PICK = (
    "pick one: OpenAI-compatible (embedding_model, and embedding_url if it has another address), "
    "Google (the same, at https://generativelanguage.googleapis.com/v1beta/openai), or built-in (no embedding_from, and embedding.provider builtin)"
)
_GOOGLE, _GOOGLE_PATH = "generativelanguage.googleapis.com", "/openai"
_ENGLISH = ("all-minilm", "-en-", "-en", "nomic-embed-text", "mxbai-embed-large", "snowflake-arctic-embed", "gte-base", "gte-large", "gte-small")
_MANY = ("multilingual", "snowflake-arctic-embed2", "snowflake-arctic-embed-l-v2", "snowflake-arctic-embed-m-v2", "nomic-embed-text-v2")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSource:
    """`model`: at the endpoint, or of the built-in ones; `place`: the section that says so, empty when nothing does."""

    kind: Literal["builtin", "openai", "none"]
    model: str = ""
    base_url: str = ""
    api_key: SecretStr = field(default_factory=lambda: SecretStr(""))
    place: KeyPath = ()

    @property
    def is_paid(self) -> bool:
        """Whether what it reads is paid for: any endpoint but one on this machine or in this network (RS-29)."""
        return self.kind == "openai" and not _is_near(urlsplit(self.base_url).hostname or "")

    @property
    def is_english_only(self) -> bool:
        """Whether the model is known for English alone, so that a fact in one language is not found by a question in another (RS-178)."""
        name = self.model.lower()
        return self.kind == "openai" and not any(each in name for each in _MANY) and any(_named(each, name) for each in _ENGLISH)


class SourceFault(ValueError):
    """Why no source can be told: `path` is the key, `hint` what to do."""

    def __init__(self, path: KeyPath, message: str, hint: str) -> None:
        super().__init__(f"{'.'.join(map(str, path))} {message} ({hint})")
        self.path, self.message, self.hint = path, message, hint


def source_of(config: Config) -> EmbeddingSource:
    """The source of the gateway. Raises SourceFault, which a configuration that was loaded has none of."""
    found = _lender(config, MAIN_ACCOUNT)
    if found is None:
        return _of_application(config)
    return _of_account(*found)


def sources_named(config: Config) -> Iterator[EmbeddingSource]:
    """Every endpoint that the configuration still names, in whatever place: one that served before can be asked through it (SM-95)."""
    for path, account in accounts(config):
        if account.embedding_model:
            yield _of_account(path, account)
    if config.embedding.base_url and config.embedding.model:
        yield _endpoint_of_application(config)


def source_faults(config: Config) -> Iterator[SourceFault]:
    """Everything that is wrong with the embeddings of accounts; circles and unknown names are told with the names of accounts."""
    for path, account in accounts(config):
        if account.embedding_url and not account.embedding_model:
            yield SourceFault((*path, "embedding_model"), "is needed with embedding_url", PICK)
        elif account.embedding_model and not _address(account):
            yield SourceFault((*path, "embedding_url"), "is needed: this account has no endpoint of its own", PICK)
        try:
            _lender(config, _name_of(path))
        except SourceFault as fault:
            if fault.path[:-1] == path and not _is_circle(config, path):
                yield fault


def half_an_address(config: Config) -> Iterator[tuple[KeyPath, str]]:
    """Google's addresses that are not those of OpenAI's form: the key of each, and the address that is meant."""
    found = [((*path, "embedding_url" if account.embedding_url else "base_url"), _address(account)) for path, account in accounts(config)
             if account.embedding_model]  # fmt: skip
    found.append((("embedding", "base_url"), config.embedding.base_url))
    for path, address in found:
        parts = urlsplit(address)
        if parts.hostname == _GOOGLE and not parts.path.rstrip("/").endswith(_GOOGLE_PATH):
            yield path, f"https://{_GOOGLE}/v1beta{_GOOGLE_PATH}"


def accounts(config: Config) -> Iterator[tuple[KeyPath, ModelAccount]]:
    yield (MAIN_ACCOUNT,), config.model
    for name, account in config.models.items():
        yield ("models", name), account


def _lender(config: Config, name: str) -> tuple[KeyPath, ModelAccount] | None:
    """The account whose embeddings are meant by this one; None when it names none."""
    seen: list[KeyPath] = []
    while True:
        path = _path_of(name)
        account = config.account(name)
        if account.embedding_model:
            return path, account
        if not account.embedding_from:
            if not seen:
                return None
            raise SourceFault((*seen[-1], "embedding_from"), f'names "{name}", and that account has no embeddings', PICK)
        seen.append(path)
        name = account.embedding_from
        if name != MAIN_ACCOUNT and name not in config.models:
            raise SourceFault((*path, "embedding_from"), f'names "{name}", and there is no such account', PICK)
        if _path_of(name) in seen:
            keys = " → ".join(".".join(map(str, (*each, "embedding_from"))) for each in [*seen, _path_of(name)])
            raise SourceFault((*path, "embedding_from"), f"borrows in a circle: {keys}", "end it at an account with embedding_model")


def _is_circle(config: Config, path: KeyPath) -> bool:
    """Told by whoever checks names, with the names in it; so are names that nobody has."""
    name = config.account(_name_of(path)).embedding_from
    if name != MAIN_ACCOUNT and name not in config.models:
        return True
    seen = {path}
    while name and (name == MAIN_ACCOUNT or name in config.models) and _path_of(name) not in seen:
        seen.add(_path_of(name))
        name = config.account(name).embedding_from
    return bool(name) and _path_of(name) in seen


def _of_account(path: KeyPath, account: ModelAccount) -> EmbeddingSource:
    return EmbeddingSource(kind="openai", model=account.embedding_model, base_url=_address(account), api_key=account.api_key, place=path)


def _of_application(config: Config) -> EmbeddingSource:
    chosen = config.embedding
    place: KeyPath = ("embedding",) if chosen.model_fields_set else ()
    match chosen.provider:
        case "openai":
            return _endpoint_of_application(config)
        case "builtin":
            return EmbeddingSource(kind="builtin", model=chosen.model, place=place)
        case "none":
            return EmbeddingSource(kind="none", place=place)


def _endpoint_of_application(config: Config) -> EmbeddingSource:
    chosen = config.embedding
    return EmbeddingSource(kind="openai", model=chosen.model, base_url=chosen.base_url, api_key=chosen.api_key, place=("embedding",))


def _address(account: ModelAccount) -> str:
    return account.embedding_url or account.base_url


def _path_of(name: str) -> KeyPath:
    return (MAIN_ACCOUNT,) if name == MAIN_ACCOUNT else ("models", name)


def _name_of(path: KeyPath) -> str:
    return str(path[-1])


def _named(part: str, name: str) -> bool:
    return name.endswith(part) if part == "-en" else part in name


def _is_near(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".internal", ".localhost"))
    return address.is_private or address.is_loopback
