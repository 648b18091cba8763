"""The command line as an operator runs it: child processes on a real console, a real gateway, real exit codes.

A child costs seconds of imports, so what differs only in its words goes through typer's runner in this process, and one gateway serves all tests.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from typer.testing import CliRunner

from gateway.cli import app, welcome
from gateway.doctor.examining import examine
from gateway.doctor.finding import Finding, Verdict
from memory.instance_lock import InstanceLock
from tests.harness import eventually
from tests.patience import patience
from tests.peers.model.faults import FAULTS
from tests.peers.model.replies import Hang, Reply, delta, stream, text
from tests.peers.model.server import FakeModel

beside_the_gateway = pytest.mark.asyncio(loop_scope="module")  # a test that uses the one gateway lives in its loop

ROOT = Path(__file__).resolve().parents[2]
MARK = "marker-secret-of-the-tests"
LIMIT_S = 60.0


def environment(**more: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8", "KEY": MARK, **more}


def config_file(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    base: dict[str, Any] = {
        "agent_workspace": "workspace", "timezone": "UTC", "onboarding": False, "embedding": {"provider": "none"}, "channels": {"web": {"port": 0}},
    }  # fmt: skip
    path.write_text(json.dumps({**base, **config}, ensure_ascii=False), encoding="utf-8")
    path.chmod(0o600)
    return path


def changed(path: Path, **config: Any) -> Path:
    path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    return path


def with_store(config: Path, empty_sqlite: Path) -> Path:
    """A migrated database beside a configuration, so that no command pays for the migration."""
    data = config.parent / "workspace" / ".yumegate"
    data.mkdir(parents=True, mode=0o700)
    data.parent.chmod(0o700)
    shutil.copy(empty_sqlite, data / "yumegate.db")
    (data / "yumegate.db").chmod(0o600)
    return config


@pytest.fixture
def ready(tmp_path: Path, empty_sqlite: Path) -> Path:
    return with_store(config_file(tmp_path), empty_sqlite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def last(self) -> str:
        return self.out.splitlines()[-1]


def here(*words: str, config: Path) -> Result:
    """A command in this process."""
    done = CliRunner().invoke(app, [*words, "--config", str(config)], env={"KEY": MARK})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Result(code=done.exit_code, out=done.stdout, err=done.stderr)


async def start(*words: str, env: Mapping[str, str] | None = None) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *words, cwd="/", env=environment(**(env or {})), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )  # fmt: skip


async def yumegate(*words: str, config: Path | None = None, stdin: str = "", env: Mapping[str, str] | None = None) -> Result:
    """A command in a child process."""
    process = await start(*words, *(("--config", str(config)) if config else ()), env=env)
    async with asyncio.timeout(patience(LIMIT_S)):
        out, err = await process.communicate(stdin.encode())
    assert process.returncode is not None
    encoding = (env or {}).get("PYTHONIOENCODING", "utf-8")
    result = Result(code=process.returncode, out=out.decode(encoding), err=err.decode(encoding))
    assert "Traceback" not in result.err, result.err
    assert MARK not in result.out + result.err
    return result


@dataclass(slots=True, kw_only=True)
class Child:
    """A gateway that runs in a process of its own, and the endpoint of its model."""

    process: Process
    url: str
    login_link: str
    config: Path
    server: FakeModel
    err: list[str]

    def replies(self) -> list[dict[str, Any]]:
        """The requests for replies, titles apart."""
        return [request.body for request in self.server.requests if is_reply(request.body)]


def is_reply(body: dict[str, Any]) -> bool:
    return "title" not in body["messages"][0]["content"]


@asynccontextmanager
async def gateway(folder: Path, empty_sqlite: Path) -> AsyncIterator[Child]:
    """At the end everything it wrote is searched for its key."""
    async with FakeModel(lambda _: text("The lamp is on.", chunks=3)) as server:
        account = {"provider": "openai", "base_url": server.url, "api_key": "${KEY}", "name": "fake"}
        config = with_store(config_file(folder, model=account, log={"level": "debug"}), empty_sqlite)
        process = await start("run", "--config", str(config))
        assert process.stdout is not None and process.stderr is not None
        told: list[str] = []
        written: list[str] = []

        async def read_errors(stream: asyncio.StreamReader) -> None:
            async for line in stream:
                written.append(line.decode())

        async with asyncio.TaskGroup() as group:
            group.create_task(read_errors(process.stderr))
            try:
                async with asyncio.timeout(patience(LIMIT_S)):
                    while "/login/" not in "".join(told):
                        line = await process.stdout.readline()
                        assert line, "".join(written)
                        told.append(line.decode())
                page, link = (re.search(r"http\S+", line) for line in told[-2:])
                assert page is not None and link is not None
                yield Child(process=process, url=page[0], login_link=link[0], config=config, server=server, err=written)
            finally:
                if process.returncode is None:
                    process.terminate()
                async with asyncio.timeout(patience(LIMIT_S)):
                    await process.wait()
        assert process.returncode in (0, -signal.SIGKILL), "".join(written)
        assert MARK not in "".join(written) + "".join(told)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def child(tmp_path_factory: pytest.TempPathFactory, empty_sqlite: Path) -> AsyncIterator[Child]:
    async with gateway(tmp_path_factory.mktemp("gateway"), empty_sqlite) as child:
        yield child


@pytest.fixture
def plain(child: Child) -> Iterator[Child]:
    """The gateway of all tests, with the endpoint as it was."""
    yield child
    child.server.forget_plan()
    child.server.respond = lambda _: text("The lamp is on.", chunks=3)


# -- check -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-32")
async def test_check_says_that_a_good_file_is_in_order(tmp_path: Path) -> None:
    config = config_file(tmp_path)
    result = await yumegate("check", config=config)
    assert (result.code, result.out, result.err) == (0, f"{config}: in order\n", "")
    assert not (tmp_path / "workspace").exists()  # it only looks


@pytest.mark.rule("WO-32")
def test_check_names_every_fault_with_its_place_and_fails(tmp_path: Path) -> None:
    result = here("check", config=config_file(tmp_path, agent_max_context_turns=0, log={"level": "loud"}))
    assert result.code == 78
    assert "config.json:1:" in result.err and "agent_max_context_turns" in result.err and "log.level" in result.err
    assert result.out == ""


@pytest.mark.rule("WO-32")
def test_check_fails_on_an_unknown_key_that_a_start_forgives(tmp_path: Path) -> None:
    result = here("check", config=config_file(tmp_path, agent_max_contxt_turns=5))
    assert result.code == 1
    assert "agent_max_contxt_turns" in result.err and "agent_max_context_turns" in result.err


@pytest.mark.rule("WD-119")
async def test_a_start_with_an_unusable_file_exits_with_78(tmp_path: Path) -> None:
    result = await yumegate("run", config=config_file(tmp_path, log=5))
    assert result.code == 78 and "log" in result.err and result.out == ""


@pytest.mark.rule("WD-119")
@pytest.mark.parametrize("command", ["check", "run", "login-link", "doctor"])
@pytest.mark.parametrize("content", [None, "{", "[]", '{"log": 5}'])
def test_an_unusable_file_ends_every_command_and_nothing_is_made(tmp_path: Path, command: str, content: str | None) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    result = here(command, config=path)
    assert result.code == (1 if command == "doctor" else 78)
    assert "config.json" in result.out + result.err
    assert list(tmp_path.iterdir()) == ([path] if content is not None else [])


@pytest.mark.case("CF-02")
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
async def test_a_console_that_cannot_show_a_character_breaks_nothing(tmp_path: Path, encoding: str) -> None:
    config = config_file(tmp_path, characters={"default": {"name": "夢 😀"}, "other": {"name": "夢 😀"}}, ключ=1)
    result = await yumegate("check", config=config, env={"PYTHONIOENCODING": encoding})
    assert result.code == 1
    assert "two characters answer" in result.err


# -- what is imported --------------------------------------------------------------------------------------------------

HEAVY = {"chromadb", "openai", "alembic", "telegram", "discord", "xllamacpp"}


@pytest.mark.parametrize(("words", "kept_out"), [(("check",), HEAVY | {"sqlalchemy", "aiohttp"}), (("token", "create", "--name", "bot"), HEAVY)])
async def test_small_commands_load_nothing_heavy(ready: Path, words: tuple[str, ...], kept_out: set[str]) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-X", "importtime", "-m", "gateway", *words, "--config", str(ready), cwd="/", env=environment(), stdout=PIPE, stderr=PIPE
    )  # fmt: skip
    async with asyncio.timeout(patience(LIMIT_S)):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    timed = [line for line in err.decode().splitlines() if line.startswith("import time:")]
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in timed}
    assert "gateway" in loaded and not loaded & kept_out
    if words[0] == "token":
        assert re.fullmatch(r"yg_\S+\n", out.decode())  # alone, for `TOKEN=$(yumegate token create …)`


# -- on the store, while no gateway runs -------------------------------------------------------------------------------


@pytest.mark.rule("WD-1", "WD-16")
async def test_everything_that_a_first_command_makes_is_ours_alone(tmp_path: Path) -> None:
    result = await yumegate("login-link", config=config_file(tmp_path, agent_workspace="deep/er/workspace"))
    assert result.code == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/login/\S+", result.last)
    workspace = tmp_path / "deep" / "er" / "workspace"
    for path in (workspace, *workspace.rglob("*")):
        assert stat.S_IMODE(path.lstat().st_mode) & 0o077 == 0, path


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
def test_what_cannot_be_done_is_said_in_one_sentence(ready: Path, words: tuple[str, ...], sentence: str) -> None:
    result = here(*words, config=ready)
    assert (result.code, result.out) == (1, "")
    assert sentence in result.err and len(result.err.strip().splitlines()) == 1


def test_jobs_and_why_answer_without_a_gateway(ready: Path) -> None:
    assert here("job", "list", config=ready).out == "no jobs\n"
    for address in ("web:main:c-1", "nonsense", ""):
        why = here("why", address, config=ready)
        assert (why.code, why.out) == (0, "Nothing has arrived here yet.\n")


async def test_a_database_that_cannot_be_opened_is_said_in_one_sentence(ready: Path) -> None:
    (ready.parent / "workspace" / ".yumegate" / "yumegate.db").write_bytes(b"no database" * 1_000)
    result = await asyncio.to_thread(here, "job", "list", config=ready)
    assert result.code == 1
    assert "database" in result.err and len(result.err.strip().splitlines()) == 1


# -- a gateway that runs -----------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-120")
@beside_the_gateway
async def test_commands_ask_the_gateway_that_runs(plain: Child) -> None:
    link = here("login-link", config=plain.config)
    assert link.last.startswith(f"{plain.url}/login/")
    made = await yumegate("token", "create", "--name", "bot", config=plain.config)
    assert made.code == 0 and "shown only now" in made.err
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {made.last}"}) as http:
        async with http.post(f"{plain.url}/api/chats", json={}) as answer:
            chat = (await answer.json())["id"]
        async with http.post(f"{plain.url}/api/chats/{chat}/messages", json={"client_id": "1", "text": "hi"}) as answer:
            assert answer.status == 202

        async def answered() -> bool:
            async with http.get(f"{plain.url}/api/chats/{chat}/messages") as answer:
                return any(one["role"] == "assistant" for one in (await answer.json())["messages"])

        await eventually(answered, within_s=LIMIT_S)
        async with http.get(link.last, allow_redirects=False) as answer:
            assert answer.status == 303 and "yumegate_session" in answer.cookies
    why = await yumegate("why", f"web:main:{chat}", config=plain.config)
    assert why.code == 0 and "Nothing has arrived" not in why.out
    assert "title" in here("job", "list", config=plain.config).out
    assert here("job", "run", "daily-summary", "--scope", "root", "--date", "2020-01-01", config=plain.config).code == 0

    async def skipped() -> bool:
        return "nothing to do: unchanged" in (await yumegate("job", "list", config=plain.config)).out

    await eventually(skipped, within_s=LIMIT_S)
    assert here("release", config=plain.config).code == 0
    fault = here("job", "run", "4711", config=plain.config)
    assert (fault.code, fault.out) == (1, "") and "4711" in fault.err


@pytest.mark.case("VX-10")
@pytest.mark.rule("WD-120")
@beside_the_gateway
async def test_a_second_gateway_on_the_same_data_is_refused_naming_the_first(plain: Child) -> None:
    second = await yumegate("run", config=plain.config)
    assert (second.code, second.out) == (1, "")
    assert f"process {plain.process.pid}" in second.err.splitlines()[-1] and "does not start" in second.err


def test_a_gateway_that_does_not_answer_is_said_to(ready: Path) -> None:
    with InstanceLock(ready.parent / "workspace" / ".yumegate") as lock, socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # taken, and nobody listens
        lock.write_info({"url": f"http://127.0.0.1:{deaf.getsockname()[1]}", "secret": MARK})
        result = here("job", "list", config=ready)
    assert result.code == 1
    assert f"process {os.getpid()}" in result.err and "does not answer" in result.err and MARK not in result.err


def test_a_port_that_is_taken_is_said_in_one_sentence(ready: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = here("run", config=changed(ready, channels={"web": {"port": port}}))
    assert result.code == 1
    assert f"port {port}" in result.err and "does not start" in result.err


@pytest.mark.rule("WO-60")
def test_an_open_address_without_a_password_is_refused(ready: Path) -> None:
    result = here("run", config=changed(ready, channels={"web": {"host": "0.0.0.0", "port": 0}}))
    assert result.code == 1
    assert "nobody has a password" in result.err


# -- chat --------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-32")
@beside_the_gateway
async def test_a_piped_talk_prints_each_answer_and_ends_with_its_input(plain: Child) -> None:
    """Answers, commands, faults, and signs that would do something to a terminal."""
    answers = iter(["Hello there.", "夢です。", "red \x1b[31m and \x07bell\x1b]0;title\x07"])

    def respond(body: dict[str, Any]) -> Reply:
        return text(next(answers), chunks=2) if is_reply(body) else text("Title")

    plain.server.respond = respond
    first = await yumegate("chat", config=plain.config, stdin="hi\n\nもう一度\n/version\nsigns\n")
    assert (first.code, first.err) == (0, "")
    *lines, signs = first.out.splitlines()
    assert lines == ["Hello there.", "夢です。", "Yumegate 0.1.0"]
    assert signs == "red [31m and bell]0;title"
    replies = iter([*FAULTS["401"], text("Again.")])
    plain.server.respond = lambda body: next(replies) if is_reply(body) else text("Title")
    second = await yumegate("chat", config=plain.config, stdin="and\nonce more\n/quit\nnever said\n")
    assert second.out == "The model is not set up correctly. The operator can see what to do.\nAgain.\n"
    said = [message["content"] for message in plain.replies()[-1]["messages"] if message["role"] == "assistant"]
    assert said[:2] == ["Hello there.", "夢です。"]  # the same chat
    assert plain.server.requests[-1].headers["Authorization"] == f"Bearer {MARK}"
    assert any("401" in line or "model fake failed" in line for line in plain.err)
    token = here("token", "create", "--name", "bot", config=plain.config).last
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http, http.get(f"{plain.url}/api/tokens") as answer:
        assert "terminal" not in {one["name"] for one in (await answer.json())["tokens"]}  # the talks left none behind


@beside_the_gateway
async def test_ctrl_c_stops_the_answer_and_a_second_one_leaves(plain: Child) -> None:
    plain.server.respond = lambda _: stream(delta("It begins"), Hang())
    token = here("token", "create", "--name", "beside", config=plain.config).last
    process = await start("chat", "--config", str(plain.config))
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"tell me a long story\n")
    await process.stdin.drain()

    async def asked() -> int:
        return next((at for at, request in enumerate(plain.server.requests) if "a long story" in str(request.body["messages"][-1])), 0)

    number = await eventually(asked, within_s=LIMIT_S)
    async with aiohttp.ClientSession(plain.url, headers={"Authorization": f"Bearer {token}"}) as http, asyncio.timeout(patience(LIMIT_S)):
        async with http.get("/api/chats") as answer:
            chat = next(one["id"] for one in (await answer.json())["chats"] if one["title"] == "Terminal")
        async with http.get(f"/api/chats/{chat}/events") as events:
            await events.content.readuntil(b"event: delta")  # the gateway has the words that will stand there
    process.send_signal(signal.SIGINT)
    async with asyncio.timeout(patience(LIMIT_S)):
        assert (await process.stdout.readline()).decode() == "It begins\n"
        assert await plain.server.outcome(number) == "left"
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


@pytest.mark.rule("CH-98")
@beside_the_gateway
async def test_on_a_terminal_words_are_shown_as_they_come(plain: Child) -> None:
    go_on = asyncio.Event()
    plain.server.will(stream(delta("The capital "), Hang()))
    plain.server.respond = lambda _: text("never asked")
    outer, inner = os.openpty()
    words = ("-m", "gateway", "chat", "--config", str(plain.config))
    env = environment(TERM="dumb")
    process = await asyncio.create_subprocess_exec(sys.executable, *words, cwd="/", env=env, stdin=inner, stdout=inner, stderr=PIPE)
    os.close(inner)
    shown = ""

    def read() -> None:
        nonlocal shown
        try:
            shown += os.read(outer, 65_536).decode()
        except OSError:  # the other side is closed
            asyncio.get_running_loop().remove_reader(outer)
        go_on.set()

    async def until(words: str) -> None:
        async with asyncio.timeout(patience(LIMIT_S)):
            while words not in shown:
                go_on.clear()
                await go_on.wait()

    asyncio.get_running_loop().add_reader(outer, read)
    try:
        await until("> ")
        os.write(outer, "首都は？\n".encode())
        await until("The capital ")  # before the answer has an end
        process.send_signal(signal.SIGINT)
        await until("The capital \r\n> ")
        os.write(outer, b"/quit\n")
        async with asyncio.timeout(patience(LIMIT_S)):
            assert process.stderr is not None
            assert (await process.wait(), await process.stderr.read()) == (0, b"")
    finally:
        asyncio.get_running_loop().remove_reader(outer)
        os.close(outer)


@pytest.mark.rule("WO-35")
async def test_a_killed_gateway_is_told_by_its_talk_and_leaves_a_store_that_doctor_reads(tmp_path: Path, empty_sqlite: Path) -> None:
    async with gateway(tmp_path, empty_sqlite) as child:
        process = await start("chat", "--config", str(child.config))
        assert process.stdin is not None
        process.stdin.write(b"hi\n")
        await process.stdin.drain()

        async def asked() -> bool:
            return bool(child.server.requests)

        await eventually(asked, within_s=LIMIT_S)
        child.process.kill()
        async with asyncio.timeout(patience(LIMIT_S)):
            out, err = await process.communicate()
        assert b"cannot be talked with" in out and b"Traceback" not in err
        data = tmp_path / "workspace" / ".yumegate"
        assert (data / "yumegate.db-wal").stat().st_size > 0  # the newest rows stand there, not yet in the file
        before = {path.name: path.read_bytes() for path in data.glob("yumegate.db*") if not path.name.endswith("-shm")}
        found = await examined(child.config)
        assert (found["database"].verdict, found["lock"].text) == (Verdict.OK, "no gateway runs on this data folder")
        assert before == {path.name: path.read_bytes() for path in data.glob("yumegate.db*") if not path.name.endswith("-shm")}


# -- doctor ------------------------------------------------------------------------------------------------------------


async def examined(config: Path) -> dict[str, Finding]:
    """What doctor says, by what it looked at; every finding that is not well has a next step."""
    found = await examine(config, {"KEY": MARK})
    assert all(bool(one.next_step) for one in found if one.verdict is not Verdict.OK)
    assert MARK not in "".join(map(str, found))
    return {one.what: one for one in found}


def sql(database: Path, statement: str) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute(statement)
    connection.close()


def damage(database: Path) -> None:
    """Pages in the middle are overwritten: the file opens, and is not whole."""
    data = bytearray(database.read_bytes())
    for at in range(4 * 4096, min(len(data), 40 * 4096), 4096):
        data[at : at + 200] = b"\xa5" * 200
    database.write_bytes(bytes(data))


def fingerprints(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


@pytest.mark.rule("WO-35")
@beside_the_gateway
async def test_doctor_finds_a_sound_gateway_sound_and_writes_nothing(ready: Path, plain: Child) -> None:
    changed(ready, model=json.loads(plain.config.read_text())["model"])
    before = fingerprints(ready.parent)
    found = await examined(ready)
    assert {one.verdict for one in found.values()} == {Verdict.OK}
    assert set(found) == {"config", "workspace", "data", "space", "database", "lock", "model", "embeddings", "channels", "clock", "address"}
    assert fingerprints(ready.parent) == before


@pytest.mark.rule("WO-35")
@beside_the_gateway
async def test_doctor_works_beside_a_running_gateway(plain: Child) -> None:
    result = await yumegate("doctor", "--json", config=plain.config)
    found = {one["what"]: one for one in json.loads(result.out)}
    assert result.code == 0, result.out
    assert all(set(one) == {"what", "verdict", "text", "next_step"} for one in found.values())
    assert found["lock"]["text"] == f"process {plain.process.pid} runs at {plain.url}"
    assert found["gateway"]["verdict"] == found["channel web:main"]["verdict"] == "ok"
    assert "whole" in found["database"]["text"]
    assert {one["verdict"] for one in found.values()} == {"ok"}


@pytest.mark.rule("WO-35")
def test_doctor_says_one_line_each_and_fails_when_anything_does(ready: Path) -> None:
    ready.parent.joinpath("workspace").chmod(0o755)
    result = here("doctor", config=changed(ready, database={"url": "postgresql+psycopg://yume:geheim99@127.0.0.1:1/yume"}))
    assert result.code == 1 and "geheim99" not in result.out
    lines = result.out.splitlines()
    assert all(re.match(r"(ok   |warn |fail )[a-z]", line) for line in lines)
    assert any(re.match(r"fail database: PostgreSQL cannot be read.*Next: ", line) for line in lines)
    assert any(re.match(r"warn workspace: .*0755.*Next: chmod 700", line) for line in lines)


@pytest.mark.rule("WO-35")
async def test_doctor_before_the_first_start_makes_nothing(tmp_path: Path) -> None:
    config = config_file(tmp_path)
    found = await examined(config)
    assert {one.verdict for one in found.values()} == {Verdict.OK}
    assert "does not exist yet" in found["workspace"].text and "first start" in found["database"].text
    assert "installed" in found["model"].text
    assert set(fingerprints(tmp_path)) == {"config.json"}


@pytest.mark.rule("WO-35")
@beside_the_gateway
async def test_doctor_names_every_planted_fault(ready: Path, plain: Child) -> None:
    plain.server.will_fail("401")
    channels = {"web": {"host": "0.0.0.0", "port": 0}, "telegram": {"allow": ["*"], "token": "1234567:a-token-for-the-tests"}}
    changed(ready, model=json.loads(plain.config.read_text())["model"], timezone="", channels=channels, nonsense=1)
    (ready.parent / "secrets.env").write_text("A=b\n")
    for name, mode in {"config.json": 0o644, "secrets.env": 0o644, "workspace": 0o755, "workspace/.yumegate/yumegate.db": 0o644}.items():
        (ready.parent / name).chmod(mode)
    found = [f"{one.verdict.value} {one.what} {one.text}" for one in await examine(ready, {"KEY": MARK})]
    for sign in (
        "warn config .*nonsense",
        'warn config .*"\\*" admits everybody',
        "warn config others can read config.json",
        "warn secrets .*others can read",
        "warn workspace .*0755",
        "warn data 1 files .*yumegate.db",
        "fail model fake at http",
        "warn clock .*system's zone",
        "fail address .*nobody has a password",
    ):
        assert any(re.match(sign, line) for line in found), (sign, found)
    assert sum("system's zone" in line for line in found) == 1, "said once"


@pytest.mark.rule("WO-35")
@pytest.mark.parametrize(
    ("plant", "verdict", "sign"),
    [
        (lambda db: db.write_bytes(b"this is no database but a text " * 300), Verdict.FAIL, "cannot be read"),
        (lambda db: sql(db, "UPDATE alembic_version SET version_num = '9999'"), Verdict.FAIL, "9999"),
        (damage, Verdict.FAIL, "damaged|cannot be read|malformed"),
        (lambda db: db.write_bytes(b""), Verdict.OK, "first start"),
        (lambda db: db.unlink(), Verdict.OK, "first start"),
    ],
    ids=["no database", "newer", "damaged", "empty", "gone"],
)
async def test_doctor_looks_into_the_database(ready: Path, plant: Any, verdict: Verdict, sign: str) -> None:
    plant(ready.parent / "workspace" / ".yumegate" / "yumegate.db")
    found = (await examined(ready))["database"]
    assert found.verdict is verdict and re.search(sign, found.text)


@pytest.mark.rule("WO-35")
async def test_doctor_knows_a_clock_that_went_back(ready: Path) -> None:
    values = f"({4_000_000_000_000_000}, 'm', 'ok', 'reply', 1, 1, 0)"  # microseconds: the year 2096
    made = f"INSERT INTO model_calls (at, model, outcome, purpose, input_tokens, output_tokens, cached_tokens) VALUES {values}"
    sql(ready.parent / "workspace" / ".yumegate" / "yumegate.db", made)
    found = (await examined(ready))["clock"]
    assert found.verdict is Verdict.FAIL and "2096" in found.text


@pytest.mark.rule("WO-35")
async def test_doctor_tells_a_gateway_that_does_not_answer(ready: Path) -> None:
    with InstanceLock(ready.parent / "workspace" / ".yumegate") as lock, socket.socket() as deaf:
        assert (await examined(ready))["lock"].text == f"process {os.getpid()} runs and is not ready yet"
        deaf.bind(("127.0.0.1", 0))
        lock.write_info({"url": f"http://127.0.0.1:{deaf.getsockname()[1]}", "secret": MARK})
        found = (await examined(ready))["gateway"]
    assert found.verdict is Verdict.FAIL and str(os.getpid()) in found.text


@pytest.mark.rule("WO-35")
async def test_doctor_names_a_model_server_that_is_not_there(ready: Path) -> None:
    account = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "fake"}
    found = (await examined(changed(ready, models={"far": account})))["models.far"]
    assert found.verdict is Verdict.FAIL and "cannot connect" in found.text and "server runs" in found.next_step


@pytest.mark.rule("WO-1")
def test_a_start_prints_where_to_go_and_says_when_the_model_is_the_demo() -> None:
    plain, demo = (welcome("http://127.0.0.1:1", "http://127.0.0.1:1/login/x", demo=demo).splitlines() for demo in (False, True))
    assert plain == demo[:-1]
    assert plain[:2] == ["Yumegate is ready: http://127.0.0.1:1", "Sign in once with this link (10 minutes): http://127.0.0.1:1/login/x"]
    assert "login-link" in plain[2] and "demo model" in demo[-1]
