"""Ports for servers that begin later than their address is told, or live several times on one."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress

FIRST, LAST = 20_000, 32_000  # below those that a system gives to connections: nobody is given ours while it waits for its server


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    while True:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
