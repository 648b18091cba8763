"""Everything the gateway counts about itself (WO-37), as one value with a registry of its own: handed to whoever counts, never a global.

Labels come from short fixed lists (channels, outcomes, purposes, states), never from people, chats or models: their number stays bounded.
"""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

_TURN_S = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)
_FIRST_TOKEN_S = (0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 60)
_RECALL_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The collectors; times are in seconds. Made by `new_metrics`."""

    registry: CollectorRegistry
    messages_in: Counter  # labels: channel, outcome
    messages_out: Counter  # labels: channel, outcome
    turn_seconds: Histogram
    first_token_seconds: Histogram
    model_calls: Counter  # labels: purpose, outcome
    tokens: Counter  # labels: kind (input, output, cached)
    recall_seconds: Histogram
    lane_depth: Gauge
    oldest_waiting_seconds: Gauge
    jobs: Gauge  # labels: state
    loop_lag_seconds: Gauge

    def exposition(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)


EXPOSITION_TYPE = CONTENT_TYPE_PLAIN_0_0_4


def new_metrics() -> Metrics:
    registry = CollectorRegistry()

    def counter(name: str, help_text: str, *labels: str) -> Counter:
        return Counter(f"yumegate_{name}", help_text, labels, registry=registry)

    def gauge(name: str, help_text: str, *labels: str) -> Gauge:
        return Gauge(f"yumegate_{name}", help_text, labels, registry=registry)

    def histogram(name: str, help_text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"yumegate_{name}", help_text, buckets=buckets, registry=registry)

    return Metrics(
        registry=registry,
        messages_in=counter("messages_in", "Events received, by what became of them.", "channel", "outcome"),
        messages_out=counter("messages_out", "Messages sent, by what became of them.", "channel", "outcome"),
        turn_seconds=histogram("turn_seconds", "From a message to its whole answer.", _TURN_S),
        first_token_seconds=histogram("first_token_seconds", "From a message to the first word of its answer.", _FIRST_TOKEN_S),
        model_calls=counter("model_calls", "Requests to models.", "purpose", "outcome"),
        tokens=counter("tokens", "Tokens sent to and received from models.", "kind"),
        recall_seconds=histogram("recall_seconds", "Searching memory for one answer.", _RECALL_S),
        lane_depth=gauge("lane_depth", "Messages waiting in all conversations."),
        oldest_waiting_seconds=gauge("oldest_waiting_seconds", "Age of the message that waits longest."),
        jobs=gauge("jobs", "Background jobs by state.", "state"),
        loop_lag_seconds=gauge("loop_lag_seconds", "How late the event loop came round the last time it was measured."),
    )
