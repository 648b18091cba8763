"""What is written down, and what never is (RL-32, CH-43)."""

from __future__ import annotations

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import logs
from gateway.logs import Redactor, delivery, start_logging

log = logging.getLogger(__name__)

SECRET = "hunter2-marker-geheim"


def written(form: str = "text", level: str = "info", *, secrets: set[str] | None = None) -> io.StringIO:
    redactor = start_logging(level, form)
    redactor.know({SECRET} if secrets is None else secrets)
    (handler,) = logging.getLogger().handlers
    stream = io.StringIO()
    assert isinstance(handler, logging.StreamHandler)
    handler.setStream(stream)
    return stream


@pytest.mark.rule("CH-43")
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_carries_its_delivery(form: str) -> None:
    stream = written(form)
    with delivery("d-1"):
        log.info("taken in")
    log.info("alone")
    first, second = stream.getvalue().splitlines()
    assert "d-1" in first and "d-1" not in second


@pytest.mark.case("CF-03")
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_line_says_words_in_their_own_letters(form: str) -> None:
    stream = written(form)
    log.info("%s wrote", "你好 😀")
    assert "你好 😀 wrote" in stream.getvalue()


@pytest.mark.rule("RL-32")
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_known_secret_stands_in_no_line_wherever_it_came_from(form: str) -> None:
    stream = written(form)
    log.info("key %s", SECRET)
    log.info(f"key {SECRET}")  # noqa: G004  # as a careless library does it
    log.info("of %(key)s", {"key": SECRET})
    log.info("%s", {"deep": [SECRET]})
    try:
        raise ValueError(SECRET) from KeyError(SECRET)
    except ValueError:
        log.exception("it broke with %s", SECRET)
    assert SECRET not in stream.getvalue()
    assert stream.getvalue().count("***") >= 6


@pytest.mark.rule("RL-32")
def test_a_traceback_that_another_handler_wrote_down_is_cleaned_too() -> None:
    stream = written()
    record = logging.LogRecord("x", logging.ERROR, "f", 1, "broke", (), None)
    record.exc_text = f"ValueError: {SECRET}"
    logging.getLogger().handle(record)
    assert SECRET not in stream.getvalue()


@pytest.mark.rule("RL-32")
@pytest.mark.parametrize(
    "words",
    [
        "the key MARK was refused".replace("MARK", "sk-abcd1234efgh5678"),
        "token=yg_0123456789abcdef",
        "GET https://api.telegram.org/bot123456789:AAF-abcdefghijklmnopqrstuvwxyz12345/getMe",
        "Authorization: Bearer abcdef.ghijkl.mnopqr",
        "GET /x?access_token=abcdef123&x=1",
        "GET /cgi-bin/token?appid=wx1&secret=abcdef123&x=1",
        "GET /cgi-bin/gettoken?corpid=1&corpsecret=abcdef123",
        "postgresql://yume:abcdef123@db/yume",
        "AIzaSyAbcdef1234567890",
        "xoxb-1234-5678-abcdef",
    ],
)
def test_what_looks_like_a_secret_is_covered_though_nobody_named_it(words: str) -> None:
    stream = written(secrets=set())
    log.info("%s", words)
    for secret in ("abcd1234efgh5678", "0123456789abcdef", "AAF-abc", "ghijkl", "abcdef123", "1234-5678"):
        assert secret not in stream.getvalue()
    assert "***" in stream.getvalue()


@pytest.mark.rule("RL-32")
def test_of_two_secrets_one_inside_the_other_nothing_is_left() -> None:
    redactor = Redactor()
    redactor.know({"abcd", "abcd-efgh-ijkl"})
    assert redactor.clean("x abcd-efgh-ijkl y abcd z") == "x *** y *** z"


@pytest.mark.rule("RL-32")
def test_a_new_configuration_brings_its_own_secrets() -> None:
    redactor = Redactor()
    redactor.know({"first-secret"})
    redactor.know({"second-secret"})
    assert redactor.clean("second-secret") == "***"


@pytest.mark.rule("RL-32")
@given(st.text(min_size=4), st.text(), st.text())
def test_no_secret_survives_whatever_stands_around_it(secret: str, before: str, behind: str) -> None:
    redactor = Redactor()
    redactor.know({secret})
    assert secret not in redactor.clean(before + secret + behind).replace("***", "") or secret in "***"


def test_strangers_words_stay_on_one_line_and_do_nothing_to_the_terminal() -> None:
    stream = written()
    log.warning("the provider says %s", "well\n2026-01-01 00:00:00 ERROR   forged\x1b[2J\r\u0085")
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


def test_a_json_line_is_one_object_with_a_time_in_utc() -> None:
    stream = written("json")
    try:
        raise ValueError("夢")
    except ValueError:
        log.exception("it broke\nhere")
    line = json.loads(stream.getvalue())
    assert (line["level"], line["message"], line["logger"]) == ("error", "it broke\nhere", __name__)
    assert line["at"].endswith("+00:00")
    assert "ValueError: 夢" in line["traceback"]


def test_the_level_is_kept_and_talkative_libraries_are_quiet() -> None:
    stream = written(level="debug")
    log.debug("shown")
    for name in ("httpx", "openai", "aiohttp.access"):
        logging.getLogger(name).info("GET https://x/?token=1")
    assert stream.getvalue().count("\n") == 1


@pytest.mark.case("CF-02")
def test_a_console_that_cannot_show_a_character_loses_only_that(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(logs.sys, "stderr", io.TextIOWrapper(raw, encoding="cp1252", errors="strict", write_through=True))
    start_logging("info", "text")
    log.info("夢 and café")
    assert raw.getvalue().decode("cp1252").rstrip().endswith("? and café")
