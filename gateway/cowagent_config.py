"""What of CowAgent's own `config.json` could stand in ours (WD-29): a list to be taken over by hand, for ours is never written. Pure.

The file holds keys for models and platforms, so of anything but the few settings that mean the same here only the name is ever shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import JsonValue, TypeAdapter, ValidationError

from gateway.config import Config

SAME = ("agent_max_context_turns", "agent_max_context_tokens", "knowledge", "deep_dream_enabled")
"""Keys with one meaning in both programs. `agent_workspace` is none: here it would decide to use that folder in place."""

_OBJECT = TypeAdapter(dict[str, JsonValue])
_NAME_MAX = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class TheirConfig:
    """`lines`: settings as lines for our `config.json`; `refused`: key and why its value cannot be ours; `unknown`: keys that we do not have, or
    that mean something else here, by name; `fault`: why nothing could be read, half a sentence."""

    lines: tuple[str, ...] = ()
    refused: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    fault: str = ""


def read_config(data: bytes) -> TheirConfig:
    """Their configuration from the bytes of the file. Never raises."""
    try:
        found = _OBJECT.validate_json(data.removeprefix(b"\xef\xbb\xbf"))
    except ValidationError:
        return TheirConfig(fault="it is no JSON object")
    lines: list[str] = []
    refused: list[tuple[str, str]] = []
    for key in SAME:
        if key not in found:
            continue
        try:
            Config.model_validate({key: found[key]})
        except ValidationError as error:
            refused.append((key, error.errors(include_url=False, include_input=False)[0]["msg"]))
        else:
            lines.append(f'"{key}": {json.dumps(found[key])}')
    unknown = tuple(sorted("".join(filter(str.isprintable, key))[:_NAME_MAX] for key in found if key not in SAME))
    return TheirConfig(lines=tuple(lines), refused=tuple(refused), unknown=unknown)
