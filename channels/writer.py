"""From the block tree to a `Flow` in one platform's dialect: words in reading order, marks as spans over them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import assert_never

from channels.dialects import Dialect, Links
from channels.flow import Flow, Span, shown
from channels.markdown import Block, Code, Heading, Item, List, Mark, Paragraph, Quote, Rule, Run, Runs, Style, Table, fence_around
from channels.tables import grid, sentences

ADDRESS_MAX = 512  # code points; a longer one is words, for as a mark it would be written again at every cut
NATIVE_HEAD_MAX = 300  # code points of a table's head; a longer one would fill every piece

_ENTITY_OF = {Style.STRONG: "bold", Style.EM: "italic", Style.STRIKE: "strikethrough"}
_ESCAPE = re.compile(r"\\[!-/:-@\[-`{-~]")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_INDENT = "    "

# Ranks of spans that begin together: what frames lines is outside what leads each line, and that outside emphasis.
_QUOTED, _FRAME, _LEAD, _INLINE = 0, 1, 2, 99


def write(blocks: Sequence[Block], dialect: Dialect) -> Flow:
    """The words of `blocks` as `dialect` shows them. Pure."""
    writer = _Writer(dialect)
    writer.blocks(blocks)
    return writer.flow()


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.words: list[str] = []
        self.at = 0  # code points written
        self.spans: list[Span] = []
        self.ends: dict[bool, list[int]] = {True: [], False: []}  # ends of blocks: top-level or not
        self.solid: list[tuple[int, int]] = []
        self.code_ranges: list[tuple[int, int]] = []
        self.indent = ""  # of the list items around
        self.quotes = 0
        self.depth = 0
        self.begun = True  # the next block goes on where the writer stands: at the start, behind a list mark, inside a new quote
        self.after_mark = False

    def flow(self) -> Flow:
        return Flow(
            text="".join(self.words),
            spans=tuple(self.spans),
            blocks=tuple(self.ends[True]),
            parts=tuple(self.ends[False]),
            solid=tuple(self.solid),
            code=tuple(self.code_ranges),
        )

    # Blocks

    def blocks(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            match block:
                case Paragraph(runs=runs):
                    self.line(block.breaks)
                    self.inline(runs)
                case Heading():
                    self.line(block.breaks)
                    self.heading(block)
                case Rule():
                    self.line(block.breaks)
                    self.put(block.spelled)
                case Code():
                    self.line(block.breaks, own=True)
                    self.code(block.text, f"{block.fence}{block.info}", block.fence, language=block.language)
                case Table():
                    self.line(block.breaks, own=True)
                    self.table(block)
                case Quote():
                    self.line(block.breaks, own=True)
                    self.quote(block)
                case List():
                    self.list(block)
                case _:
                    assert_never(block)

    def line(self, breaks: int, *, own: bool = False) -> None:
        """Go to where the next block begins. One of its own stands at the margin: its lines must be whole wherever a cut falls."""
        if own and self.after_mark:
            breaks, self.begun = 1, False
        if not self.begun:
            self.ends[self.depth == 0].append(self.at)
            self.put("\n" * max(breaks, 1))
            if not own:
                self.put(self.indent)
        self.begun = self.after_mark = False

    def heading(self, block: Heading) -> None:
        if block.level <= self.dialect.headings:
            start = self.at
            self.inline(block.runs)
            self.span(start, open=f"{'#' * block.level} ", rank=_INLINE - 1, inline=True)
            return
        bold = Mark(Style.STRONG)
        self.inline(tuple(replace(run, marks=(bold, *(m for m in run.marks if m.style is not Style.STRONG))) for run in block.runs))

    def code(self, text: str, opening: str, closing: str, *, head: Sequence[str] = (), language: str = "") -> None:
        """Lines shown as they are, framed as the dialect frames code; `head` is repeated with the frame."""
        start, quoted = self.at, self.dialect.quote * self.quotes
        self.put(text.rstrip("\n") if quoted else text)  # an empty last line has nothing that could carry the quote's mark
        self.code_ranges.append((start, self.at))
        if self.dialect.fences:
            frame = "".join(f"{quoted}{line}\n" for line in (opening, *head))
            self.span(start, open=frame, close=f"\n{quoted}{closing}", rank=_FRAME)
        elif self.dialect.entities:
            self.span(start, open="".join(f"{line}\n" for line in head), rank=_FRAME, entity="pre", language=language)
        else:
            lead = self.indent + _INDENT
            self.span(start, open="".join(f"{quoted}{lead}{line}\n" for line in head), rank=_FRAME)
            self.lead(start, lead, _LEAD + self.quotes)

    def table(self, block: Table) -> None:
        if self.dialect.native_tables and self.native_table(block):
            return
        if narrow := grid(block):
            head, rows = (narrow.head, narrow.rows) if narrow.rows else ((), narrow.head)
            fence = fence_around("\n".join((*narrow.head, *narrow.rows)))
            self.code("\n".join(rows), fence, fence, head=head)
            return
        for number, row in enumerate(sentences(block)):
            self.put("\n" * bool(number))
            self.mark(self.dialect.bullet or "-")
            self.inline(row)

    def native_table(self, block: Table) -> bool:
        head, *rows = (self.native_row(row) for row in (block.head, *block.rows))
        rule = "|".join(["", *({"left": ":--", "right": "--:", "center": ":-:"}.get(align, "---") for align in block.aligns), ""])
        if len(head) > NATIVE_HEAD_MAX:
            return False
        start, quoted = self.at, self.dialect.quote * self.quotes
        self.put("\n".join(rows or (head, rule)))
        if rows:
            self.span(start, open=f"{quoted}{head}\n{quoted}{rule}\n", rank=_FRAME)
        return True

    def native_row(self, cells: Iterable[Runs]) -> str:
        written = (write((Paragraph(breaks=0, runs=cell),), self.dialect) for cell in cells)
        return f"| {' | '.join(shown(flow, 0, len(flow.text)).text.replace('|', chr(92) + '|') for flow in written)} |"

    def quote(self, block: Quote) -> None:
        start, indent = self.at, self.indent
        self.begun, self.indent = True, ""
        self.depth, self.quotes = self.depth + 1, self.quotes + 1
        self.blocks(block.blocks)
        self.depth, self.quotes, self.indent = self.depth - 1, self.quotes - 1, indent
        if not self.dialect.entities:
            self.lead(start, self.dialect.quote, _LEAD + self.quotes)
        elif not self.quotes:  # quotes do not nest there
            self.span(start, rank=_QUOTED, entity="blockquote")

    def list(self, block: List) -> None:
        for item in block.items:
            self.line(item.blocks[0].breaks)
            self.item(item)

    def item(self, item: Item) -> None:
        mark = item.mark if item.mark[0].isdigit() else self.dialect.bullet or item.mark
        outer = self.indent
        self.mark(mark)
        self.begun = self.after_mark = True
        self.depth, self.indent = self.depth + 1, outer + " " * (len(mark) + 1)
        self.blocks(item.blocks)
        self.depth, self.indent = self.depth - 1, outer
        self.begun = self.after_mark = False

    # Words

    def inline(self, runs: Runs) -> None:
        opened: list[tuple[Mark, int]] = []
        for run in (*runs, Run("", "")):
            marks = self.marks(run)
            common = 0
            while common < min(len(opened), len(marks)) and opened[common][0] is marks[common]:
                common += 1
            for mark, start in reversed(opened[common:]):
                self.close(mark, start)
            opened[common:] = [(mark, self.at) for mark in marks[common:]]
            self.run(run)

    def marks(self, run: Run) -> tuple[Mark, ...]:
        """Beside the text, code goes under no other entity but a link (CH-138)."""
        return tuple(mark for mark in run.marks if mark.style is Style.LINK) if self.dialect.entities and run.ticks else run.marks

    def run(self, run: Run) -> None:
        start, text = self.at, run.text if run.ticks else self.literal(run)
        self.put(text)
        if run.ticks and self.dialect.fences:
            pad = " " if text.startswith("`") or text.endswith("`") else ""
            self.span(start, open=run.ticks + pad, close=pad + run.ticks, rank=_INLINE + 1)
        elif run.ticks and self.dialect.entities and not any(mark.style is Style.LINK for mark in run.marks):
            self.span(start, rank=_INLINE + 1, entity="code")
        if run.solid:
            self.solid.append((start, self.at))
        elif self.dialect.as_spelled:
            self.solid += ((start + found.start(), start + found.end()) for found in _ESCAPE.finditer(text))

    def literal(self, run: Run) -> str:
        text = run.spelled if self.dialect.as_spelled else run.text
        if self.dialect.literal:
            text = self.dialect.literal.sub(lambda found: re.sub(r"(?=\S)", r"\\", found[0]), text)
        return text.translate(self.dialect.swaps).replace("\n", "\n" + self.indent)

    def close(self, mark: Mark, start: int) -> None:
        if mark.style is Style.LINK:
            self.close_link(mark.url, start)
        elif self.dialect.entities:
            self.span(start, rank=_INLINE, inline=True, entity=_ENTITY_OF[mark.style])
        elif sign := self.dialect.styles.get(mark.style):
            self.span(start, open=sign, close=sign, rank=_INLINE, inline=True)

    def close_link(self, url: str, start: int) -> None:
        text = self.since(start)
        if url.removeprefix("mailto:") == text or url == text:
            return
        if self.dialect.links is Links.ENTITIES and not url.startswith("mailto:"):  # which the Bot API does not link
            self.span(start, rank=_INLINE, inline=True, entity="text_link", url=url)
        elif self.dialect.links is Links.MARKS and len(url) <= ADDRESS_MAX:
            safe = url.replace("(", "%28").replace(")", "%29")
            self.span(start, open="[", close=f"]({safe})", rank=_INLINE, inline=True)
        else:
            begin = self.at
            self.put(f" ({url})" if text.strip() else url)
            self.solid.append((begin, self.at))

    # What the rest leans on

    def put(self, text: str) -> None:
        self.words.append(text)
        self.at += len(text)

    def since(self, start: int) -> str:
        """The words written after position `start`, without joining all that came before."""
        back: list[str] = []
        length = self.at - start
        for word in reversed(self.words):
            if length <= 0:
                break
            back.append(word)
            length -= len(word)
        return "".join(reversed(back))

    def mark(self, mark: str) -> None:
        start = self.at
        self.put(f"{mark} ")
        self.solid.append((start, self.at + 1))  # with the first letter behind it: a mark alone is no line

    def lead(self, start: int, mark: str, rank: int) -> None:
        """Put `mark` before each line written since `start`."""
        for line in _LINES.findall(self.since(start)):
            self.spans.append(Span(start=start, end=start + len(line), open=mark, rank=rank))
            start += len(line)

    def span(self, start: int, *, rank: int, open: str = "", close: str = "", inline: bool = False, entity: str = "", **about: str) -> None:
        if start < self.at:
            self.spans.append(Span(start=start, end=self.at, open=open, close=close, rank=rank, inline=inline, entity=entity, **about))
