"""The command line as an operator runs it: child processes on a real console, a real gateway, real exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.harness import eventually
from tests.peers.model.replies import Hang, delta, stream, text
from tests.peers.model.server import FakeModel

ROOT = Path(__file__).resolve().parents[2]
MARK = "marker-secret-of-the-tests"
LIMIT_S = 60.0


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", **more}


def config_file(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    base: dict[str, Any] = {"agent_workspace": "workspace", "timezone": "UTC", "channels": {"web": {"port": 0}}}
    path.write_text(json.dumps({**base, **config}, ensure_ascii=False), encoding="utf-8")
    path.chmod(0o600)
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        return self.out.splitlines()[-1]


async def start(*words: str, env: Mapping[str, str] | None = None, **more: Any) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *words, cwd=more.pop("cwd", "/"), env=environment(**(env or {})), stdin=PIPE, stdout=PIPE, stderr=PIPE, **more
    )  # fmt: skip


async def yumegate(*words: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Result:
    process = await start(*words, env=env)
    async with asyncio.timeout(LIMIT_S):
        out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    encoding = (env or {}).get("PYTHONIOENCODING", "utf-8")
    result = Result(code=process.returncode, out=out.decode(encoding), err=err.decode(encoding))
    assert "Traceback" not in result.err, result.err
    assert MARK not in result.out + result.err
    return result


@dataclass(slots=True, kw_only=True)
class Child:
    """A gateway that runs in a process of its own."""

    process: Process
    url: str
    login_link: str
    config: Path
    err: list[str]


@asynccontextmanager
async def gateway(config: Path, *, env: Mapping[str, str] | None = None) -> AsyncIterator[Child]:
    process = await start("run", "--config", str(config), env=env)
    assert process.stdout is not None and process.stderr is not None
    told: list[str] = []
    written: list[str] = []

    async def read_errors() -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            written.append(line.decode())

    async with asyncio.TaskGroup() as group:
        group.create_task(read_errors())
        try:
            async with asyncio.timeout(LIMIT_S):
                while "/login/" not in "".join(told):
                    line = await process.stdout.readline()
                    assert line, "".join(written)
                    told.append(line.decode())
            page, link = (re.search(r"http\S+", line) for line in told[-2:])
            assert page is not None and link is not None
            yield Child(process=process, url=page[0], login_link=link[0], config=config, err=written)
        finally:
            if process.returncode is None:
                process.terminate()
            async with asyncio.timeout(LIMIT_S):
                await process.wait()
    assert process.returncode in (0, -signal.SIGKILL), "".join(written)
    assert MARK not in "".join(written) + "".join(told)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a gateway that was set up once: a migrated database to copy."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
async def ready(tmp_path: Path, store: Path) -> Path:
    """A configuration whose database exists already, so that no command pays for the migration."""
    config = config_file(tmp_path)
    database = store / "yumegate.db"
    if not database.exists():
        made = await yumegate("job", "list", "--config", str(config))
        assert (made.code, made.out) == (0, "no jobs\n")
        database.write_bytes((tmp_path / "workspace" / ".yumegate" / "yumegate.db").read_bytes())
    data = tmp_path / "workspace" / ".yumegate"
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    (tmp_path / "workspace").chmod(0o700)
    target = data / "yumegate.db"
    target.write_bytes(database.read_bytes())
    target.chmod(0o600)
    return config


# -- check -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-32")
async def test_check_says_that_a_good_file_is_in_order(tmp_path: Path) -> None:
    config = config_file(tmp_path)
    result = await yumegate("check", "--config", str(config))
    assert (result.code, result.out, result.err) == (0, f"{config}: in order\n", "")
    assert not (tmp_path / "workspace").exists()  # it only looks


@pytest.mark.rule("WO-32")
async def test_check_names_every_fault_with_its_place_and_fails(tmp_path: Path) -> None:
    config = config_file(tmp_path, agent_max_context_turns=0, log={"level": "loud"})
    result = await yumegate("check", "--config", str(config))
    assert result.code == 78
    assert "config.json:1:" in result.err and "agent_max_context_turns" in result.err and "log.level" in result.err
    assert "in order" not in result.out


@pytest.mark.rule("WO-32")
async def test_check_fails_on_an_unknown_key_that_a_start_forgives(tmp_path: Path) -> None:
    result = await yumegate("check", "--config", str(config_file(tmp_path, agent_max_contxt_turns=5)))
    assert result.code == 1
    assert "agent_max_contxt_turns" in result.err and "agent_max_context_turns" in result.err


@pytest.mark.parametrize("command", ["check", "run", "login-link", "doctor"])
@pytest.mark.parametrize("content", [None, "{", "[]", '{"log": 5}'])
async def test_an_unusable_file_ends_every_command_with_78_or_a_failure(tmp_path: Path, command: str, content: str | None) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    result = await yumegate(command, "--config", str(path))
    assert result.code == (1 if command == "doctor" else 78)
    assert "config.json" in result.out + result.err
    assert list(tmp_path.iterdir()) == ([path] if content is not None else [])


@pytest.mark.case("CF-02")
@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "gbk"])
async def test_a_console_that_cannot_show_a_character_breaks_nothing(tmp_path: Path, encoding: str) -> None:
    config = config_file(tmp_path, characters={"default": {"name": "夢 😀"}, "other": {"name": "夢 😀"}}, ключ=1)
    result = await yumegate("check", "--config", str(config), env={"PYTHONIOENCODING": encoding})
    assert result.code == 1
    assert "config.json" in result.err
    shown = await yumegate("--help", env={"PYTHONIOENCODING": encoding})
    assert shown.code == 0 and "doctor" in shown.out


# -- what is imported --------------------------------------------------------------------------------------------------

HEAVY = ("chromadb", "openai", "alembic", "telegram", "discord", "xllamacpp")


async def imported(config: Path, *words: str) -> set[str]:
    """The heavy packages that a command loads."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-X", "importtime", "-m", "gateway", *words, "--config", str(config), cwd="/", env=environment(), stdout=PIPE, stderr=PIPE
    )  # fmt: skip
    async with asyncio.timeout(LIMIT_S):
        _, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    modules = {line.rpartition("|")[2].strip().partition(".")[0] for line in err.decode().splitlines() if line.startswith("import time:")}
    assert "gateway" in modules
    return modules & {*HEAVY, "sqlalchemy", "aiohttp"}


async def test_check_loads_nothing_heavy(ready: Path) -> None:
    assert await imported(ready, "check") == set()


@pytest.mark.parametrize("words", [("token", "create", "--name", "x"), ("login-link",), ("job", "list")])
async def test_commands_on_the_store_load_no_sdk_and_no_alembic(ready: Path, words: tuple[str, ...]) -> None:
    assert await imported(ready, *words) & set(HEAVY) == set()


# -- on the store, while no gateway runs -------------------------------------------------------------------------------


async def test_a_login_link_is_made_without_a_gateway(ready: Path) -> None:
    result = await yumegate("login-link", "--config", str(ready))
    assert result.code == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login/\S+", result.last)


async def test_a_token_stands_alone_on_the_last_line_and_works_once_the_gateway_runs(ready: Path) -> None:
    made = await yumegate("token", "create", "--name", "bot", "--config", str(ready))
    assert made.code == 0 and made.out.count("\n") == 1 and made.last.startswith("yg_")
    assert "shown only now" in made.err and made.last not in made.err
    async with gateway(ready) as child, aiohttp.ClientSession() as http:
        headers = {"Authorization": f"Bearer {made.last}"}
        async with http.get(f"{child.url}/api/me", headers=headers) as answer:
            assert (await answer.json())["person"]["role"] == "owner"
        async with http.get(child.login_link, allow_redirects=False) as answer:
            assert answer.status == 303 and "yumegate_session" in answer.cookies


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("login-link", "--person", "nobody"), "nobody is called nobody"),
        (("token", "create", "--name", " "), "needs a name"),
        (("job", "list", "--state", "odd"), "no job state odd"),
        (("job", "run", "x1"), "no job number"),
        (("job", "run", "4711"), "4711 is unknown"),
        (("release",), "no gateway runs"),
        (("chat",), "no gateway runs"),
    ],
)
async def test_what_cannot_be_done_is_said_in_one_sentence(ready: Path, words: tuple[str, ...], sentence: str) -> None:
    result = await yumegate(*words, "--config", str(ready))
    assert result.code == 1
    assert sentence in result.err and len(result.err.strip().splitlines()) == 1
    assert result.out == ""


async def test_jobs_and_why_answer_without_a_gateway(ready: Path) -> None:
    assert (await yumegate("job", "list", "--config", str(ready))).out == "no jobs\n"
    why = await yumegate("why", "web:main:c-1", "--config", str(ready))
    assert (why.code, why.out) == (0, "Nothing has arrived here yet.\n")
    assert (await yumegate("why", "nonsense", "--config", str(ready))).code in (0, 1)


@pytest.mark.rule("WD-1", "WD-16")
async def test_everything_that_a_first_command_makes_is_ours_alone(tmp_path: Path) -> None:
    config = config_file(tmp_path, agent_workspace="deep/er/workspace")
    assert (await yumegate("login-link", "--config", str(config), env={"TZ": "UTC"})).code == 0
    workspace = tmp_path / "deep" / "er" / "workspace"
    for path in (workspace, *workspace.rglob("*")):
        assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path


# -- a gateway that runs -----------------------------------------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[FakeModel]:
    async with FakeModel(lambda _: text("The lamp is on.", chunks=3)) as server:
        yield server


def with_model(config: Path, server: FakeModel, **more: Any) -> Path:
    account = {"provider": "openai", "base_url": server.url, "api_key": MARK, "name": "fake"}
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model": account, **more}))
    return config


@pytest.mark.rule("WD-120")
async def test_commands_ask_the_gateway_that_runs(ready: Path, server: FakeModel) -> None:
    async with gateway(with_model(ready, server)) as child:
        link = await yumegate("login-link", "--config", str(ready))
        assert link.last.startswith(f"{child.url}/login/")
        token = (await yumegate("token", "create", "--name", "bot", "--config", str(ready))).last
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
            async with http.post(f"{child.url}/api/chats", json={}) as answer:
                chat = (await answer.json())["id"]
            async with http.post(f"{child.url}/api/chats/{chat}/messages", json={"client_id": "1", "text": "hi"}) as answer:
                assert answer.status == 202

            async def answered() -> bool:
                async with http.get(f"{child.url}/api/chats/{chat}/messages") as answer:
                    return any(one["role"] == "assistant" for one in (await answer.json())["messages"])

            await eventually(answered)
        why = await yumegate("why", f"web:main:{chat}", "--config", str(ready))
        assert why.code == 0 and "Nothing has arrived" not in why.out
        jobs = await yumegate("job", "list", "--config", str(ready))
        assert "title" in jobs.out
        assert (await yumegate("release", "--config", str(ready))).code == 0
        fault = await yumegate("job", "run", "4711", "--config", str(ready))
        assert (fault.code, fault.out) == (1, "") and "4711" in fault.err


@pytest.mark.rule("WD-120")
async def test_a_second_gateway_on_the_same_data_is_refused_naming_the_first(ready: Path) -> None:
    async with gateway(ready) as child:
        second = await yumegate("run", "--config", str(ready))
        assert second.code == 1
        assert f"process {child.process.pid}" in second.err and "does not start" in second.err


async def test_a_port_that_is_taken_is_said_in_one_sentence(ready: Path, server: FakeModel) -> None:
    port = int(server.url.rpartition(":")[2].partition("/")[0])
    config = json.loads(ready.read_text()) | {"channels": {"web": {"port": port}}}
    ready.write_text(json.dumps(config))
    result = await yumegate("run", "--config", str(ready))
    assert result.code == 1
    assert f"port {port}" in result.err


@pytest.mark.rule("WO-60")
async def test_an_open_address_without_a_password_is_refused(ready: Path) -> None:
    ready.write_text(json.dumps(json.loads(ready.read_text()) | {"channels": {"web": {"host": "0.0.0.0", "port": 0}}}))
    result = await yumegate("run", "--config", str(ready))
    assert result.code == 1
    assert "nobody has a password" in result.err


async def test_a_gateway_that_hangs_is_told_from_one_that_is_gone(ready: Path) -> None:
    async with gateway(ready) as child:
        child.process.send_signal(signal.SIGKILL)
        await child.process.wait()
        assert (await yumegate("job", "list", "--config", str(ready))).out == "no jobs\n"  # the dead one holds no lock


@pytest.mark.rule("RL-32")
async def test_no_secret_is_written_down_whatever_fails(ready: Path, server: FakeModel) -> None:
    """`gateway` and `yumegate` look for the marker in everything that was written."""
    server.will_fail("401", "cut-connection", "500")
    account = {"provider": "openai", "base_url": server.url, "api_key": "${KEY}", "name": "fake"}
    config = json.loads(ready.read_text()) | {"model": account, "log": {"level": "debug"}}
    ready.write_text(json.dumps(config))
    async with gateway(ready, env={"KEY": MARK}) as child:
        chat = await yumegate("chat", "--config", str(ready), env={"KEY": MARK}, stdin="one\ntwo\nthree\n")
        assert chat.code == 0
        assert len(server.requests) >= 3 and MARK in server.requests[0].headers["Authorization"]
        assert any("model" in line for line in child.err)


# -- chat --------------------------------------------------------------------------------------------------------------


async def test_a_piped_talk_prints_each_answer_and_ends_with_its_input(ready: Path, server: FakeModel) -> None:
    answers = iter(["Hello there.", "夢です。", "再见。"])
    server.respond = lambda body: text(next(answers), chunks=2) if body["messages"][0]["content"].startswith("You are") else text("Title")
    async with gateway(with_model(ready, server)) as child:
        first = await yumegate("chat", "--config", str(ready), stdin="hi\n\nもう一度\n/version\n")
        assert (first.code, first.err) == (0, "")
        assert [line for line in first.out.splitlines() if line] == ["Hello there.", "夢です。", "Yumegate 0.1.0"]
        second = await yumegate("chat", "--config", str(ready), stdin="再见\n/quit\nnever said\n")
        assert second.out == "再见。\n"
        replies = [request.body["messages"] for request in server.requests if request.body["messages"][0]["content"].startswith("You are")]
        assert [message["content"] for message in replies[-1] if message["role"] == "assistant"] == ["Hello there.", "夢です。"]  # the same chat
        token = (await yumegate("token", "create", "--name", "bot", "--config", str(ready))).last
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http, http.get(f"{child.url}/api/tokens") as answer:
            assert [one["name"] for one in (await answer.json())["tokens"]] == ["bot"]  # the talks left none behind


async def test_a_piped_talk_prints_faults_and_goes_on(ready: Path, server: FakeModel) -> None:
    server.will_fail("401")
    async with gateway(with_model(ready, server)):
        result = await yumegate("chat", "--config", str(ready), stdin="hi\nagain\n")
    assert "not set up" in result.out and result.out.endswith("The lamp is on.\n")


async def test_terminal_signs_in_an_answer_do_nothing(ready: Path, server: FakeModel) -> None:
    server.respond = lambda _: text("red \x1b[31m and \x07bell\x1b]0;title\x07")
    async with gateway(with_model(ready, server)):
        result = await yumegate("chat", "--config", str(ready), stdin="hi\n")
    assert "red" in result.out and "\x1b" not in result.out and "\x07" not in result.out


async def test_ctrl_c_stops_the_answer_and_a_second_one_leaves(ready: Path, server: FakeModel) -> None:
    server.respond = lambda _: stream(delta("It begins"), Hang())
    async with gateway(with_model(ready, server)):
        process = await start("chat", "--config", str(ready))
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"tell me a long story\n")
        await process.stdin.drain()

        async def asked() -> bool:
            return bool(server.requests)

        await eventually(asked)
        await asyncio.sleep(0.2)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(LIMIT_S):
            assert (await process.stdout.readline()).decode() == "It begins\n"
            assert await server.outcome(0) == "left"
            await asyncio.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
        process.stdin.close()


async def test_a_gateway_that_goes_away_is_said(ready: Path, server: FakeModel) -> None:
    async with gateway(with_model(ready, server)) as child:
        process = await start("chat", "--config", str(ready))
        assert process.stdin is not None
        process.stdin.write(b"hi\n")
        await process.stdin.drain()

        async def asked() -> bool:
            return bool(server.requests)

        await eventually(asked)
        await asyncio.sleep(0.2)
        child.process.kill()
        async with asyncio.timeout(LIMIT_S):
            out, err = await process.communicate()
    assert b"cannot be talked with" in out and b"Traceback" not in err


# -- doctor ------------------------------------------------------------------------------------------------------------


async def examined(config: Path, code: int, **env: str) -> dict[str, tuple[str, str]]:
    """What doctor says, by what it looked at."""
    result = await yumegate("doctor", "--json", "--config", str(config), env=env)
    found = json.loads(result.out)
    assert result.code == code, result.out
    assert all(set(one) == {"what", "verdict", "text", "next_step"} for one in found)
    assert all(bool(one["next_step"]) for one in found if one["verdict"] != "ok")
    return {one["what"]: (one["verdict"], one["text"]) for one in found}


def fingerprints(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


@pytest.mark.rule("WO-35")
async def test_doctor_finds_a_sound_gateway_sound_and_writes_nothing(ready: Path, server: FakeModel) -> None:
    with_model(ready, server)
    before = fingerprints(ready.parent)
    found = await examined(ready, 0)
    assert {verdict for verdict, _ in found.values()} == {"ok"}
    assert {"config", "workspace", "data", "space", "database", "lock", "model", "channels", "clock", "address"} <= set(found)
    assert len(server.requests) == 1
    assert fingerprints(ready.parent) == before
    text_form = await yumegate("doctor", "--config", str(ready))
    assert text_form.code == 0
    assert all(line.startswith("ok   ") for line in text_form.out.splitlines())


@pytest.mark.rule("WO-35")
async def test_doctor_works_beside_a_running_gateway(ready: Path, server: FakeModel) -> None:
    async with gateway(with_model(ready, server)) as child:
        assert "The lamp is on." in (await yumegate("chat", "--config", str(ready), stdin="hi\n")).out
        found = await examined(ready, 0)
        assert found["lock"][1] == f"process {child.process.pid} runs at {child.url}"
        assert found["gateway"][0] == found["channel web:main"][0] == "ok"
        assert "whole" in found["database"][1]
        assert {verdict for verdict, _ in found.values()} == {"ok"}


@pytest.mark.rule("WO-35")
async def test_doctor_before_the_first_start_makes_nothing(tmp_path: Path) -> None:
    config = config_file(tmp_path)
    found = await examined(config, 0)
    assert "does not exist yet" in found["workspace"][1] and "first start" in found["database"][1]
    assert "installed" in found["model"][1]
    assert list(tmp_path.iterdir()) == [config]


@pytest.mark.rule("WO-35")
async def test_doctor_names_every_planted_fault(ready: Path, server: FakeModel) -> None:
    server.will_fail("401")
    with_model(ready, server, timezone="", channels={"web": {"host": "0.0.0.0", "port": 0}, "telegram": {"allow": ["*"]}}, nonsense=1)
    (ready.parent / "secrets.env").write_text("A=b\n")
    (ready.parent / "secrets.env").chmod(0o644)
    ready.chmod(0o644)
    workspace = ready.parent / "workspace"
    workspace.chmod(0o755)
    (workspace / ".yumegate" / "yumegate.db").chmod(0o644)
    result = await yumegate("doctor", "--json", "--config", str(ready))
    assert result.code == 1
    told = [f"{one['verdict']} {one['what']} {one['text']}" for one in json.loads(result.out)]
    for sign in (
        "warn config .*nonsense",
        'warn config .*"\\*" admits everybody',
        "warn config .*others can read config.json",
        "warn secrets .*others can read",
        "warn workspace .*0755",
        "warn data .*1 files .*yumegate.db",
        "fail model .*fake at http",
        "warn clock .*system's zone",
        "fail address .*nobody has a password",
    ):
        assert any(re.match(sign, line) for line in told), (sign, told)


@pytest.mark.rule("WO-35")
@pytest.mark.parametrize(
    ("plant", "verdict", "sign"),
    [
        (lambda db: db.write_bytes(b"this is no database, it is a text that is long enough to be read as one" * 30), "fail", "cannot be read"),
        (lambda db: _sql(db, "UPDATE alembic_version SET version_num = '9999'"), "fail", "9999"),
        (lambda db: _damage(db), "fail", "damaged|cannot be read|malformed"),
        (lambda db: db.unlink(), "ok", "first start"),
    ],
    ids=["no database", "newer", "damaged", "gone"],
)
async def test_doctor_looks_into_the_database(ready: Path, plant: Any, verdict: str, sign: str) -> None:
    plant(ready.parent / "workspace" / ".yumegate" / "yumegate.db")
    found = await examined(ready, 1 if verdict == "fail" else 0)
    assert found["database"][0] == verdict and re.search(sign, found["database"][1])


@pytest.mark.rule("WO-35")
async def test_doctor_knows_a_clock_that_went_back(ready: Path) -> None:
    ahead = 4_000_000_000_000_000  # microseconds: the year 2096
    made = f"INSERT INTO model_calls (at, model, outcome, input_tokens, output_tokens, cached_tokens) VALUES ({ahead}, 'm', 'ok', 1, 1, 0)"
    _sql(ready.parent / "workspace" / ".yumegate" / "yumegate.db", made)
    found = await examined(ready, 1)
    assert found["clock"][0] == "fail" and "2096" in found["clock"][1]


@pytest.mark.rule("WO-35")
async def test_doctor_tells_a_database_server_that_cannot_be_reached(ready: Path) -> None:
    url = f"postgresql+psycopg://yume:{MARK}@127.0.0.1:1/yume"
    ready.write_text(json.dumps(json.loads(ready.read_text()) | {"database": {"url": url}}))
    found = await examined(ready, 1)
    assert found["database"][0] == "fail" and "PostgreSQL" in found["database"][1]


@pytest.mark.rule("WO-35")
async def test_doctor_sees_a_killed_gateways_newest_rows(ready: Path) -> None:
    """They stand in the log of writes, not yet in the file; and looking leaves the log as it is."""
    data = ready.parent / "workspace" / ".yumegate"
    async with gateway(ready) as child:
        child.process.kill()
        await child.process.wait()
    assert (data / "yumegate.db-wal").stat().st_size > 0
    before = {path.name: path.read_bytes() for path in data.glob("yumegate.db*") if not path.name.endswith("-shm")}
    assert (await examined(ready, 0))["database"][0] == "ok"
    assert before == {path.name: path.read_bytes() for path in data.glob("yumegate.db*") if not path.name.endswith("-shm")}


@pytest.mark.rule("WO-35")
async def test_doctor_tells_a_gateway_that_does_not_answer(ready: Path) -> None:
    async with gateway(ready) as child:
        child.process.send_signal(signal.SIGSTOP)
        try:
            found = await examined(ready, 1)
        finally:
            child.process.send_signal(signal.SIGCONT)
        assert found["gateway"][0] == "fail" and str(child.process.pid) in found["gateway"][1]


def _sql(database: Path, statement: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(statement)
    connection.close()


def _damage(database: Path) -> None:
    """Pages in the middle are overwritten: the file opens, and is not whole."""
    data = bytearray(database.read_bytes())
    page = 4096
    for at in range(4 * page, min(len(data), 40 * page), page):
        data[at : at + 200] = b"\xa5" * 200
    database.write_bytes(bytes(data))


