"""What a platform says, as it is parsed at the edge.

Unknown fields are left alone, a null is an absent field; a wrong type or a missing field raises pydantic's ValidationError.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, model_validator


def _id(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("an id is a whole number or a text")
    return str(value)


Id: TypeAlias = Annotated[str, BeforeValidator(_id)]
"""Numbers of some platforms, which pass 2^53, and texts here: nobody counts with them (CH-1)."""


class Frame(BaseModel):
    """A value: errors do not repeat what was said, for it may be private."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, given: object) -> object:
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in cast("dict[str, object]", given).items() if value is not None}
