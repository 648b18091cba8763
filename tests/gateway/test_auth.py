"""Every way to knock at the door, and what it answers: hosts, origins, tokens, proxies, sign-in and its limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

import pytest
from pydantic import SecretStr

from gateway.audit import CONSOLE
from gateway.config import TrustedProxy, Web
from gateway.http.account import TRIES_PER_ACCOUNT, TRIES_PER_ADDRESS
from gateway.http.auth import COOKIE, OPEN
from gateway.http.reach import check_bind, names, plain_address
from gateway.person import Identity, Person, Role
from tests.gateway.web_house import House

SECRET = "a-long-secret-of-the-proxy"
PROXY = TrustedProxy(header="X-Remote-User", secret=SecretStr(SECRET))


@pytest.fixture
async def ada(house: House) -> Person:
    return await house.people.create(CONSOLE, name="Ada", role="user", password="correct horse")


async def status(house: House, method: str, path: str, headers: Mapping[str, str] | None = None, **more: object) -> int:
    house.client.session.cookie_jar.clear()
    async with house.client.request(method, path, headers=headers, allow_redirects=False, **more) as response:  # type: ignore[arg-type]
        await response.read()
        return response.status


# -- the table of knocks -----------------------------------------------------------------------------------------------

COOKIE_ONLY = {"Cookie": "{cookie}"}
WITH_CSRF = {**COOKIE_ONLY, "X-CSRF-Token": "{csrf}"}
BEARER = {"Authorization": "Bearer {token}"}
OURS = "http://127.0.0.1:{port}"
EVIL = "https://evil.example"

KNOCKS = [
    # method, path, headers, expected
    pytest.param("GET", "/api/tokens", {}, 401, id="nothing"),
    pytest.param("GET", "/api/tokens", COOKIE_ONLY, 200, id="a cookie reads"),
    pytest.param("GET", "/api/tokens", {"Cookie": COOKIE + "=wrong"}, 401, id="a wrong cookie"),
    pytest.param("GET", "/api/tokens", BEARER, 200, id="a token reads"),
    pytest.param("GET", "/api/tokens", {"Authorization": "bearer {token}"}, 200, id="the scheme in lower case"),
    pytest.param("GET", "/api/tokens", {"Authorization": "Bearer wrong"}, 401, id="a wrong token"),
    pytest.param("GET", "/api/tokens", {"Authorization": "Bearer"}, 401, id="an empty token"),
    pytest.param("GET", "/api/tokens", {**COOKIE_ONLY, "Authorization": "Bearer wrong"}, 401, id="a wrong token beside a cookie"),
    pytest.param("GET", "/api/tokens", {**COOKIE_ONLY, "Authorization": "Basic eDp5"}, 200, id="a proxy's own sign-in beside our cookie"),
    pytest.param("GET", "/api/tokens", {"Authorization": "Bearer {session}"}, 401, id="a session's token is no API token"),
    pytest.param("GET", "/api/tokens?token={token}", {}, 401, id="a token in the address opens nothing"),
    pytest.param("POST", "/api/tokens", WITH_CSRF, 201, id="a write with the CSRF token"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": OURS}, 201, id="a write from our page"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Sec-Fetch-Site": "same-origin"}, 201, id="a write from our page, as browsers say it"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": "http://localhost:{port}"}, 201, id="our page under its other name"),
    pytest.param("POST", "/api/tokens", COOKIE_ONLY, 403, id="a write without the CSRF token"),
    pytest.param("POST", "/api/tokens", {**COOKIE_ONLY, "X-CSRF-Token": "wrong"}, 403, id="a wrong CSRF token"),
    pytest.param("POST", "/api/tokens", {**COOKIE_ONLY, "X-CSRF-Token": ""}, 403, id="an empty CSRF token"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": EVIL}, 403, id="a foreign origin"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": "null"}, 403, id="an origin without a name"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": "http://127.0.0.1:1"}, 403, id="another port of this machine"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": "https://127.0.0.1:{port}"}, 403, id="another scheme"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": OURS + ".evil.example"}, 403, id="an origin that begins like ours"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Sec-Fetch-Site": "cross-site"}, 403, id="another site, as browsers say it"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Sec-Fetch-Site": "same-site"}, 403, id="another port, as browsers say it"),
    pytest.param("POST", "/api/tokens", {**WITH_CSRF, "Origin": OURS, "Sec-Fetch-Site": "none"}, 403, id="a write out of nowhere"),
    pytest.param("DELETE", "/api/session", BEARER, 204, id="a token writes without a CSRF token"),
    pytest.param("DELETE", "/api/session", {**BEARER, "Origin": EVIL}, 204, id="a token is nothing that a browser sends by itself"),
    pytest.param("POST", "/api/tokens", BEARER, 403, id="a token makes no further tokens, which would outlive it"),
    pytest.param("POST", "/api/tokens", {}, 401, id="a write of nobody"),
    pytest.param("POST", "/api/tokens", {"Origin": EVIL}, 403, id="a write of nobody from a foreign page"),
    pytest.param("GET", "/api/chats/c-1/events", COOKIE_ONLY, 200, id="a stream"),
    pytest.param("GET", "/api/chats/c-1/events", {**COOKIE_ONLY, "Sec-Fetch-Site": "same-origin"}, 200, id="a stream for our page"),
    pytest.param("GET", "/api/chats/c-1/events", {**COOKIE_ONLY, "Origin": EVIL}, 403, id="a stream for a foreign page"),
    pytest.param("GET", "/api/chats/c-1/events", {**COOKIE_ONLY, "Sec-Fetch-Site": "cross-site"}, 403, id="a stream for another site"),
    pytest.param("GET", "/api/chats/c-1/events", {}, 401, id="a stream for nobody"),
    pytest.param("GET", "/api/me", {"Host": "evil.example"}, 403, id="a foreign host"),
    pytest.param("GET", "/api/me", {"Host": "evil.example:{port}"}, 403, id="a foreign host on our port"),
    pytest.param("GET", "/api/me", {"Host": "127.0.0.1"}, 403, id="our host on another port"),
    pytest.param("GET", "/api/me", {"Host": "localhost:1"}, 403, id="loopback on another port"),
    pytest.param("GET", "/api/me", {"Host": "0.0.0.0:{port}"}, 403, id="the address of every interface is nobody's name"),
    pytest.param("GET", "/api/me", {"Host": "localhost:{port}"}, 200, id="loopback by name"),
    pytest.param("GET", "/api/me", {"Host": "LOCALHOST:{port}"}, 200, id="names have no case"),
    pytest.param("GET", "/api/me", {"Host": "[::1]:{port}"}, 200, id="loopback of IPv6"),
    pytest.param("GET", "/healthz", {"Host": "evil.example"}, 403, id="a foreign host asks for health"),
    pytest.param("GET", "/api/tokens", {**COOKIE_ONLY, "Host": "evil.example"}, 403, id="a foreign host with a cookie"),
    pytest.param("GET", "/api/tokens", {"X-Forwarded-For": "127.0.0.1"}, 401, id="a forwarded header signs nobody in"),
    pytest.param("GET", "/api/tokens", {"X-Remote-User": "Ada"}, 401, id="a name without a proxy"),
    pytest.param("GET", "/api/tokens", {"X-Remote-User": "Ada", "X-Proxy-Secret": ""}, 403, id="an empty secret where none is set"),
    pytest.param("GET", "/api/tokens", {"X-Remote-User": "Ada", "X-Proxy-Secret": SECRET}, 403, id="a secret where none is set"),
    pytest.param("GET", "/api/operator/people", COOKIE_ONLY, 403, id="a user is no operator"),
    pytest.param("GET", "/api/operator/nothing", COOKIE_ONLY, 404, id="an address that does not exist"),
    pytest.param("PUT", "/api/tokens", WITH_CSRF, 405, id="a method that does not exist"),
    pytest.param("GET", "/api/%00", {}, 400, id="a NUL in the path"),
    pytest.param("GET", "/api/me?x=%00", {}, 400, id="a NUL in the query"),
]


@pytest.mark.rule("WO-61")
@pytest.mark.case("WP-12")
@pytest.mark.parametrize(("method", "path", "headers", "expected"), KNOCKS)
async def test_the_door_answers(house: House, ada: Person, method: str, path: str, headers: dict[str, str], expected: int) -> None:
    browser, opened = await house.browser(ada)
    token = (await house.bearer(ada))["Authorization"].removeprefix("Bearer ")
    known = {"cookie": browser["Cookie"], "csrf": opened.csrf, "session": opened.token, "token": token, "port": str(house.client.port)}
    filled = {name: value.format(**known) for name, value in headers.items()}
    body = {"json": {"name": "mine"}} if method == "POST" else {}
    assert await status(house, method, path.format(**known), filled, **body) == expected


@pytest.mark.case("WP-11")
@pytest.mark.rule("WO-61")
async def test_every_route_that_is_not_open_refuses_whoever_is_not_signed_in(house: House) -> None:
    asked = 0
    for route in house.app.router.routes():
        assert route.resource is not None
        canonical = route.resource.canonical
        if ("GET" if route.method == "HEAD" else route.method, canonical) in OPEN:
            continue
        path = re.sub(r"\{[^}]*\}", "1", canonical)
        assert await status(house, route.method, path) == 401, (route.method, path)
        assert await status(house, route.method, path, {"Cookie": f"{COOKIE}=wrong", "X-CSRF-Token": "wrong"}) == 401, (route.method, path)
        assert await status(house, route.method, path, {"Authorization": "Bearer wrong"}) == 401, (route.method, path)
        asked += 1
    assert asked > 20


@pytest.mark.case("WP-11")
@pytest.mark.parametrize("role", ["guest", "user", "admin"])
async def test_operator_routes_are_for_admins_whatever_their_handler_does(house: House, role: Role) -> None:
    headers = await house.bearer(await house.people.create(CONSOLE, name="Someone", role=role))
    for route in house.app.router.routes():
        assert route.resource is not None
        canonical = route.resource.canonical
        if not canonical.startswith("/api/operator/"):
            continue
        answered = await status(house, route.method, re.sub(r"\{[^}]*\}", "1", canonical), headers)
        if role != "admin" or canonical == "/api/operator/model/write":
            assert answered == 403, (route.method, canonical)
        else:
            assert answered in (200, 400, 404), (route.method, canonical, answered)


async def test_a_route_added_later_is_closed_until_it_is_listed(house: House, ada: Person) -> None:
    """The door decides by its list, not by what a handler remembers to check."""
    assert ("POST", "/api/broken") not in OPEN
    assert await status(house, "POST", "/api/broken") == 401
    assert await status(house, "POST", "/api/broken", await house.bearer(ada)) == 500


# -- names -------------------------------------------------------------------------------------------------------------


def test_our_names_are_loopback_the_arrived_at_address_and_the_public_one() -> None:
    ours = names("0.0.0.0", "https://chat.example/yume/", "192.0.2.5", 8420)
    assert ours.hosts == {
        "localhost:8420", "127.0.0.1:8420", "[::1]:8420", "192.0.2.5:8420", "chat.example", "chat.example:443",
    }  # fmt: skip
    assert ours.https_hosts == {"chat.example", "chat.example:443"}
    assert {"https://chat.example", "http://192.0.2.5:8420"} <= ours.origins
    assert not {"http://chat.example", "https://192.0.2.5:8420", "null"} & ours.origins
    assert "chat.example:8443" in names("127.0.0.1", "https://chat.example:8443", "127.0.0.1", 8420).hosts
    assert "chat.example" not in names("127.0.0.1", "https://chat.example:8443", "127.0.0.1", 8420).hosts
    assert {"gate.lan:80", "gate.lan", "[fd00::1]"} <= names("Gate.lan", "", "fd00::1", 80).hosts


async def test_the_public_address_counts_at_once_when_the_configuration_changes(house: House, ada: Person) -> None:
    headers, _ = await house.browser(ada)
    outside = {**headers, "Host": "chat.example", "Origin": "https://chat.example"}
    assert await status(house, "POST", "/api/tokens", outside, json={"name": "x"}) == 403
    house.settings = Web(public_url="https://chat.example")
    assert await status(house, "POST", "/api/tokens", outside, json={"name": "x"}) == 201
    assert await status(house, "POST", "/api/tokens", {**outside, "Origin": "http://chat.example"}, json={"name": "x"}) == 403
    rewritten = {**headers, "Origin": "https://chat.example"}  # by a proxy that gives us its own Host
    assert await status(house, "POST", "/api/tokens", rewritten, json={"name": "x"}) == 201


@pytest.mark.parametrize(
    ("text", "plain"),
    [("127.0.0.1", "127.0.0.1"), ("::ffff:192.0.2.5", "192.0.2.5"), ("fe80::1%eth0", "fe80::1"), ("FE80:0::1", "fe80::1"), ("unknown", ""), ("", "")],
)
def test_an_address_has_one_form(text: str, plain: str) -> None:
    assert plain_address(text) == plain


# -- listening ---------------------------------------------------------------------------------------------------------


@pytest.mark.case("WP-09")
@pytest.mark.rule("WO-60")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_loopback_needs_no_account(host: str) -> None:
    assert check_bind(Web(host=host), has_accounts=False) is None


@pytest.mark.case("WP-09")
@pytest.mark.rule("WO-60")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.5", "gate.lan"])
def test_other_addresses_need_an_account_or_a_trusted_proxy(host: str) -> None:
    refused = check_bind(Web(host=host), has_accounts=False)
    assert refused
    assert host in refused
    assert check_bind(Web(host=host), has_accounts=True) is None
    assert check_bind(Web(host=host, trusted_proxy=PROXY), has_accounts=False) is None


@pytest.mark.rule("WO-60")
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize("proxy", [TrustedProxy(header="X-User"), TrustedProxy(header="X-User", secret=SecretStr("short"))])
def test_a_proxy_without_a_real_secret_is_refused_everywhere(host: str, proxy: TrustedProxy) -> None:
    assert check_bind(Web(host=host, trusted_proxy=proxy), has_accounts=True)


# -- the trusted proxy -------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-60")
async def test_the_proxy_names_the_person_and_their_writes_need_the_csrf_token(house: House, ada: Person) -> None:
    house.settings = Web(trusted_proxy=PROXY)
    through = {"X-Proxy-Secret": SECRET, "X-Remote-User": "ada", "X-Forwarded-For": "203.0.113.7"}
    async with house.client.get("/api/me", headers=through) as response:
        me = await response.json()
    assert me["person"]["id"] == ada.id
    assert await status(house, "POST", "/api/tokens", through, json={"name": "x"}) == 403
    assert await status(house, "POST", "/api/tokens", {**through, "X-CSRF-Token": me["csrf"]}, json={"name": "x"}) == 201
    await house.people.link(CONSOLE, ada.id, Identity(channel="web", account="proxy", platform_user_id="ada@example.com"))
    assert await status(house, "GET", "/api/tokens", {**through, "X-Remote-User": "ada@example.com"}) == 200


@pytest.mark.rule("WO-60")
@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"X-Remote-User": "ada"}, 401),
        ({"X-Remote-User": "ada", "X-Proxy-Secret": "wrong"}, 403),
        ({"X-Remote-User": "ada", "X-Proxy-Secret": ""}, 403),
        ({"X-Remote-User": "nobody", "X-Proxy-Secret": SECRET}, 401),
        ({"X-Remote-User": "", "X-Proxy-Secret": SECRET}, 401),
        ({"X-Proxy-Secret": SECRET}, 401),
    ],
)
async def test_a_name_counts_only_with_the_proxys_secret(house: House, ada: Person, headers: dict[str, str], expected: int) -> None:
    house.settings = Web(trusted_proxy=PROXY)
    assert await status(house, "GET", "/api/tokens", headers) == expected


@pytest.mark.rule("WO-60")
async def test_whom_the_proxy_does_not_know_gets_in_by_no_older_cookie(house: House, ada: Person) -> None:
    house.settings = Web(trusted_proxy=PROXY)
    headers, _ = await house.browser(ada)
    assert await status(house, "GET", "/api/tokens", headers) == 200
    assert await status(house, "GET", "/api/tokens", {**headers, "X-Proxy-Secret": SECRET, "X-Remote-User": "nobody"}) == 401


# -- signing in --------------------------------------------------------------------------------------------------------


async def sign_in(house: House, name: str = "Ada", password: str = "correct horse", headers: Mapping[str, str] | None = None) -> int:
    return await status(house, "POST", "/api/session", headers, json={"name": name, "password": password})


@pytest.mark.rule("WO-61")
async def test_signing_in_and_out_by_password(house: House, ada: Person) -> None:
    async with house.client.post("/api/session", json={"name": "ada", "password": "correct horse"}) as response:
        assert (await response.json())["person"]["id"] == ada.id
        cookie = response.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert "Secure" not in cookie
    async with house.client.get("/api/me") as response:
        me = await response.json()
    assert me["person"] == {"id": ada.id, "name": "Ada", "role": "user", "language": "", "timezone": "", "has_password": True}
    old = house.client.session.cookie_jar.filter_cookies(house.client.make_url("/"))[COOKIE].value
    async with house.client.delete("/api/session", headers={"X-CSRF-Token": me["csrf"]}) as response:
        assert response.status == 204
    assert await status(house, "GET", "/api/tokens", {"Cookie": f"{COOKIE}={old}"}) == 401


@pytest.mark.rule("WO-61")
async def test_the_cookie_is_for_tls_alone_where_the_browser_uses_it(house: House, ada: Person) -> None:
    house.settings = Web(public_url="https://chat.example")
    for headers, secure in [({"Host": "chat.example"}, True), ({}, False)]:
        async with house.client.post("/api/session", json={"name": "ada", "password": "correct horse"}, headers=headers) as response:
            assert ("Secure" in response.headers["Set-Cookie"]) is secure
        house.client.session.cookie_jar.clear()


@pytest.mark.case("WP-10")
async def test_nobody_signs_in_to_an_account_without_a_password(house: House) -> None:
    await house.people.ensure_owner()
    for forwarded in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Real-IP": "127.0.0.1"}):
        assert await sign_in(house, "Owner", "", forwarded) == 401


@pytest.mark.rule("WO-61")
async def test_an_account_is_tried_a_few_times_and_then_waits(house: House, ada: Person) -> None:
    for _ in range(TRIES_PER_ACCOUNT):
        assert await sign_in(house, password="wrong horse") == 401
    async with house.client.post("/api/session", json={"name": "ADA ", "password": "correct horse"}) as response:
        assert response.status == 429
        assert response.headers["Retry-After"] == "900"
        assert (await response.json())["error"]["code"] == "too_often"
    house.clock.advance(minutes=15)
    assert await sign_in(house) == 200
    assert await sign_in(house, password="wrong horse") == 401  # and the count began anew


@pytest.mark.rule("WO-61")
async def test_a_hundred_tries_at_once_are_no_more_than_the_limit(house: House, ada: Person) -> None:
    results = await asyncio.gather(*(sign_in(house, password="wrong horse") for _ in range(60)))
    assert results.count(401) == TRIES_PER_ACCOUNT


@pytest.mark.rule("WO-61")
@pytest.mark.case("WP-10")
async def test_an_address_tries_many_names_and_then_waits_whatever_it_says_it_is(house: House, ada: Person) -> None:
    for number in range(TRIES_PER_ADDRESS):
        assert await sign_in(house, f"name {number}", headers={"X-Forwarded-For": f"203.0.113.{number}"}) == 401
    assert await sign_in(house, "another name", headers={"X-Forwarded-For": "203.0.113.99"}) == 429


@pytest.mark.rule("WO-60", "WO-61")
async def test_behind_the_trusted_proxy_each_address_is_counted_for_itself(house: House, ada: Person) -> None:
    house.settings = Web(trusted_proxy=PROXY)
    for number in range(TRIES_PER_ADDRESS + 5):
        forwarded = {"X-Proxy-Secret": SECRET, "X-Forwarded-For": f"6.6.6.6, 203.0.113.{number}"}
        assert await sign_in(house, f"name {number}", headers=forwarded) == 401
    for number in range(TRIES_PER_ADDRESS):  # of a list, what the peer itself claimed counts for nothing
        forwarded = {"X-Proxy-Secret": SECRET, "X-Forwarded-For": f"6.6.6.{number}, 198.51.100.1"}
        assert await sign_in(house, f"other {number}", headers=forwarded) == 401
    assert await sign_in(house, "more", headers={"X-Proxy-Secret": SECRET, "X-Forwarded-For": "6.6.6.99, 198.51.100.1"}) == 429


@pytest.mark.rule("WO-61")
async def test_a_login_link_signs_in_once(house: House, ada: Person) -> None:
    code = await house.links.make(CONSOLE, ada.id)
    assert await status(house, "HEAD", f"/login/{code}") == 405  # looking is not using
    async with house.client.get(f"/login/{code}", allow_redirects=False) as response:
        assert (response.status, response.headers["Location"], response.headers["Cache-Control"]) == (303, "/", "no-store")
        assert "SameSite=Strict" in response.headers["Set-Cookie"]
    async with house.client.get("/api/me") as response:
        assert (await response.json())["person"]["id"] == ada.id
    async with house.client.get(f"/login/{code}", allow_redirects=False) as response:
        assert (response.status, response.headers["Location"]) == (303, "/#/signin?error=link")
        assert "Set-Cookie" not in response.headers


# -- one's own account -------------------------------------------------------------------------------------------------


async def test_signed_out_the_page_learns_what_it_needs_and_nothing_more(house: House) -> None:
    async with house.client.get("/api/me", headers={"Accept-Language": "ja"}) as response:
        me = await response.json()
    assert me["person"] is None
    assert me["csrf"] == ""
    assert me["commands"] == [{"name": "help", "args": "", "help": "ja"}]
    assert set(me) == {"person", "csrf", "guests", "model", "limits", "version", "commands", "characters", "inspects"}
    assert me["inspects"] is False
    assert me["model"] == {"name": "tiny", "provider": "demo", "demo": True, "sees_images": False}


async def test_a_person_changes_what_is_theirs(house: House, ada: Person) -> None:
    headers, _ = await house.browser(ada)
    async with house.client.patch("/api/me", headers=headers, json={"language": "ja", "timezone": "Asia/Tokyo", "name": "Ada L."}) as response:
        assert (await response.json())["person"] == {
            "id": ada.id, "name": "Ada L.", "role": "user", "language": "ja", "timezone": "Asia/Tokyo", "has_password": True,
        }  # fmt: skip
    for wrong in ({"timezone": "Moon/Sea"}, {"language": "fr"}, {"name": " "}, {"role": "owner"}):
        async with house.client.patch("/api/me", headers=headers, json=wrong) as response:
            assert (response.status, (await response.json())["error"]["param"]) == (400, *wrong)


async def test_a_new_password_needs_the_old_one_and_ends_the_other_sessions(house: House, ada: Person) -> None:
    headers, _ = await house.browser(ada)
    other, _ = await house.browser(ada)
    for body in ({"password": "battery staple"}, {"password": "battery staple", "current_password": "wrong horse"}):
        async with house.client.patch("/api/me", headers=headers, json=body) as response:
            assert (response.status, (await response.json())["error"]["param"]) == (400, "current_password")
    async with house.client.patch("/api/me", headers=headers, json={"password": "short", "current_password": "correct horse"}) as response:
        assert (response.status, (await response.json())["error"]["param"]) == (400, "password")
    assert await status(house, "PATCH", "/api/me", headers, json={"password": "battery staple", "current_password": "correct horse"}) == 200
    assert await status(house, "GET", "/api/tokens", headers) == 200
    assert await status(house, "GET", "/api/tokens", other) == 401
    assert await sign_in(house, password="battery staple") == 200


async def test_a_leaked_api_token_cannot_give_itself_a_first_password(house: House) -> None:
    owner = await house.people.ensure_owner()
    assert await status(house, "PATCH", "/api/me", await house.bearer(owner), json={"password": "battery staple"}) == 403
    headers, _ = await house.browser(owner)
    assert await status(house, "PATCH", "/api/me", headers, json={"password": "battery staple"}) == 200


async def test_a_persons_tokens_are_theirs_alone(house: House, ada: Person) -> None:
    headers, _ = await house.browser(ada)
    async with house.client.post("/api/tokens", headers=headers, json={"name": "a script"}) as response:
        made = await response.json()
    assert await status(house, "GET", "/api/tokens", {"Authorization": f"Bearer {made['token']}"}) == 200
    async with house.client.get("/api/tokens", headers=headers) as response:
        listed = await response.json()
    assert [(token["id"], token["name"], "token" in token) for token in listed["tokens"]] == [(made["id"], "a script", False)]
    stranger = await house.bearer(await house.people.create(CONSOLE, name="Ben", role="owner"))
    assert await status(house, "DELETE", f"/api/tokens/{made['id']}", stranger) == 404
    assert await status(house, "DELETE", f"/api/tokens/{made['id']}", headers) == 204
    assert await status(house, "GET", "/api/tokens", {"Authorization": f"Bearer {made['token']}"}) == 401


def test_the_open_routes_are_few_and_known() -> None:
    assert sorted(path for _, path in OPEN) == [
        "/", "/api/guest", "/api/me", "/api/session", "/control", "/healthz", "/login/{code}", "/metrics", "/readyz", "/static",
    ]  # fmt: skip
