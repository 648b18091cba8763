"""Rows of dreams and proposals as the page shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date

from channels.html import to_html
from gateway.http.dream_views import DreamChange, DreamView, ProposalView, RefusalView
from memory.diary import Happened
from memory.dream_guards import Refusal
from memory.dream_store import Dream
from memory.line_diff import DiffLine
from memory.proposal_store import Candidate, Proposal


def dream_view(dream: Dream) -> DreamView:
    return DreamView(
        id=dream.id,
        date=date.fromisoformat(dream.local_date),
        state=dream.state,
        trigger=dream.trigger,
        refusal=_refusal(Refusal.of_reason(dream.reason)),
        changes=tuple(map(_change, dream.changes)),
        story=to_html(story(dream.diary)),
        created_at=dream.created_at,
    )


def story(diary: str) -> str:
    """The narrative of a diary's section: without its heading and without the list, which is shown apart (WD-77)."""
    parts = diary.split("\n\n")
    return "\n\n".join(part for part in parts if not part.startswith("#") and not _is_list(part)).strip()


def _is_list(part: str) -> bool:
    title, *items = part.split("\n")
    return bool(items) and title.endswith(":") and all(line.startswith("- ") for line in items)


def _change(item: Happened) -> DreamChange:
    if item.kind == "dropped":
        return DreamChange(kind=item.kind, before=(item.text,), reason=item.reason)
    return DreamChange(kind=item.kind, before=item.old, after=item.text, reason=item.reason)


def proposal_view(proposal: Proposal, words: Mapping[str, str], found: tuple[DiffLine, ...]) -> ProposalView:
    """`words`: the entries of MEMORY.md by hash; `found`: the difference of a refused dream."""
    payload = proposal.payload
    return ProposalView(
        id=proposal.id,
        kind=proposal.kind,
        path=proposal.path,
        refusal=_refusal(Refusal(**payload["refusal"]) if "refusal" in payload else None),
        origin=str(Candidate.of_json(proposal.payload).row.origin) if proposal.kind == "candidate" else "",
        difference=found or _difference(proposal, words),
        created_at=proposal.created_at,
        expires_at=proposal.expires_at,
    )


def _difference(proposal: Proposal, words: Mapping[str, str]) -> tuple[DiffLine, ...]:
    if proposal.kind == "candidate":
        candidate = Candidate.of_json(proposal.payload)
        return lines((words[each] for each in candidate.replaces if each in words), [candidate.text])
    return lines(proposal.payload.get("removed", ()), proposal.payload.get("added", ()))


def lines(removed: Iterable[str], added: Iterable[str]) -> tuple[DiffLine, ...]:
    """Lines without their places, those that go first."""
    return (*(DiffLine("removed", text, None, None) for text in removed), *(DiffLine("added", text, None, None) for text in added))


def _refusal(found: Refusal | None) -> RefusalView | None:
    return RefusalView(kind=found.kind, lost=found.lost, total=found.total, limit=found.limit) if found else None
