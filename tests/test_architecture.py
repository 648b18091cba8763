"""The rules of the architecture that a machine can hold, read from the source of the four packages.

Each checker takes a path (relative, with slashes) and the source text and returns faults; a small bad sample proves each of them. An exception is a
row in a table with its reason, and a row that nothing needs any more is a fault too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Who may import whom among our own packages.
LAYERS: Mapping[str, frozenset[str]] = {
    "gateway": frozenset({"gateway", "agent", "channels", "memory"}),
    "agent": frozenset({"agent", "memory"}),
    "channels": frozenset({"channels"}),
    "memory": frozenset({"memory"}),
}

# A key ending in a slash stands for everything below that folder.
IMPORTS_INSIDE_FUNCTIONS: Mapping[str, str] = {
    "agent/llm/": "a model provider's SDK costs seconds to import and may be absent",
    "gateway/cli.py": "`check`, `token` and `login-link` must not pay for the libraries of `run`",
    "gateway/console/": "as the command line, of which they are parts",
    "gateway/model_making.py": "a model's SDK costs two seconds, and the demo model needs none",
    "gateway/wiring/channels.py": "a platform's SDK costs a second and may be absent",
    "memory/chroma_client.py": "Chroma costs three seconds to import, and cannot be imported at all beside an old SQLite",
    "memory/embedders/": "weights and SDKs are loaded when the first vector is wanted",
    "memory/migrate.py": "alembic costs two seconds and most starts migrate nothing",
}

BROAD_EXCEPTS: Mapping[str, str] = {
    "gateway/supervise.py": "channel supervisor: one sick channel never takes another down",
    "gateway/lanes.py": "lane worker: a failed message never stops the ones behind it",
    "gateway/turns.py": "lane worker, the turn itself: the person hears of it and the row ends",
    "gateway/arrivals/dispatch.py": "lane worker, intake before it: one event must not end every channel",
    "gateway/command_runs.py": "lane worker, commands beside it: one that fails is answered with a sentence",
    "gateway/delivery/outbox.py": "lane worker, the outgoing side: a faulty adapter's send is an unknown outcome",
    "gateway/error_log.py": "keeps grave lines for the page: a keeper of the log must not end the gateway",
    "gateway/reloading.py": "configuration watch: whatever a changed file holds, the running gateway goes on (invariant 11)",
    "gateway/jobs/runner.py": "job runner: a failed job is parked with its error",
    "gateway/webhooks.py": "webhook listener: a channel's fault is told to nobody outside, and stops no other platform",
    "gateway/http/": "HTTP middleware: a fault of ours is a 500 with a correlation id",
}

PRINTS: Mapping[str, str] = {
    "gateway/cli.py": "the command line speaks on standard output",
    "gateway/console/": "so do its parts",
}


def listed(path: str, table: Mapping[str, str]) -> str:
    """The key of `table` that covers `path`; empty when none does."""
    return next((key for key in table if path == key or (key.endswith("/") and path.startswith(key))), "")


def dotted(node: ast.expr) -> str:
    """`a.b.c` of a chain of names and attributes; calls inside it are written as `()`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}"
        case ast.Call(func=func):
            return f"{dotted(func)}()"
        case _:
            return "?"


# Imports


def imported(source: str) -> Iterator[tuple[int, str, str]]:
    """Every import: line, module, name taken from it ("" for `import module`). A constant given to import_module counts."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name, "") for name in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((node.lineno, module, name.name) for name in names)
            case ast.Call(args=[ast.Constant(value=str(module)), *_]) if dotted(node.func).split(".")[-1] in ("import_module", "__import__"):
                yield node.lineno, module, ""
            case _:
                pass


def layer_faults(path: str, source: str) -> list[str]:
    house = path.split("/")[0]
    return [
        f"{path}:{line} {house} may not import {module}"
        for line, module, _ in imported(source)
        if module.split(".")[0] in LAYERS and module.split(".")[0] not in LAYERS[house]
    ]


def relative_import_faults(path: str, source: str) -> list[str]:
    return [f"{path}:{node.lineno} relative import" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.level]


def function_imports(path: str, source: str) -> list[str]:
    found: dict[int, str] = {}
    for outer in ast.walk(ast.parse(source)):
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(outer):
                dynamic = isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in ("import_module", "__import__")
                if isinstance(node, ast.Import | ast.ImportFrom) or dynamic:
                    found[node.lineno] = f"{path}:{node.lineno} import inside a function"
    return list(found.values())


def import_cycle(sources: Mapping[str, str]) -> list[str]:
    """One cycle between modules as a list of their names, empty when there is none. Imports for type checkers and inside functions count too."""
    modules = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): source for path, source in sources.items()}
    graph: dict[str, set[str]] = {}
    for module, source in modules.items():
        targets = {f"{base}.{name}" if f"{base}.{name}" in modules else base for _, base, name in imported(source)}
        graph[module] = targets & set(modules)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


# Conduct


def print_calls(path: str, source: str) -> list[str]:
    return [f"{path}:{node.lineno} print" for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and dotted(node.func) == "print"]


ROOT_LOGGER_CALLS = frozenset(f"logging.{level}" for level in ("debug", "info", "warning", "error", "exception", "critical", "log"))


def logging_faults(path: str, source: str) -> list[str]:
    """A module logs through `getLogger(__name__)`. Setting another logger up (`getLogger("httpx").setLevel(…)`) is not logging."""
    tree = ast.parse(source)
    configured = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    faults: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        if name in ROOT_LOGGER_CALLS:
            faults.append(f"{path}:{node.lineno} {name} logs as nobody")
        elif name.split(".")[-1] == "getLogger" and id(node) not in configured and [dotted(arg) for arg in node.args] != ["__name__"]:
            faults.append(f"{path}:{node.lineno} getLogger takes __name__")
    return faults


ORPHAN_MAKERS = frozenset({"create_task", "ensure_future", "run_coroutine_threadsafe"})


def orphan_task_faults(path: str, source: str) -> list[str]:
    """Every task has a parent: `create_task` is asked of something whose name ends in "group", and of nothing else."""
    faults: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module="asyncio" | "asyncio.tasks", names=names):
                faults += [f"{path}:{node.lineno} imports {name.name}" for name in names if name.name in ORPHAN_MAKERS]
            case ast.Attribute(attr="create_task", value=owner) if dotted(owner).split(".")[-1].lower().endswith("group"):
                pass
            case ast.Attribute(attr=attr) if attr in ORPHAN_MAKERS:
                faults.append(f"{path}:{node.lineno} {dotted(node)} makes a task without a parent")
            case _:
                pass
    return faults


def broad_excepts(path: str, source: str) -> list[str]:
    """Handlers that take any exception and keep it. One that ends in a bare `raise` keeps nothing."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ExceptHandler(body=[*_, ast.Raise(exc=None)]):
                pass
            case ast.ExceptHandler(type=caught) if caught is None or _takes_any(caught):
                found.append(f"{path}:{node.lineno} takes every exception")
            case ast.Call(args=args) if dotted(node.func).split(".")[-1] == "suppress" and any(_takes_any(arg) for arg in args):
                found.append(f"{path}:{node.lineno} suppresses every exception")
            case _:
                pass
    return found


def _takes_any(caught: ast.expr) -> bool:
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(dotted(kind).split(".")[-1] in ("Exception", "BaseException") for kind in kinds)


PLAIN_TIMES = frozenset({"DateTime", "DATETIME", "TIMESTAMP"})


def plain_time_faults(path: str, source: str) -> list[str]:
    """SQLAlchemy's own time types lose the zone on SQLite; `memory.schema.UtcTime` does not."""
    tree = ast.parse(source)
    names = [name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names]
    aliases = {name.asname or name.name.split(".")[0] for name in names if name.name.split(".")[0] == "sqlalchemy"}
    faults: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=taken) if module.split(".")[0] == "sqlalchemy":
                faults += [f"{path}:{node.lineno} {name.name} loses the zone" for name in taken if name.name in PLAIN_TIMES]
            case ast.Attribute(attr=attr) if attr in PLAIN_TIMES and dotted(node).split(".")[0] in aliases:
                faults.append(f"{path}:{node.lineno} {dotted(node)} loses the zone")
            case _:
                pass
    return faults


# The tree


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    paths = [path for package in LAYERS for path in sorted((ROOT / package).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


Checker = Callable[[str, str], list[str]]


def faults_outside(table: Mapping[str, str], checker: Checker, sources: Mapping[str, str]) -> list[str]:
    return [fault for path, source in sources.items() if not listed(path, table) for fault in checker(path, source)]


@pytest.mark.parametrize("checker", [layer_faults, relative_import_faults, logging_faults, orphan_task_faults, plain_time_faults])
def test_the_tree_keeps_the_rule(checker: Checker, sources: dict[str, str]) -> None:
    assert faults_outside({}, checker, sources) == []


TABLES = [
    pytest.param(IMPORTS_INSIDE_FUNCTIONS, function_imports, id="imports inside functions"),
    pytest.param(BROAD_EXCEPTS, broad_excepts, id="broad excepts"),
    pytest.param(PRINTS, print_calls, id="prints"),
]


@pytest.mark.parametrize(("table", "checker"), TABLES)
def test_what_has_few_homes_is_found_nowhere_else(table: Mapping[str, str], checker: Checker, sources: dict[str, str]) -> None:
    assert faults_outside(table, checker, sources) == []


@pytest.mark.parametrize(("table", "checker"), TABLES)
def test_no_home_is_kept_for_nothing(table: Mapping[str, str], checker: Checker, sources: dict[str, str]) -> None:
    used = {listed(path, table) for path, source in sources.items() if checker(path, source)}
    assert set(table) - used == set()


def test_no_modules_import_each_other_in_a_circle(sources: dict[str, str]) -> None:
    assert import_cycle(sources) == []


# The proof that each checker sees what it is for


@pytest.mark.parametrize(
    ("checker", "path", "bad"),
    [
        (layer_faults, "memory/a.py", "import agent.turn"),
        (layer_faults, "channels/a.py", "from memory import ids"),
        (layer_faults, "agent/a.py", "def f():\n    from gateway.app import build"),
        (layer_faults, "agent/a.py", "import importlib\nimportlib.import_module('channels.port')"),
        (relative_import_faults, "memory/a.py", "from . import ids"),
        (relative_import_faults, "memory/a.py", "from ..memory.ids import PersonId"),
        (function_imports, "memory/a.py", "def f():\n    import json"),
        (function_imports, "memory/a.py", "class A:\n    async def f(self):\n        from json import dumps"),
        (function_imports, "memory/a.py", "def f(name):\n    return importlib.import_module(name)"),
        (print_calls, "memory/a.py", "print('x')"),
        (logging_faults, "memory/a.py", "log = logging.getLogger('memory')"),
        (logging_faults, "memory/a.py", "log = logging.getLogger()"),
        (logging_faults, "memory/a.py", "from logging import getLogger\nlog = getLogger('x')"),
        (logging_faults, "memory/a.py", "logging.info('x')"),
        (orphan_task_faults, "memory/a.py", "asyncio.create_task(f())"),
        (orphan_task_faults, "memory/a.py", "asyncio.get_running_loop().create_task(f())"),
        (orphan_task_faults, "memory/a.py", "self._loop.create_task(f())"),
        (orphan_task_faults, "memory/a.py", "make = asyncio.ensure_future"),
        (orphan_task_faults, "memory/a.py", "from asyncio import create_task as spawn"),
        (broad_excepts, "memory/a.py", "try:\n    f()\nexcept Exception:\n    pass"),
        (broad_excepts, "memory/a.py", "try:\n    f()\nexcept (OSError, Exception) as error:\n    raise ValueError from error"),
        (broad_excepts, "memory/a.py", "try:\n    f()\nexcept:\n    g()"),
        (broad_excepts, "memory/a.py", "try:\n    f()\nexcept BaseException:\n    if a:\n        raise"),
        (broad_excepts, "memory/a.py", "with contextlib.suppress(Exception):\n    f()"),
        (plain_time_faults, "memory/a.py", "import sqlalchemy as sa\nsa.Column('at', sa.DateTime(timezone=True))"),
        (plain_time_faults, "memory/a.py", "import sqlalchemy\nx = sqlalchemy.types.TIMESTAMP"),
        (plain_time_faults, "memory/a.py", "from sqlalchemy import DateTime"),
    ],
)
def test_a_bad_sample_is_seen(checker: Checker, path: str, bad: str) -> None:
    assert len(checker(path, bad)) == 1


@pytest.mark.parametrize(
    ("checker", "path", "good"),
    [
        (layer_faults, "gateway/a.py", "import agent.turn, channels.port, memory.ids"),
        (layer_faults, "agent/a.py", "from memory.ids import PersonId\nimport json"),
        (function_imports, "memory/a.py", "import json\nif TYPE_CHECKING:\n    import csv"),
        (logging_faults, "memory/a.py", "log = logging.getLogger(__name__)\nlog.info('x')\nlogging.getLogger('httpx').setLevel(logging.WARNING)"),
        (orphan_task_faults, "memory/a.py", "group.create_task(f())\nself._group.create_task(f())"),
        (broad_excepts, "memory/a.py", "try:\n    f()\nexcept OSError:\n    pass\nexcept BaseException:\n    undo()\n    raise"),
        (plain_time_faults, "memory/a.py", "import sqlalchemy as sa\nfrom memory.columns import UtcTime\nsa.Column('at', UtcTime)"),
    ],
)
def test_a_good_sample_passes(checker: Checker, path: str, good: str) -> None:
    assert checker(path, good) == []


def _chain(*modules: str) -> Iterable[tuple[str, str]]:
    return ((f"{module}.py", f"import {following.replace('/', '.')}") for module, following in pairwise(modules))


def test_a_circle_of_imports_is_seen_wherever_it_hides() -> None:
    assert import_cycle(dict(_chain("memory/a", "memory/b", "memory/c")) | {"memory/c.py": ""}) == []
    assert len(import_cycle(dict(_chain("memory/a", "memory/b", "memory/c", "memory/a")))) == 4
    hidden = {"memory/a.py": "def f():\n    from memory import b", "memory/b.py": "if TYPE_CHECKING:\n    from memory.a import f"}
    assert set(import_cycle(hidden)) == {"memory.a", "memory.b"}
    package = {"memory/__init__.py": "from memory.a import f", "memory/a.py": "from memory import g"}
    assert set(import_cycle(package)) == {"memory", "memory.a"}


def test_a_folder_in_a_table_covers_what_lies_below_it_alone() -> None:
    assert listed("agent/llm/demo.py", IMPORTS_INSIDE_FUNCTIONS) == "agent/llm/"
    assert listed("agent/turn.py", IMPORTS_INSIDE_FUNCTIONS) == ""
    assert listed("gateway/cli.py", IMPORTS_INSIDE_FUNCTIONS) == "gateway/cli.py"
