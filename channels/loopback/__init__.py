"""The shipped fake: a whole chat platform in memory, with people, groups, edits, redelivery and faults, behind the same port as the real ones.

`LoopbackPlatform` is the other side: it outlives an adapter that is killed, delivers again what was not acknowledged, keeps what it was sent,
and fails as its fault plan says. `LoopbackChannel` is the adapter. The contract suite runs on it; so can a test of anything above the port.
"""

from channels.loopback.adapter import LoopbackChannel
from channels.loopback.chat_platform import Call, LoopbackPlatform, Shown
from channels.loopback.settings import CAPABILITIES

__all__ = ["CAPABILITIES", "Call", "LoopbackChannel", "LoopbackPlatform", "Shown"]
