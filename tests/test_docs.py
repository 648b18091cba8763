"""The pages hold together: every relative link leads to a file that exists and to a heading that is in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from gateway import attempts, command_docs, followups, housekeeping, index_rebuild, memory_export, scope_removal, titles
from gateway.dreams import job as dream_job
from gateway.metrics import new_metrics
from gateway.summaries import plan as summary_plan
from gateway.tasks import jobs as task_jobs

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1[`~]*\s*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_PICTURE = re.compile(r"!\[[^\]]*\]\(\s*<?([^\s)>]+)>?[^)]*\)")
_LINK = re.compile(r"\[[^\[\]]*(?:\[[^\]]*\][^\[\]]*)*\]\(\s*<?([^\s)>]+)>?[^)]*\)|^ {0,3}\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
_HTML = re.compile(r"""<img[^>]*\ssrc=["']([^"']+)""")


def links(page: str) -> Iterator[str]:
    """Targets of links and pictures in Markdown text; what stands in code is no link."""
    prose = _CODE.sub("``", _FENCE.sub("", page))
    yield from _PICTURE.findall(prose)
    for match in _LINK.finditer(_PICTURE.sub("", prose)):  # a picture may be what a link shows
        yield match[1] or match[2]
    yield from _HTML.findall(prose)


def headings(page: str) -> set[str]:
    """The anchors of a page as code forges make them: lower case, blanks to dashes, other marks gone, repeats numbered."""
    anchors: set[str] = set()
    for title in re.findall(r"^#{1,6}\s+(.+?)\s*#*$", _FENCE.sub("", page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        base = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        repeats = sum(anchor == base or re.fullmatch(rf"{re.escape(base)}-\d+", anchor) is not None for anchor in anchors)
        anchors.add(f"{base}-{repeats}" if repeats else base)
    return anchors


def broken(page: Path) -> list[str]:
    """The relative links of `page` that lead nowhere, or out of the project."""
    parts = ((link, urlsplit(link)) for link in links(page.read_text(encoding="utf-8")))
    return [link for link, part in parts if not part.scheme and not part.netloc and not _leads(page, unquote(part.path), part.fragment)]


def _leads(page: Path, path: str, heading: str) -> bool:
    target = (page.parent / path).resolve() if path else page
    if not target.exists() or not (target.is_relative_to(ROOT) or target.is_relative_to(page.parent)):
        return False
    return not heading or target.suffix != ".md" or heading in headings(target.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_seen_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# One & two\n\n## One & two\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[ok](there.md) [ok](there.md#one--two) [ok](there.md#one--two-1) [out](https://example.org/x) `[code](nowhere.md)`\n\n"
        "```\n[fenced](nowhere.md)\n```\n\n[a](gone.md) [b](there.md#three) ![c](gone.png 'title') [![d](gone.svg)](there.md) [e](#none)\n\n"
        "[f]: gone/\n\n<img alt='' src='gone.gif'>\n\n[g](../../../etc)\n",
        encoding="utf-8",
    )
    assert broken(page) == ["gone.png", "gone.svg", "gone.md", "there.md#three", "#none", "gone/", "../../../etc", "gone.gif"]


# -- what the code offers is documented ---------------------------------------------------------------------------------


def test_the_page_of_commands_equals_the_code() -> None:
    page = (ROOT / command_docs.PAGE).read_text(encoding="utf-8")
    assert page == command_docs.render(), "run python -m gateway.command_docs"
    assert [each for each in ("embeddings [", "embeddings confirm [", "pair [--owner]", "pair list [") if f"| `{each}" not in page] == []


@pytest.mark.rule("RS-40")
def test_every_file_of_passages_that_the_page_takes_is_documented() -> None:
    batch = (ROOT / "gateway" / "static" / "memory-chunks-batch.js").read_text(encoding="utf-8")
    (accepted,) = re.findall(r'accept: "([^"]+)"', batch)
    told = (ROOT / "docs" / "memory.md").read_text(encoding="utf-8").partition("## Files of passages")[2].partition("\n## ")[0]
    wanted = {".yumegate.json", *(suffix for suffix in accepted.split(",") if suffix.startswith("."))}
    assert {suffix for suffix in wanted if f"`{suffix}`" not in told} == set()


def test_every_metric_is_documented() -> None:
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    names = {family.name for family in new_metrics().registry.collect()}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_every_kind_of_job_is_documented() -> None:
    page = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    kinds = (
        titles.KIND, housekeeping.KIND, summary_plan.DAILY, summary_plan.TRIM, summary_plan.OVERFLOW, dream_job.KIND, task_jobs.KIND,
        scope_removal.KIND, followups.KIND, memory_export.KIND, index_rebuild.KIND, attempts.JUDGE,
    )  # fmt: skip
    assert [kind for kind in kinds if f"`{kind}`" not in page] == []
