"""The base under every route: security headers, errors without tracebacks, typed bodies, the page's files."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import logging
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientPayloadError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yarl import URL

from gateway.audit import CONSOLE
from gateway.http.base import SECURITY_HEADERS, Body, HttpFault, answer
from gateway.http.fault import too_often
from gateway.language import say
from tests.gateway.web_house import House
from tests.harness import eventually
from tests.patience import patience


async def post(house: House, data: object, headers: dict[str, str] | None = None) -> tuple[int, dict[str, Any]]:
    """A raw body to the sign-in route, which takes bodies of anybody."""
    sent = {"Content-Type": "application/json", **(headers or {})}
    async with house.client.post("/api/session", data=data, headers=sent) as response:
        return response.status, (await response.json())["error"]


@pytest.mark.rule("WO-61", "WO-13")
@pytest.mark.parametrize("path", ["/", "/static/icon.svg", "/api/me", "/api/tokens", "/nowhere", "/login/x", "/static/../x", "/static", "/healthz"])
async def test_everything_that_leaves_carries_the_security_headers(house: House, path: str) -> None:
    async with house.client.get(path, allow_redirects=False) as response:
        assert {name: response.headers.get(name) for name in SECURITY_HEADERS} == SECURITY_HEADERS
        assert response.headers["Cache-Control"] in ("no-store", "no-cache")
    policy = SECURITY_HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy


async def test_the_page_is_at_the_root_and_is_asked_for_anew_by_its_mark(house: House) -> None:
    async with house.client.get("/") as response:
        assert response.status == 200
        assert response.content_type == "text/html"
        assert response.headers["Cache-Control"] == "no-cache"
        mark = response.headers["ETag"]
    async with house.client.get("/", headers={"If-None-Match": mark}) as response:
        assert response.status == 304
    async with house.client.get("/static/theme.js") as response:
        assert response.content_type in ("text/javascript", "application/javascript")


@pytest.mark.case("WP-17", "WP-18")
@pytest.mark.parametrize(
    "path",
    ["/static/..%2f..%2fconfig.py", "/static/%2e%2e/config.py", "/static/..%5c..%5cconfig.py", "/static/%2fetc%2fhosts", "/static//etc/hosts"],
)
async def test_no_path_leads_out_of_the_pages_files(house: House, path: str) -> None:
    async with house.client.session.get(URL(f"http://127.0.0.1:{house.client.port}{path}", encoded=True)) as response:
        assert response.status == 404
        assert b"import" not in await response.read()


@pytest.mark.rule("RL-51")
async def test_a_fault_of_ours_is_logged_and_the_peer_gets_an_id_alone(house: House, caplog: pytest.LogCaptureFixture) -> None:
    headers = await house.bearer(await house.people.create(CONSOLE, name="Ada", role="user"))
    async with house.client.post("/api/broken", headers=headers) as response:
        assert response.status == 500
        text = await response.text()
    fault_id = json.loads(text)["error"]["message"].split()[-1].rstrip(".")
    assert fault_id.startswith("e-")
    assert "sk-TEST-1111" not in text
    assert "Traceback" not in text
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert fault_id in record.getMessage()
    assert record.exc_info
    (noted,) = await eventually(lambda: house.reports.recent_errors(10))
    assert (noted.delivery_id, noted.message) == (fault_id, f"POST /api/broken failed ({fault_id}) (ModelError)")


@pytest.mark.rule("RL-4")
async def test_a_store_that_cannot_be_used_is_a_503_in_the_askers_language(house: House) -> None:
    headers = await house.bearer(await house.people.create(CONSOLE, name="Ada", role="user"))
    async with house.client.post("/api/full", headers={**headers, "Accept-Language": "ja-JP"}) as response:
        assert (response.status, response.headers["Retry-After"]) == (503, "5")
        assert (await response.json())["error"] == {"code": "store", "message": say("ja", "store"), "param": ""}


@pytest.mark.parametrize(("header", "language"), [("ja", "ja"), ("zh-CN,en;q=0.5", "zh"), ("fr", "en"), ("", "en")])
async def test_errors_are_said_in_the_askers_language(house: House, header: str, language: str) -> None:
    async with house.client.get("/api/tokens", headers={"Accept-Language": header}) as response:
        assert (await response.json())["error"]["message"] == say(language, "error_signin")


async def test_a_persons_own_language_comes_before_the_browsers(house: House) -> None:
    ada = await house.people.create(CONSOLE, name="Ada", role="user")
    await house.people.change(CONSOLE, ada.id, language="zh")
    async with house.client.get("/api/operator/people", headers={"Accept-Language": "ja", **await house.bearer(ada)}) as response:
        assert (await response.json())["error"]["message"] == say("zh", "error_forbidden")


async def test_openais_clients_get_openais_shape(house: House) -> None:
    async with house.client.get("/v1/nothing") as response:
        assert response.status == 404
        assert (await response.json())["error"].keys() == {"code", "message", "param", "type"}


def test_the_wait_is_told_in_whole_seconds_rounded_up() -> None:
    assert [too_often(wait_s).headers["Retry-After"] for wait_s in (0.01, 1.0, 1.01, 59.5)] == ["1", "1", "2", "60"]


# -- bodies ------------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "password"]) | st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
DEEP = b'{"name":' + b"[" * 100_000


@pytest.mark.rule("RL-51")
@pytest.mark.parametrize(
    ("raw", "status", "code", "param"),
    [
        pytest.param(b"", 400, "bad_json", "", id="nothing"),
        pytest.param(b"{", 400, "bad_json", "", id="half"),
        pytest.param(b"\xff\xfe", 400, "bad_json", "", id="no UTF-8"),
        pytest.param(b"\xef\xbb\xbf{}", 400, "bad_json", "", id="a byte order mark"),
        pytest.param(b'{"name":"\\ud800","password":"x"}', 400, "bad_json", "", id="half a surrogate pair, escaped"),
        pytest.param(b'{"name":"\xed\xa0\x80","password":"x"}', 400, "bad_json", "", id="half a surrogate pair, raw"),
        pytest.param(DEEP, 400, "bad_json", "", id="too deep"),
        pytest.param(b'{"name":' + b"9" * 5000 + b"}", 400, "bad_json", "", id="too long a number"),
        pytest.param(b"null", 400, "bad_field", "", id="null"),
        pytest.param(b"[]", 400, "bad_field", "", id="a list"),
        pytest.param(b'"name"', 400, "bad_field", "", id="a text"),
        pytest.param(b'{"name":1,"password":"x"}', 400, "bad_field", "name", id="a number for a text"),
        pytest.param(b'{"name":null,"password":"x"}', 400, "bad_field", "name", id="null for a text"),
        pytest.param(b'{"name":"a"}', 400, "bad_field", "password", id="a field is missing"),
        pytest.param(b'{"name":"a","password":"x","evil\\u0000":1}', 400, "bad_field", "evil", id="a field too many"),
        pytest.param(b'{"name":"' + b"a" * 2000 + b'","password":"x"}', 400, "bad_field", "name", id="too long a text"),
        pytest.param(b'{"name":"a\\u0000","password":"\\u0000"}', 401, "wrong_password", "", id="a NUL is dropped"),
        pytest.param(b'{"name":"a","password":"x"}', 401, "wrong_password", "", id="well formed"),
    ],
)
async def test_a_bad_body_is_a_400_that_names_the_fault(house: House, raw: bytes, status: int, code: str, param: str) -> None:
    answered, error = await post(house, raw)
    assert (answered, error["code"], error["param"]) == (status, code, param)


class Sample(Body):
    text: str = ""
    texts: list[str] = []  # noqa: RUF012  # pydantic copies defaults
    named: dict[str, list[str]] = {}  # noqa: RUF012
    day: date | None = None


def test_texts_are_cleaned_wherever_they_lie_and_what_was_not_sent_is_told_apart() -> None:
    sample = Sample.model_validate_json(b'{"text":"a\\u0000b\\r\\nc","texts":["\\u0000"],"named":{"k\\u0000":["\\u0000v"]},"day":"2026-03-14"}')
    assert sample == Sample(text="ab\nc", texts=[""], named={"k": ["v"]}, day=date(2026, 3, 14))
    assert Sample.model_validate_json(b'{"day":null}').model_fields_set == {"day"}


@pytest.mark.rule("RL-51")
async def test_a_body_above_the_limit_is_a_413(house: House) -> None:
    answered, error = await post(house, io.BytesIO(b'{"name":"' + b"a" * (2 << 20)))
    assert (answered, error["code"]) == (413, "too_large")


@pytest.mark.rule("RL-51")
async def test_a_body_that_is_not_what_it_says_is_a_400(house: House) -> None:
    bomb = gzip.compress(b'{"name":"' + b"a" * (50 << 20))
    for raw in (b"this is no gzip", bomb, b"{}"):
        answered, error = await post(house, raw, {"Content-Encoding": "gzip"})
        assert (answered, error["code"]) == (400, "bad_content_type")
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json-patch+json"):
        answered, error = await post(house, b"{}", {"Content-Type": content_type})
        assert (answered, error["code"]) == (400, "bad_content_type")


@pytest.mark.rule("RL-51")
async def test_bytes_that_are_no_request_bring_no_traceback(house: House) -> None:
    ours = f"127.0.0.1:{house.client.port}".encode()
    chunked = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    for raw in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /api/me HTTP/1.1\r\nHost: " + ours + b"\r\nHost: evil.example\r\n\r\n",
        b"POST /api/session HTTP/1.1\r\nHost: " + ours + b"\r\n" + chunked + b"zz\r\nno chunk\r\n",
        b"\0" * 99 + b"\r\n\r\n",
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", house.client.port)
        writer.write(raw)
        writer.write_eof()
        answered = await reader.read()
        assert b"Traceback" not in answered
        assert not answered or answered.split()[1][:1] == b"4", answered
        writer.close()
        await writer.wait_closed()


@pytest.mark.rule("RL-51")
async def test_headers_of_any_bytes_are_no_fault_of_ours(house: House) -> None:
    await house.people.create(CONSOLE, name="Ada", role="user", password="correct horse")
    body = b'{"name":"ada","password":"correct horse"}'
    head = f"POST /api/session HTTP/1.1\r\nHost: 127.0.0.1:{house.client.port}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    for header, expected in [
        (b"User-Agent: \xff\xfe", b"200"),
        (b"Cookie: yumegate_session=\xff", b"200"),
        (b"Authorization: Bearer \xff", b"401"),
        (b"X-CSRF-Token: \xff", b"200"),
        (b"Accept-Language: \xff", b"200"),
        (b"Origin: \xff", b"403"),
        (b"X-Proxy-Secret: \xff", b"403"),
        (b"X-Forwarded-For: \xff", b"200"),
    ]:
        reader, writer = await asyncio.open_connection("127.0.0.1", house.client.port)
        writer.write(head.encode() + header + b"\r\nConnection: close\r\n\r\n" + body)
        answered = await reader.read()
        assert answered.split()[1] == expected, (header, answered)
        writer.close()
        await writer.wait_closed()


@pytest.mark.rule("RL-51")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
async def test_no_body_makes_a_500(house: House, data: bytes) -> None:
    house.clock.advance(hours=1)
    answered, _ = await post(house, data)
    assert answered in (400, 401)


# -- broken off --------------------------------------------------------------------------------------------------------


async def test_an_answer_that_fails_half_way_is_broken_off_not_ended(house: House, caplog: pytest.LogCaptureFixture) -> None:
    ada = await house.people.create(CONSOLE, name="Ada", role="user")
    async with house.client.get("/api/half", headers=await house.bearer(ada)) as response:
        assert response.status == 200
        with pytest.raises(ClientPayloadError):
            await response.read()
    assert any("/api/half failed" in record.getMessage() for record in caplog.records)


async def test_a_peer_that_leaves_is_no_fault(house: House, caplog: pytest.LogCaptureFixture) -> None:
    ada = await house.people.create(CONSOLE, name="Ada", role="user")
    async with house.client.get("/api/endless", headers=await house.bearer(ada)) as response:
        await response.content.read(10)
    async with asyncio.timeout(patience(5)):
        await house.left.wait()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_values_of_ours_become_json(tmp_path: Path) -> None:
    fault = HttpFault(400, "bad_field", "error_bad_field", param="x", field="x", reason="夢")
    assert json.loads(fault.answer("en").text or "") == {"error": {"code": "bad_field", "message": "x: 夢", "param": "x"}}
    assert answer({"at": tmp_path}).body == json.dumps({"at": str(tmp_path)}, separators=(",", ":")).encode()
