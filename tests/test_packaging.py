"""What is shipped and what it stands on: the locks, the list of packages, their data, and nothing of the place where it was written."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
HOUSES = ("gateway", "channels", "agent", "memory")
LOCKS = {"requirements.lock": "requirements.in", "requirements-dev.lock": "requirements-dev.in"}

PARTS_OF = {"pydantic_core": "pydantic"}  # its error types live there, and it pins that package exactly
NOT_SHIPPED = {"memory/migrations/script.py.mako": "the form for a new migration, used only while developing"}


@dataclass(frozen=True, slots=True)
class Pin:
    name: str
    version: str
    hashes: int


def pins(lock: str) -> list[Pin]:
    """Every entry of the text of a lock file. ValueError for a line that is neither a pin nor a hash."""
    found: list[Pin] = []
    for entry in lock.replace("\\\n", " ").splitlines():
        match = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)((?: +--hash=sha256:[0-9a-f]{64})*) *", entry)
        if not match:
            raise ValueError(f"not a pin with its hashes: {entry}")
        found.append(Pin(match[1], match[2], match[3].count("--hash=")))
    return found


def listed(path: str) -> list[tuple[str, str]]:
    """The lines of a requirements file as (requirement, comment beside it)."""
    lines = [line.partition("#") for line in (ROOT / path).read_text(encoding="utf-8").splitlines()]
    return [(requirement.strip(), comment.strip()) for requirement, _, comment in lines if requirement.strip()]


def requirements(path: str) -> list[Requirement]:
    return [Requirement(requirement) for requirement, _ in listed(path)]


# The locks


@pytest.mark.rule("RL-35")
@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_is_a_pin_with_hashes(lock: str) -> None:
    found = pins((ROOT / lock).read_text(encoding="utf-8"))
    assert found
    assert [pin.name for pin in found if not pin.hashes] == []


@pytest.mark.parametrize("line", ["--index-url x", "aiohttp>=3", "aiohttp @ file:///a.whl", "# via x", "aiohttp==3 --hash=md5:00"])
def test_a_lock_with_anything_else_in_it_is_seen(line: str) -> None:
    with pytest.raises(ValueError, match="not a pin"):
        pins(f"{line}\n")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_address(lock: str) -> None:
    assert not re.search(r"://|^-", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("lock", "source"), LOCKS.items())
def test_a_lock_fits_what_it_was_made_from(lock: str, source: str) -> None:
    locked = {canonicalize_name(pin.name): pin.version for pin in pins((ROOT / lock).read_text(encoding="utf-8"))}
    wanted = requirements(source)
    assert wanted
    assert [str(item) for item in wanted if locked.get(canonicalize_name(item.name), "") not in item.specifier] == []


def test_the_lock_has_nothing_that_was_left_out_on_purpose() -> None:
    locked = {canonicalize_name(pin.name) for lock in LOCKS for pin in pins((ROOT / lock).read_text(encoding="utf-8"))}
    excluded = listed("requirements.exclude")
    assert [name for name, _ in excluded if canonicalize_name(name) in locked] == []
    assert [name for name, reason in excluded if not reason] == []


def test_the_two_locks_agree() -> None:
    runtime, development = ({canonicalize_name(pin.name): pin.version for pin in pins((ROOT / lock).read_text(encoding="utf-8"))} for lock in LOCKS)
    assert {name for name in runtime.keys() & development.keys() if runtime[name] != development[name]} == set()


def test_what_is_installed_is_what_the_locks_name() -> None:
    wrong: list[str] = []
    for lock in LOCKS:
        for pin in pins((ROOT / lock).read_text(encoding="utf-8")):
            try:
                installed = importlib.metadata.version(pin.name)
            except importlib.metadata.PackageNotFoundError:
                installed = "nothing"
            if installed != pin.version:
                wrong.append(f"{pin.name}: {pin.version} is locked, {installed} is installed")
    assert wrong == []


# What our code imports


def outside_imports() -> dict[str, set[str]]:
    """Modules of others that the four packages import, under the top-level name of each."""
    found: dict[str, set[str]] = {}
    for house in HOUSES:
        for path in (ROOT / house).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                match node:
                    case ast.Import(names=names):
                        modules = [name.name for name in names]
                    case ast.ImportFrom(module=str(module), level=0):
                        modules = [module]
                    case _:
                        continue
                for module in modules:
                    top = module.split(".")[0]
                    if top not in HOUSES and top not in sys.stdlib_module_names:
                        found.setdefault(top, set()).add(module)
    return found


def test_every_import_is_of_something_that_requirements_name_themselves() -> None:
    direct = {canonicalize_name(item.name) for item in requirements("requirements.in")}
    owners = importlib.metadata.packages_distributions()
    tops = {PARTS_OF.get(top, top) for top in outside_imports()}
    strangers = {top for top in tops if not direct & {canonicalize_name(name) for name in owners.get(top, [])}}
    assert strangers == set()


def test_everything_that_is_imported_can_be_imported() -> None:
    """Stands in for `pip check`, which knows nothing of what was left out on purpose. In a process of its own: some of it is heavy."""
    modules = sorted(module for group in outside_imports().values() for module in group)
    code = "import importlib, sys\nfor module in sys.argv[1:]: importlib.import_module(module)"
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


# What is shipped


def tracked() -> list[Path]:
    """Files of this checkout, those that are new and not ignored included; relative to the root."""
    if not shutil.which("git") or not (ROOT / ".git").exists():
        pytest.skip("this copy is no git checkout, so nothing says which files belong to it")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=30).stdout.decode().split("\0")
    return sorted({Path(name) for name in names if name and (ROOT / name).is_file()})


def package_table() -> tuple[list[str], dict[str, list[str]]]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    return table["packages"], table["package-data"]


def test_the_packages_named_are_the_packages_there_are() -> None:
    there = {path.parent.relative_to(ROOT).as_posix().replace("/", ".") for house in HOUSES for path in (ROOT / house).rglob("__init__.py")}
    named, _ = package_table()
    assert sorted(named) == sorted(there)


def test_every_module_lies_in_a_package() -> None:
    assert [path for house in HOUSES for path in (ROOT / house).rglob("*.py") if not (path.parent / "__init__.py").exists()] == []


def test_every_file_beside_the_code_is_named_as_package_data() -> None:
    _, data = package_table()
    covered = {path.relative_to(ROOT).as_posix() for package, globs in data.items() for glob in globs for path in _under(package, glob)}
    beside = {path.as_posix() for path in tracked() if path.parts[0] in HOUSES and path.suffix != ".py"}
    assert beside - set(NOT_SHIPPED) - covered == set()
    assert set(NOT_SHIPPED) - beside == set()


def test_every_pattern_of_package_data_finds_something() -> None:
    _, data = package_table()
    assert [(package, glob) for package, globs in data.items() for glob in globs if not any(path.is_file() for path in _under(package, glob))] == []


def _under(package: str, glob: str) -> Iterator[Path]:
    return (ROOT / package.replace(".", "/")).glob(glob)


def test_what_is_built_holds_every_module_and_every_data_file(tmp_path: Path) -> None:
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("this Python's venv brings no setuptools to build with")
    ours = [path for path in tracked() if path.parts[0] in HOUSES]
    source, built = tmp_path / "source", tmp_path / "built"
    for path in [*ours, Path("pyproject.toml"), Path("requirements.in")]:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, source / path)
    (source / "README.md").touch()
    command = [sys.executable, "-c", "import setuptools; setuptools.setup()", "--quiet", "build_py", "--build-lib", str(built)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    held = {path.relative_to(built).as_posix() for path in built.rglob("*") if path.is_file()}
    assert held == {path.as_posix() for path in ours} - set(NOT_SHIPPED)


# Nothing of the place where it was written

# Written in two halves each, so that this file does not hold what it looks for.
HOSTS = [
    "py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "npm" + "js.com", "yarn" + "pkg.com", "crates" + ".io", "proxy.go" + "lang.org",
    "ghcr" + ".io", "quay" + ".io", "docker" + ".io", "deb.deb" + "ian.org", "hugging" + "face.co",
]  # fmt: skip
FOLDERS = [
    "/wo" + "rk/", "/fa" + "rm/", "/ro" + "ot/", "/opt/py" + "pi", "/opt/wh" + "eels", "../sha" + "red/", ".libr" + "ary/", ".mir" + "ror/",
]  # fmt: skip
FORBIDDEN = re.compile("|".join([*map(re.escape, HOSTS), *(rf"(?<![\w~.-]){re.escape(folder)}" for folder in FOLDERS)]), re.IGNORECASE)


def places(text: str) -> list[str]:
    """What in `text` belongs to a machine, a registry or a workshop and not to the project."""
    return FORBIDDEN.findall(text)


def test_no_file_names_a_registry_or_a_place_on_the_machine_it_was_written_on() -> None:
    found: dict[str, set[str]] = {}
    for path in tracked():
        if hits := places((ROOT / path).read_bytes().decode("utf-8", "replace")):
            found[path.as_posix()] = set(hits)
    assert found == {}


@pytest.mark.parametrize(
    "text", ["https://" + HOSTS[0] + "/simple", HOSTS[1].upper(), f"see {FOLDERS[0]}main", f"'{FOLDERS[2]}x'", f"[a]({FOLDERS[5]}b.md)"]
)
def test_a_place_is_seen(text: str) -> None:
    assert len(places(text)) == 1


@pytest.mark.parametrize("text", ["~/work/notes", "/data/config.json", "a/work/b", "shared/x.md", "my.library/x", "/app/root/"])
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert places(text) == []
