"""Under which names this gateway answers, and whether it may listen where the configuration says (WO-60, WO-61). Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import urlsplit

from gateway.config import Web
from gateway.config.types import is_loopback

SECRET_SHORTEST = 16  # characters of the proxy's secret

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The values of `Host` and `Origin` that are ours; lower case, as a browser writes them."""

    hosts: frozenset[str]
    origins: frozenset[str]
    https_hosts: frozenset[str]  # those of `hosts` that browsers reach through TLS


@lru_cache(maxsize=64)
def names(host: str, public_url: str, address: str, port: int) -> Names:
    """Our names for a request that arrived at `address`:`port` of this machine: loopback, the configured host, that very address, and `public_url`.

    An address that a connection really arrived at is as safe as a loopback name: no foreign page can make a browser send it (rebinding needs a name).
    """
    local = {"localhost", "127.0.0.1", "[::1]"} | {_bracketed(name) for name in (host.lower(), address) if name and not _is_unspecified(name)}
    hosts = _with_port(local, port, 80)
    origins = {f"http://{name}" for name in hosts}
    public = urlsplit(public_url)
    https_hosts: set[str] = set()
    if public.hostname:
        default = _DEFAULT_PORTS[public.scheme]
        outside = _with_port({_bracketed(public.hostname)}, public.port or default, default)
        hosts |= outside
        origins |= {f"{public.scheme}://{name}" for name in outside}
        https_hosts = outside if public.scheme == "https" else set()
    return Names(hosts=frozenset(hosts), origins=frozenset(origins), https_hosts=frozenset(https_hosts))


def plain_address(text: str) -> str:
    """An IP address in its one usual form, an IPv4 address in IPv6 clothes undressed; empty for anything else."""
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return ""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def check_bind(web: Web, has_accounts: bool) -> str | None:
    """Why the page may not be served as configured, as a sentence for the operator; None when it may (WO-60, WP-09)."""
    secret = web.trusted_proxy.secret.get_secret_value()
    if secret and len(secret) < SECRET_SHORTEST:
        return f"channels.web.trusted_proxy.secret has {len(secret)} characters: use at least {SECRET_SHORTEST}, made at random"
    if web.trusted_proxy.header and not secret:
        return "channels.web.trusted_proxy.header is set without a secret, so anybody could send it: set channels.web.trusted_proxy.secret too"
    if is_loopback(web.host) or has_accounts or web.trusted_proxy.header:
        return None
    return (
        f"channels.web.host is {web.host}, which other machines can reach, but nobody has a password yet: "
        "start on 127.0.0.1 and give the owner a password, or set channels.web.trusted_proxy"
    )


def _with_port(hosts: set[str], port: int, default: int) -> set[str]:
    """Browsers leave the scheme's own port away."""
    return {f"{host}:{port}" for host in hosts} | (hosts if port == default else set())


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_unspecified(host: str) -> bool:
    return host in ("0.0.0.0", "::", "*")
