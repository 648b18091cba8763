"""The fault plan: every row of RL-20 and every row of the model cases that a server can play, by name.

A name is given to `FakeModel.will(*FAULTS[name])`, posted to `/__plan`, or asked for by the model name `fault:<name>`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.peers.model.replies import HTML, Cut, Hang, Pause, Reply, calls, delta, error, piece, stream, text, usage, whole

_OK = (delta("Hello"), delta(finish="stop"), usage(12, 3))
_EMPTY = {"role": "assistant", "content": ""}
_NOTHING: dict[str, object] = {}
_SEARCH = piece(0, call_id="call_1", name="search", arguments='{"q":"x"}')

FAULTS: Mapping[str, tuple[Reply, ...]] = {
    # RL-20
    "empty-choices": (whole({"id": "1", "choices": []}),),
    "null-delta": (
        stream(
            {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
            {"choices": [{"index": 0, "finish_reason": None}]},
            delta("ok", finish="stop"),
        ),
    ),
    "only-reasoning": (stream(delta(reasoning_content="first I should"), delta(finish="stop"), usage(12, 3)),),
    "malformed-tool-json": (calls(piece(0, call_id="call_1", name="search", arguments='{"q": "x')),),
    "unknown-tool": (calls(piece(0, call_id="call_1", name="no_such_tool", arguments="{}")),),
    "id-less-calls": (calls(piece(0, name="search", arguments="{}"), piece(1, call_id="", name="search", arguments="{}")),),
    "endless-tool-loop": (calls(_SEARCH),) * 50,
    "401": (error(401, "Incorrect API key provided: sk-abcd1234efgh.", code="invalid_api_key", type="invalid_request_error"),),
    "404": (error(404, "The model `x` does not exist or you do not have access to it.", code="model_not_found"),),
    "429-with-wait": (error(429, "Rate limit reached", code="rate_limit_exceeded", headers={"Retry-After": "7"}),),
    "429-without-wait": (error(429, "Rate limit reached", code="rate_limit_exceeded"),),
    "429-quota": (error(429, "You exceeded your current quota, please check your plan.", code="insufficient_quota", type="insufficient_quota"),),
    "500": (error(500, "The server had an error", type="server_error"),),
    "hang-before-first-byte": (Reply(steps=(Hang(),)),),
    "stall-mid-stream": (stream(delta("The capital "), Hang()),),
    "cut-connection": (stream(delta("The capital "), Pause(0.02), Cut()),),
    "cut-before-first-byte": (Reply(steps=(Cut(),)),),
    "context-overflow": (error(400, "maximum context length is 8192 tokens, you requested 9120", code="context_length_exceeded"),),
    "non-json": (stream(delta("Hel"), '{"choices":[{"ind', done=False),),
    "wrong-content-type": (Reply(steps=stream(*_OK).steps, content_type="text/plain"),),
    "html": (whole("<html><head><title>502</title></head><body><h1>Bad gateway</h1></body></html>", content_type=HTML),),
    "usage-missing": (stream(delta("Hello"), delta(finish="stop")),),
    "no-finish-reason": (stream(delta("Hello"), done=False),),
    "error-frame": (stream(delta("Hel"), {"error": {"message": "The engine is overloaded", "type": "server_error"}}, done=False),),
    "nothing": (Reply(),),
    # The model cases
    "MD-01": (
        stream({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}, delta("Hello"), delta(finish="stop"), usage(12, 3)),
    ),
    "MD-02": (whole({"id": None, "choices": None, "error": {"message": "upstream overloaded"}}),),
    "MD-03": (
        stream(
            {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
            {"choices": [{"index": 0, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]},
        ),
    ),
    "MD-04": (
        stream(delta("Hello"), {"choices": [{"index": 0, "delta": _NOTHING, "finish_reason": "stop"}], "usage": None}),
        stream(delta("Hello"), delta(finish="stop")),
        stream(delta("Hello"), delta(finish="stop"), usage(12, None)),
    ),
    "MD-05": (whole({"choices": [{"index": 0, "message": _EMPTY, "finish_reason": "stop"}]}), text("fine")),
    "MD-06": (
        whole({"choices": [{"index": 0, "message": {**_EMPTY, "reasoning_content": "first I should"}, "finish_reason": "length"}]}),
    ),
    "MD-07": (calls(_SEARCH), stream(delta(""), delta(finish="stop"))),
    "MD-08": (stream(delta("The capital "), Pause(0.02), Cut()), text("The capital is Bern.")),
    "MD-09": (calls(piece(0, call_id="call_1", name="now", arguments="")),),
    "MD-10": (calls(piece(0, call_id="call_1", name="say", arguments='{"text":"\\u4f'), piece(0, arguments='60"}')),),
    "MD-11": (
        calls(piece(0, call_id="call_1", name="", arguments="{}")),
        calls(piece(0, call_id="call_2", name=" ", arguments="{}")),
        text("Plain."),
    ),
    "MD-13": (calls(_SEARCH),) * 50,
    "MD-14": (calls(_SEARCH),) * 810,
    "MD-15": (error(400, "unsupported field: messages.2.reasoning_content"),),
    "MD-17": (error(400, "maximum context length is 8192 tokens, you requested 9120"), text("fine")),
    "MD-19": (stream('{"choices":[{"index":0,"delta":{"content":"ok \\ud83d done"},"finish_reason":"stop"}]}'),),
}
