"""The SDK's client as we want it, and what its transport errors mean. Imports the SDK: whoever imports this waits for it (2 s)."""

from __future__ import annotations

import ipaddress

import httpx2
import openai

from agent.errors import Misfit, ModelBroken, ModelBusy, ModelError, ModelMisconfigured

NO_ADDRESS = "this is no http address: it should look like https://api.openai.com/v1"
NO_KEY = "the API key holds characters that no key has: copy it again"
CONNECT_S = 5.0
LIMITS = (1000, 20)
"""Connections in all and kept open. 200 conversations may ask at once (RL-8); every request looks at each idle one again, so few are kept."""


def connect(base_url: str, api_key: str, *, timeout_s: float, keep_alive: bool) -> openai.AsyncOpenAI:
    """A client without retries and redirects. Nothing of it comes from the environment but the proxy, and that not for loopback addresses.

    Raises ModelMisconfigured for a base_url or key that cannot be sent.
    """
    url = _url(base_url)
    if not api_key.isascii() or not api_key.isprintable():
        raise ModelMisconfigured(NO_KEY, misfit=Misfit.KEY)
    timeout = httpx2.Timeout(timeout_s, connect=CONNECT_S)
    http = httpx2.AsyncClient(
        timeout=timeout,
        limits=httpx2.Limits(max_connections=LIMITS[0], max_keepalive_connections=LIMITS[1] if keep_alive else 0),
        follow_redirects=False,
        trust_env=not _is_loopback(url.host),
        verify=url.scheme == "https",  # plain http needs no certificates, and loading them holds the loop for 0.25 s
    )
    client = openai.AsyncOpenAI(base_url=url, api_key=api_key or "none", max_retries=0, timeout=timeout, http_client=http)
    client.organization = client.project = None  # the SDK takes them from the environment
    return client


def _url(base_url: str) -> httpx2.URL:
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL as error:
        raise ModelMisconfigured(NO_ADDRESS, misfit=Misfit.FORM) from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ModelMisconfigured(NO_ADDRESS, misfit=Misfit.FORM)
    return url


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def unreachable(cause: BaseException | None) -> ModelError:
    """What went wrong before the answer's head; `cause` is the transport's error."""
    match cause:
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            return ModelBusy(f"cannot connect to the provider ({type(cause).__name__})", excerpt=str(cause))
        case httpx2.TimeoutException():
            return ModelBusy(f"the provider did not answer in time ({type(cause).__name__})")
        case httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            return ModelMisconfigured(NO_ADDRESS, misfit=Misfit.FORM)
        case httpx2.DecodingError():
            return ModelBroken("the provider's answer cannot be unpacked")
        case _:
            return ModelBusy(f"the connection to the provider was cut ({type(cause).__name__})")


def interrupted(error: httpx2.HTTPError | httpx2.StreamError) -> ModelError:
    """What went wrong in the middle of the answer."""
    return ModelBusy("the connection was cut in the middle of the answer") if not isinstance(error, httpx2.DecodingError) else unreachable(error)
