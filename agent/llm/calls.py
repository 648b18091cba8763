"""Tool calls put together from their pieces (MD-10). Nothing is parsed here: a piece may end inside an escape.

Pieces belong together by `index`; `id` and `name` come in the first. What servers do beside that: no index at all, the index 0 for every one of
several parallel calls, the name again in each piece, an empty or no id, the same id twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

from agent.llm.frames import CallPiece
from agent.llm.port import ToolCall
from agent.llm.surrogates import mend


def new_call_id() -> str:
    return f"call_{uuid4().hex[:24]}"


class _Draft:
    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class CallAssembler:
    def __init__(self) -> None:
        self._drafts: list[_Draft] = []
        self._by_index: dict[int, _Draft] = {}

    def feed(self, pieces: Iterable[CallPiece]) -> None:
        """The pieces of one delta, in order."""
        touched: set[int] = set()
        for piece in pieces:
            draft = self._draft_for(piece, touched)
            touched.add(id(draft))
            draft.id = draft.id or piece.id
            if piece.function is not None:
                if piece.function.name != draft.name:
                    draft.name += piece.function.name
                draft.arguments.append(piece.function.arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """The complete calls in the order they came. Each id is there and unique; a name may be empty, which the runtime answers (MD-11)."""
        taken: set[str] = set()
        calls: list[ToolCall] = []
        for draft in self._drafts:
            call_id = mend(draft.id).strip()
            if not call_id or call_id in taken:
                call_id = new_call_id()
            taken.add(call_id)
            calls.append(ToolCall(id=call_id, name=mend(draft.name).strip(), arguments=mend("".join(draft.arguments))))
        return tuple(calls)

    def _draft_for(self, piece: CallPiece, touched: set[int]) -> _Draft:
        last = self._drafts[-1] if self._drafts else None
        draft = last if piece.index is None else self._by_index.get(piece.index)
        if draft is None or self._opens_another(piece, draft, again=id(draft) in touched):
            draft = _Draft()
            self._drafts.append(draft)
            if piece.index is not None:
                self._by_index[piece.index] = draft
        return draft

    @staticmethod
    def _opens_another(piece: CallPiece, draft: _Draft, *, again: bool) -> bool:
        """Whether a piece that points at a draft starts a new call: another id, or a name where the draft has its own and is past it."""
        if piece.id and draft.id and piece.id != draft.id:
            return True
        name = piece.function.name if piece.function is not None else ""
        has_arguments = any(draft.arguments)
        return bool(name and draft.name) and (again or (has_arguments and name != draft.name)) and not (piece.id and piece.id == draft.id)
