"""`.scope.json` beside a scope's files (WD-3): what the folder is called for people, for its own name says nothing. Hidden from every tool."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

NAME = ".scope.json"


class ScopeCard(BaseModel):
    """`label`: what people call the person or place; `platform`: where it was met first; `timezone`: an IANA name, empty for none of its own."""

    model_config = ConfigDict(frozen=True)

    label: str = ""
    platform: str = ""
    timezone: str = ""

    def dump(self) -> bytes:
        return self.model_dump_json(indent=2).encode() + b"\n"

    @classmethod
    def load(cls, data: bytes) -> ScopeCard | None:
        """None for what is no card: a person may have opened the file."""
        try:
            return cls.model_validate_json(data)
        except ValidationError:
            return None
