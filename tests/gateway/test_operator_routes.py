"""The operator's routes: people, audit, jobs, usage, and setting up a model."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from agent.errors import ContextOverflow, Misfit, ModelBroken, ModelBusy, ModelMisconfigured, NoRoom
from agent.llm.complaint import read_complaint
from agent.llm.faults import fault
from gateway.audit import CONSOLE
from gateway.config import Web
from gateway.config.env import read_secrets
from gateway.http.model_setup import Endpoint, config_lines, find_local
from gateway.language import catalogue
from gateway.person import Identity, Person
from gateway.secret_file import put_secret
from memory.schema import model_calls
from tests.gateway.web_house import START, House

pytestmark = pytest.mark.rule("WO-30")


@pytest.fixture
async def owner(house: House) -> Person:
    return await house.people.ensure_owner()


@pytest.fixture
async def admin(house: House, owner: Person) -> Person:
    return await house.people.create(CONSOLE, name="Admin", role="admin")


async def ask(house: House, person: Person, method: str, path: str, **more: Any) -> tuple[int, Any]:
    async with house.client.request(method, path, headers=await house.bearer(person), **more) as response:
        return response.status, await response.json() if response.status != 204 else None


# -- people ------------------------------------------------------------------------------------------------------------


async def test_operators_see_people_with_their_identities(house: House, owner: Person, admin: Person) -> None:
    await house.people.link(CONSOLE, admin.id, Identity(channel="telegram", account="main", platform_user_id="700666", name="adm"))
    status, answered = await ask(house, admin, "GET", "/api/operator/people")
    assert status == 200
    (shown,) = [one for one in answered["people"] if one["id"] == admin.id]
    assert shown == {
        "id": admin.id, "name": "Admin", "role": "admin", "blocked": False, "has_password": False, "subscriber_until": None,
        "identities": [{"channel": "telegram", "account": "main", "platform_user_id": "700666", "name": "adm"}], "created_at": "2026-03-14T09:26:53Z",
    }  # fmt: skip


@pytest.mark.rule("CH-118")
async def test_an_owner_makes_and_changes_people(house: House, owner: Person) -> None:
    status, ben = await ask(house, owner, "POST", "/api/operator/people", json={"name": " Ben\u202e ", "role": "admin", "password": "correct horse"})
    assert (status, ben["name"], ben["role"], ben["has_password"]) == (201, "Ben", "admin", True)
    assert await house.people.sign_in("ben", "correct horse")
    change = {"role": "user", "subscriber_until": "2027-01-31"}
    status, ben = await ask(house, owner, "PATCH", f"/api/operator/people/{ben['id']}", json=change)
    assert (status, ben["role"], ben["subscriber_until"]) == (200, "user", "2027-01-31")
    status, ben = await ask(house, owner, "PATCH", f"/api/operator/people/{ben['id']}", json={"subscriber_until": None})
    assert (status, ben["role"], ben["subscriber_until"]) == (200, "user", None)


@pytest.mark.rule("CH-118")
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "bad_field"),
        ({"name": "", "role": "user"}, 400, "bad_field"),
        ({"name": "\u200b\u2066", "role": "user"}, 400, "bad_field"),
        ({"name": "x" * 81, "role": "user"}, 400, "bad_field"),
        ({"name": "Ben", "role": "king"}, 400, "bad_field"),
        ({"name": "Ben", "role": "user", "password": "short"}, 400, "password_short"),
        ({"name": "Ben", "role": "user", "scope": "root"}, 400, "bad_field"),
        ({"name": "ｃａｒａ", "role": "user", "password": "correct horse"}, 409, "name_taken"),
    ],
)
async def test_a_person_who_cannot_be_is_refused(house: House, owner: Person, body: dict[str, object], status: int, code: str) -> None:
    await house.people.create(CONSOLE, name="Cara", role="user", password="correct horse")
    answered = await ask(house, owner, "POST", "/api/operator/people", json=body)
    assert (answered[0], answered[1]["error"]["code"]) == (status, code)
    assert len(await house.people.everybody()) == 2


@pytest.mark.rule("CH-118")
async def test_an_admin_rules_users_and_cannot_rise(house: House, owner: Person, admin: Person) -> None:
    ben = await house.people.create(CONSOLE, name="Ben", role="user")
    other = await house.people.create(CONSOLE, name="Other", role="admin")
    people = "/api/operator/people"
    assert (await ask(house, admin, "POST", people, json={"name": "New", "role": "user"}))[0] == 201
    assert (await ask(house, admin, "PATCH", f"{people}/{ben.id}", json={"blocked": True}))[0] == 200
    assert (await ask(house, admin, "PATCH", f"{people}/{ben.id}", json={"blocked": False, "role": "user"}))[0] == 200
    assert (await ask(house, admin, "POST", f"{people}/{ben.id}/login-link"))[0] == 200
    for method, path, body in [
        ("POST", people, {"name": "New", "role": "admin"}),
        ("POST", people, {"name": "New", "role": "owner"}),
        ("PATCH", f"{people}/{ben.id}", {"role": "admin"}),
        ("PATCH", f"{people}/{admin.id}", {"role": "owner"}),
        ("PATCH", f"{people}/{owner.id}", {"password": "correct horse"}),
        ("PATCH", f"{people}/{other.id}", {"blocked": True}),
        ("POST", f"{people}/{owner.id}/login-link", None),
        ("POST", f"{people}/{other.id}/login-link", None),
        ("POST", "/api/operator/model/write", {"base_url": "http://127.0.0.1:1/v1", "name": "x"}),
    ]:
        assert (await ask(house, admin, method, path, json=body))[0] == 403, (method, path, body)
    assert {person.role for person, _ in await house.people.everybody() if person.name == "New"} == {"user"}


@pytest.mark.rule("CH-118", "CH-121")
async def test_the_last_owner_stays_and_a_block_holds_at_once(house: House, owner: Person) -> None:
    people = "/api/operator/people"
    status, answered = await ask(house, owner, "PATCH", f"{people}/{owner.id}", json={"role": "user"})
    assert (status, answered["error"]["code"]) == (409, "last_owner")
    ben = await house.people.create(CONSOLE, name="Ben", role="user")
    headers = await house.bearer(ben)
    async with house.client.get("/api/tokens", headers=headers) as response:
        assert response.status == 200
    assert (await ask(house, owner, "PATCH", f"{people}/{ben.id}", json={"blocked": True}))[0] == 200
    async with house.client.get("/api/tokens", headers=headers) as response:
        assert response.status == 401
    assert (await ask(house, owner, "POST", f"{people}/{ben.id}/login-link"))[0] == 403
    assert (await ask(house, owner, "PATCH", f"{people}/p-nobody", json={"blocked": True}))[0] == 404


@pytest.mark.rule("WO-61")
async def test_a_login_link_leads_to_the_public_address_where_there_is_one(house: House, owner: Person) -> None:
    status, answered = await ask(house, owner, "POST", f"/api/operator/people/{owner.id}/login-link")
    assert status == 200
    assert answered["url"].startswith(f"http://127.0.0.1:{house.client.port}/login/")
    house.settings = Web(public_url="https://chat.example/")
    _, answered = await ask(house, owner, "POST", f"/api/operator/people/{owner.id}/login-link")
    assert answered["url"].startswith("https://chat.example/login/")


# -- audit -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-64", "CH-121")
async def test_every_operator_action_is_in_the_audit_log_without_secrets(house: House, owner: Person) -> None:
    _, ben = await ask(house, owner, "POST", "/api/operator/people", json={"name": "Ben", "role": "user", "password": "correct horse"})
    await ask(house, owner, "PATCH", f"/api/operator/people/{ben['id']}", json={"role": "admin"})
    _, link = await ask(house, owner, "POST", f"/api/operator/people/{ben['id']}/login-link")
    await ask(house, owner, "POST", "/api/operator/jobs/7/run")
    wish = {"base_url": "http://127.0.0.1:1/v1", "api_key": "sk-TEST-1111", "name": "tiny"}
    await ask(house, owner, "POST", "/api/operator/model/write", json=wish)
    _, answered = await ask(house, owner, "GET", "/api/operator/audit?limit=50")
    entries = [entry for entry in answered["entries"] if entry["actor"] == owner.id]
    assert [(entry["action"], entry["target"]) for entry in entries] == [
        ("model.write", "secrets.env"),
        ("job.run", "dream root 2026-03-13"),
        ("login_link.make", ben["id"]),
        ("person.change", ben["id"]),
        ("person.create", ben["id"]),
    ]
    assert all(entry["address"] == "127.0.0.1" and entry["at"] == "2026-03-14T09:26:53Z" for entry in entries)
    assert entries[0]["after"] == {"base_url": "http://127.0.0.1:1/v1", "name": "tiny", "secret_name": "YUMEGATE_MODEL_KEY", "api_key": "***"}
    assert (entries[3]["before"], entries[3]["after"]) == ({"role": "user"}, {"role": "admin"})
    text = json.dumps(answered)
    for secret in ("sk-TEST-1111", "correct horse", "argon2", link["url"].rsplit("/", 1)[1]):
        assert secret not in text
    _, answered = await ask(house, owner, "GET", "/api/operator/audit?limit=2")
    assert len(answered["entries"]) == 2


# -- what runs ---------------------------------------------------------------------------------------------------------


async def test_overview_jobs_and_configuration_have_the_documented_form(house: House, admin: Person) -> None:
    status, overview = await ask(house, admin, "GET", "/api/operator/overview")
    assert status == 200
    assert set(overview) == {"version", "uptime_s", "ready", "channels", "model", "jobs", "inbox", "outbox", "config", "errors"}
    assert overview["channels"] == [
        {
            "channel": "web", "account": "main", "state": "ready", "reason": "", "proven_at": "2026-03-14T09:00:00Z", "last_in": None,
            "last_out": None, "backlog": 0, "oldest_waiting_s": None, "gate_until": None, "last_error": "", "last_error_delivery": "", "login": False,
        }
    ]  # fmt: skip
    assert (overview["jobs"], overview["config"]["faults"]) == ({"waiting": 1, "running": 0, "parked": 0}, [])
    _, jobs = await ask(house, admin, "GET", "/api/operator/jobs")
    assert set(jobs["jobs"][0]) == {"id", "kind", "key", "scope", "state", "attempts", "not_before", "error_class", "error", "result", "updated_at"}
    assert jobs["schedule"] == [{"kind": "dream", "scope": "root", "next_run": "2026-03-15T09:00:00Z", "zone": "Asia/Tokyo"}]
    assert (await ask(house, admin, "GET", "/api/operator/jobs?state=waiting"))[1]["jobs"] == []
    assert (await ask(house, admin, "GET", "/api/operator/jobs?state=mad"))[0] == 400
    assert (await ask(house, admin, "GET", "/api/operator/config"))[1]["effective"] == {"model": {"api_key": "***"}}


@pytest.mark.parametrize(
    ("job_id", "expected"), [("7", 200), ("8", 404), ("x", 404), ("-7", 404), ("9" * 30, 404), ("７", 404), ("9223372036854775808", 404)]
)
async def test_a_job_is_run_by_its_number_alone(house: House, admin: Person, job_id: str, expected: int) -> None:
    assert (await ask(house, admin, "POST", f"/api/operator/jobs/{job_id}/run"))[0] == expected
    assert house.operating.runs == ([7] if expected == 200 else [])


async def test_usage_and_deliveries_come_from_the_tables(house: House, admin: Person) -> None:
    row = {"purpose": "reply", "model": "tiny", "outcome": "ok", "at": START, "person_id": admin.id, "channel": "web", "input_tokens": 9, "cost": 0.5}
    await house.db.write(lambda connection: connection.execute(model_calls.insert(), row).close())
    _, usage = await ask(house, admin, "GET", "/api/operator/usage?days=1")
    assert usage["rows"] == [
        {
            "day": "2026-03-14", "person": "Admin", "channel": "web", "purpose": "reply", "model": "tiny", "calls": 1, "failed": 0,
            "input_tokens": 9, "output_tokens": 0, "cached_tokens": 0, "cost": 0.5,
        }
    ]  # fmt: skip
    for days, expected in [("0", 200), ("-5", 200), ("99999999", 200), ("x", 400), ("", 400), ("1.5", 400), ("9" * 99, 400)]:
        assert (await ask(house, admin, "GET", f"/api/operator/usage?days={days}"))[0] == expected, days
    assert (await ask(house, admin, "GET", "/api/operator/deliveries/d-none"))[0] == 404


# -- setting up a model ------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-3")
async def test_trying_a_model_shows_the_answer_or_the_exact_error(house: House, admin: Person) -> None:
    wish = {"base_url": "http://127.0.0.1:1/v1", "api_key": "sk-TEST-1111", "name": "tiny"}
    assert await ask(house, admin, "POST", "/api/operator/model/test", json=wish) == (
        200, {"ok": True, "answer": "hello from tiny", "error": "", "advice": ""},
    )  # fmt: skip

    def refuse(endpoint: Endpoint) -> str:
        raise ModelMisconfigured("401 from the endpoint", excerpt=f"Incorrect API key provided: {endpoint.api_key}")

    house.probe = refuse
    _, answered = await ask(house, admin, "POST", "/api/operator/model/test", json=wish)
    assert answered == {
        "ok": False, "answer": "", "error": "401 from the endpoint: Incorrect API key provided: ***",
        "advice": "The endpoint refuses the request, and says why below.",
    }  # fmt: skip
    assert not house.secrets_file.exists()


@pytest.mark.rule("WO-3")
@pytest.mark.parametrize(
    ("language", "address", "model"),
    [
        ("en", "A server answers, but has nothing at this address.", "The endpoint answers, but knows no model of this name."),
        ("ja", "サーバーは応答しますが、このアドレスには何もありません。", "接続先は応答しますが、その名前のモデルはありません。"),
        ("zh", "服务器有回应，但这个地址下没有内容。", "对方有回应，但没有这个名称的模型。"),
    ],
)
async def test_a_refusal_is_told_in_plain_words_that_name_no_key_of_the_file(
    house: House, admin: Person, language: str, address: str, model: str
) -> None:
    await house.people.change(CONSOLE, admin.id, language=language)
    wish = {"base_url": "http://127.0.0.1:1/v1", "name": "tiny"}
    for body, told in (("<html>404 page not found</html>", address), ('{"error": {"message": "model "tiny" not found"}}', model)):

        def refuse(_: Endpoint, body: str = body) -> str:
            raise fault(404, read_complaint(body), {}, secrets=())

        house.probe = refuse
        _, answered = await ask(house, admin, "POST", "/api/operator/model/test", json=wish)
        assert answered["advice"].startswith(told)
        assert not [word for word in ("base_url", "api_key", "nothing answers") if word in answered["advice"] + answered["error"]]


async def test_every_refusal_of_a_model_has_its_advice() -> None:
    kinds = {ModelBusy.code, ModelBroken.code, ContextOverflow.code, NoRoom.code, ModelMisconfigured.code, *Misfit, "slow"}
    assert {key.removeprefix("try_") for key in catalogue("en") if key.startswith("try_")} == kinds


@pytest.mark.rule("WO-3")
@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "file:///etc/passwd"}, {"base_url": ""}, {"base_url": "http://"}, {"base_url": "http://x/${HOME}"}, {"name": " "},
        {"name": "${HOME}"}, {"api_key": "a b"}, {"api_key": "a\nEVIL=1"}, {"api_key": '"quoted"'}, {"api_key": "${HOME}"}, {"api_key": 5},
    ],
    ids=str,
)  # fmt: skip
async def test_an_endpoint_that_cannot_be_is_refused(house: House, owner: Person, wrong: dict[str, object]) -> None:
    wish = {"base_url": "http://127.0.0.1:1/v1", "api_key": "sk-TEST-1111", "name": "tiny", **wrong}
    for action in ("test", "write"):
        status, answered = await ask(house, owner, "POST", f"/api/operator/model/{action}", json=wish)
        assert (status, answered["error"]["param"]) == (400, next(iter(wrong)))
    assert not house.secrets_file.exists()


@pytest.mark.rule("WO-3")
async def test_the_owner_writes_the_key_beside_the_configuration_never_into_it(house: House, owner: Person) -> None:
    wish = {"base_url": "https://api.example/v1", "api_key": "sk-TEST-1111", "name": 'a "name"'}
    status, answered = await ask(house, owner, "POST", "/api/operator/model/write", json=wish)
    assert (status, answered["secret_name"], answered["path"]) == (200, "YUMEGATE_MODEL_KEY", str(house.secrets_file))
    assert stat.S_IMODE(house.secrets_file.stat().st_mode) == 0o600
    assert read_secrets(house.secrets_file) == ({"YUMEGATE_MODEL_KEY": "sk-TEST-1111"}, [])
    written = json.loads("{" + "\n".join(answered["lines"]) + "}")
    assert written == {"model": {"provider": "openai", "base_url": "https://api.example/v1", "name": 'a "name"', "api_key": "${YUMEGATE_MODEL_KEY}"}}
    house.secrets_file.unlink()
    _, answered = await ask(house, owner, "POST", "/api/operator/model/write", json={"base_url": "http://127.0.0.1:1/v1", "name": "local"})
    assert answered["secret_name"] == ""
    assert not house.secrets_file.exists()
    assert json.loads("{" + "\n".join(answered["lines"]) + "}") == {
        "model": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "local"}
    }


def test_the_lines_for_the_configuration_are_indented_as_in_the_file() -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:1/v1", name="夢")
    assert config_lines(endpoint, "") == [
        '  "model": {', '    "provider": "openai",', '    "base_url": "http://127.0.0.1:1/v1",', '    "name": "夢"', "  }",
    ]  # fmt: skip


@pytest.mark.rule("WO-3")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "KEY=new\n"),
        ("", "KEY=new\n"),
        ("# mine\nOTHER='a b'\nKEY=old\n", "# mine\nOTHER='a b'\nKEY=new\n"),
        ("export KEY = old\r\nLAST=1", "LAST=1\nKEY=new\n"),
        ("KEYS=1\n#KEY=old\nKEY=old\nKEY=older\n", "KEYS=1\n#KEY=old\nKEY=new\n"),
        ("夢=1\n", "夢=1\nKEY=new\n"),
    ],
)
def test_a_secret_is_set_and_every_other_line_kept(tmp_path: Path, before: str | None, after: str) -> None:
    path = tmp_path / "secrets.env"
    if before is not None:
        path.write_text(before, encoding="utf-8", newline="")
        path.chmod(0o644)
    put_secret(path, "KEY", "new")
    assert path.read_bytes().decode() == after
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [other.name for other in tmp_path.iterdir()] == ["secrets.env"]


async def test_a_file_of_secrets_that_cannot_be_written_is_said_and_left_alone(house: House, owner: Person) -> None:
    house.secrets_file.write_bytes(b"\xff\xfe broken")
    wish = {"base_url": "https://api.example/v1", "api_key": "sk-TEST-1111", "name": "tiny"}
    status, answered = await ask(house, owner, "POST", "/api/operator/model/write", json=wish)
    assert (status, answered["error"]["code"]) == (503, "cannot_write")
    assert house.secrets_file.read_bytes() == b"\xff\xfe broken"


@pytest.fixture
async def local_servers() -> AsyncIterator[list[int]]:
    """A model server, one that answers nonsense, one that redirects away, one that never answers: their ports."""

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "tiny", "object": "model"}, {"id": "夢-7b"}]})

    async def nonsense(request: web.Request) -> web.Response:
        return web.Response(text="<html>" + "x" * 1_000_000)

    async def away(request: web.Request) -> web.Response:
        raise web.HTTPFound("http://127.0.0.1:1/v1/models")

    async def silence(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await request.read()
        return response

    servers: list[TestServer] = []
    for handler in (models, nonsense, away, silence):
        app = web.Application()
        app.router.add_get("/v1/models", handler)
        servers.append(TestServer(app))
        await servers[-1].start_server()
    yield [server.port or 0 for server in servers]
    for server in servers:
        await server.close()


@pytest.mark.rule("WO-3")
async def test_a_local_server_is_found_and_everything_else_passed_over(local_servers: list[int], unused_tcp_port: int) -> None:
    found = await find_local([*local_servers, unused_tcp_port], timeout_s=2)
    assert [(server.base_url, server.models) for server in found] == [(f"http://127.0.0.1:{local_servers[0]}/v1", ("tiny", "夢-7b"))]


async def test_no_local_server_is_an_empty_list(house: House, admin: Person) -> None:
    assert await ask(house, admin, "GET", "/api/operator/model/local") == (200, {"servers": []})
