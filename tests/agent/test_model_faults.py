"""What a refusal becomes, as tables: no network here."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agent.errors import ContextOverflow, Misfit, ModelBroken, ModelBusy, ModelError, ModelMisconfigured
from agent.llm.complaint import Complaint, read_complaint
from agent.llm.dialect import Dialect, learn
from agent.llm.faults import fault, is_filtered, retry_after_s
from agent.llm.masking import mask
from agent.llm.overflow import Overflow, overflow

NOW = datetime(2026, 3, 1, 9, 0, 0, tzinfo=UTC)

TOO_LONG: list[tuple[str, int | None, str, int | None, int | None]] = [
    ("OpenAI", 400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9120 tokens.", 8192, 9120),
    ("OpenAI", 400, "maximum context length is 8192 tokens, you requested 9120", 8192, 9120),
    ("OpenAI", 400, "Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    ("OpenAI", 400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300123 tokens.", 272000, 300123),
    ("OpenAI", 429, "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40123.", 30000, 40123),
    ("Groq", 413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce", 6000, 9000),
    ("Groq", 400, "Please reduce the length of the messages or completion.", None, None),
    ("llama.cpp", 400, "request (6031 tokens) exceeds the available context size (4096 tokens), try increasing it", 4096, 6031),
    ("llama.cpp", 400, "the request exceeds the available context size, try increasing it", None, None),
    ("llama.cpp", 500, "Context size has been exceeded.", None, None),
    ("llama.cpp", None, "Context size has been exceeded.", None, None),
    ("vLLM", 400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4500 in the messages, 500 in", 4096, 5000),
    (
        "vLLM",
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 100 output tokens and your prompt contains at least 3997 input "
        "tokens, for a total of at least 4097 tokens.",
        4096,
        4097,
    ),
    ("vLLM", 400, "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure that", 4096, 5000),
    (
        "vLLM",
        400,
        "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 3000 "
        "input tokens (2000 > 4096 - 3000).",
        4096,
        3000,
    ),
    ("SGLang", 400, "The input (5000 tokens) is longer than the model's context length (4096 tokens).", 4096, 5000),
    (
        "SGLang",
        400,
        "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 4500 from the input",
        4096,
        5000,
    ),
    ("Ollama", 400, "the input length exceeds the context length", None, None),
    (
        "LM Studio",
        400,
        "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
        4096,
        5000,
    ),
    ("Anthropic", 400, "prompt is too long: 215000 tokens > 200000 maximum", 200000, 215000),
    ("Anthropic", 400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length", 200000, 190000),
    ("DeepSeek", 400, "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens", 65536, 70000),
    ("OpenRouter", 400, "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens", 32768, 40000),
    ("Gemini", 400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1048575, 1196265),
    ("Gemini", 400, "The input token count exceeds the maximum number of tokens allowed 1048576.", 1048576, None),
    ("Mistral", 400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32768, 40000),
    ("xAI", 400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131072, 537812),
    ("TGI", 422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and", 4096, 4000),
    ("Qwen", 400, "Range of input length should be [1, 30720]", 30720, None),
    ("Kimi", 400, "Invalid request: Your request exceeded model token limit: 8192", 8192, None),
    ("Copilot", 400, "prompt token count of 135000 exceeds the limit of 128,000", 128000, 135000),
]


@pytest.mark.rule("RL-20", "WD-93")
@pytest.mark.case("MD-17")
@pytest.mark.parametrize(("provider", "status", "words", "limit", "sent"), TOO_LONG)
def test_a_request_too_long_is_recognised_with_its_numbers(
    provider: str, status: int | None, words: str, limit: int | None, sent: int | None
) -> None:
    assert overflow(status, Complaint(message=words)) == Overflow(limit, sent), provider


@pytest.mark.rule("WD-93")
@pytest.mark.parametrize("code", ["context_length_exceeded", "exceed_context_size_error", "request_too_large"])
def test_the_code_alone_is_enough(code: str) -> None:
    assert overflow(400, Complaint(message="no", code=code)) == Overflow()
    assert overflow(400, Complaint(message="no", type=code, n_ctx=4096, n_prompt_tokens=5000)) == Overflow(4096, 5000)


ORDINARY = [
    (400, "max_tokens is too large: 100000. This model supports at most 16384 completion tokens."),
    (400, "Invalid value for 'temperature': must be at most 2"),
    (400, "unsupported field: messages.2.reasoning_content"),
    (400, "messages: text content blocks must be non-empty"),
    (400, "tool_call_ids did not have response messages: call_1"),
    (400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 200 instead."),
    (429, "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s."),
    (429, "Too many tokens per minute"),
    (401, "This model's maximum context length is 8192 tokens"),
]


@pytest.mark.rule("WD-93")
@pytest.mark.parametrize(("status", "words"), ORDINARY)
def test_an_ordinary_refusal_is_never_taken_for_too_long(status: int, words: str) -> None:
    assert overflow(status, Complaint(message=words)) is None
    assert not isinstance(fault(status, Complaint(message=words), {}, secrets=()), ContextOverflow)


KINDS: list[tuple[int | None, str, type[ModelError]]] = [
    (401, '{"error":{"message":"no","code":"invalid_api_key"}}', ModelMisconfigured),
    (403, '{"error":"forbidden"}', ModelMisconfigured),
    (402, '{"error":{"message":"Insufficient Balance"}}', ModelMisconfigured),
    (404, "<html><body>404 page not found</body></html>", ModelMisconfigured),
    (405, "", ModelMisconfigured),
    (308, "", ModelMisconfigured),
    (429, '{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}', ModelMisconfigured),
    (429, '{"error":{"message":"suspended","type":"exceeded_current_quota_error"}}', ModelMisconfigured),
    (429, '[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 24.1s.","status":"RESOURCE_EXHAUSTED"}}]', ModelBusy),
    (400, '[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]', ModelMisconfigured),
    (400, '{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}', ModelMisconfigured),
    (400, '{"object":"error","message":"bad role","type":"BadRequestError","code":400}', ModelBroken),
    (422, '{"detail":[{"loc":["body","messages"],"msg":"field required","input":"a secret thought"}]}', ModelBroken),
    (408, "", ModelBusy),
    (409, "", ModelBusy),
    (429, "", ModelBusy),
    (500, "Internal Server Error", ModelBusy),
    (503, '{"error":{"message":"Loading model","type":"unavailable_error","code":503}}', ModelBusy),
    (529, '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', ModelBusy),
    (None, '{"error":{"message":"Provider returned error","code":502}}', ModelBusy),
    (None, '{"error":{"message":"Provider returned error","code":401}}', ModelMisconfigured),
    (None, '{"error":{"message":"upstream overloaded"}}', ModelBusy),
    (None, '{"error":"model runner has unexpectedly stopped"}', ModelBroken),
    (None, '{"error":{"message":"The server had an error","type":"server_error"}}', ModelBusy),
]


@pytest.mark.rule("RL-20")
@pytest.mark.parametrize(("status", "body", "kind"), KINDS)
def test_a_refusal_is_told_by_status_code_and_words(status: int | None, body: str, kind: type[ModelError]) -> None:
    error = fault(status, read_complaint(body), {}, secrets=())
    assert type(error) is kind
    assert "thought" not in error.excerpt
    assert "<" not in error.excerpt


@pytest.mark.rule("WO-3")
@pytest.mark.parametrize(
    ("status", "body", "misfit"),
    [
        (401, '{"error":{"message":"no","code":"invalid_api_key"}}', Misfit.KEY),
        (402, '{"error":{"message":"Insufficient Balance"}}', Misfit.CREDIT),
        (308, "", Misfit.REDIRECT),
        (404, "<html><body>404 page not found</body></html>", Misfit.ADDRESS),
        (405, "", Misfit.ADDRESS),
        (404, '{"error":{"message":"The model `x` does not exist","code":"model_not_found"}}', Misfit.MODEL),
        (404, '{"error":{"message":"model \'x\' not found","type":"not_found_error"}}', Misfit.MODEL),
        (400, '{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}', Misfit.MODEL),
    ],
)
def test_a_refusal_says_what_of_the_account_is_wrong_without_contradicting_itself(status: int, body: str, misfit: Misfit) -> None:
    error = fault(status, read_complaint(body), {}, secrets=())
    assert isinstance(error, ModelMisconfigured) and error.misfit is misfit
    assert "nothing answers" not in str(error) and "base_url" not in str(error)


WAITS: list[tuple[dict[str, str], str, float | None]] = [
    ({"retry-after": "7"}, "", 7),
    ({"retry-after": "1.5"}, "", 1.5),
    ({"retry-after-ms": "250", "retry-after": "7"}, "", 0.25),
    ({"retry-after": "Sun, 01 Mar 2026 09:00:30 GMT"}, "", 30),
    ({"retry-after": "Sun, 01 Mar 2026 08:00:00 GMT"}, "", 0),
    ({"retry-after": "-3"}, "", 0),
    ({"retry-after": "soon"}, "", None),
    ({"retry-after": "nan"}, "", None),
    ({}, "Please try again in 6m0.5s.", 360.5),
    ({}, "Please try again in 20ms.", 0.02),
    ({}, "Please retry in 24.180878813s.", 24.180878813),
    ({}, "Please retry after 3 seconds.", 3),
    ({}, "Rate limit reached", None),
]


@pytest.mark.rule("RL-20")
@pytest.mark.parametrize(("headers", "words", "seconds"), WAITS)
def test_the_wait_a_provider_names_is_read(headers: dict[str, str], words: str, seconds: float | None) -> None:
    assert retry_after_s(headers, Complaint(message=words), NOW) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.rule("RL-20")
def test_the_wait_google_names_is_read() -> None:
    body = '[{"error":{"code":429,"message":"quota","details":[{"@type":"x.RetryInfo","retryDelay":"35s"},{"reason":"y"}]}}]'
    assert retry_after_s({}, read_complaint(body), NOW) == 35


def test_a_filtered_prompt_is_no_fault() -> None:
    assert is_filtered(400, read_complaint('{"error":{"code":"content_filter","message":"The response was filtered"}}'))
    assert is_filtered(400, read_complaint('{"error":{"message":"Content Exists Risk"}}'))
    assert not is_filtered(400, read_complaint('{"error":{"message":"bad request"}}'))
    assert not is_filtered(500, read_complaint('{"error":{"code":"content_filter"}}'))


ECHOES = [
    "Incorrect API key provided: sk-proj-abc***xyz.",
    "Authorization: Bearer abcdefghij1234",
    "key AIzaSyA1234567890abcdef is not valid",
    "https://user:hunter22@host/v1 refused",
    "GET /v1/models?key=abcdef123 failed",
    "my-own-secret is wrong",
]


@pytest.mark.rule("RL-32")
@pytest.mark.parametrize("echo", ECHOES)
def test_a_key_in_a_complaint_is_masked(echo: str) -> None:
    masked = mask(echo, ["my-own-secret", ""])
    assert "***" in masked
    assert not any(part in masked for part in ("sk-proj", "abcdefghij", "AIza", "hunter22", "abcdef123", "my-own-secret"))


@pytest.mark.rule("RL-32")
def test_a_complaint_that_names_no_key_is_left_alone() -> None:
    words = "The model `x` does not exist: task-queue 12 of risk-free"
    assert mask(words, [""]) == words


LESSONS = [
    ("Unrecognized request argument supplied: stream_options", Dialect(stream_options=False)),
    ('Unknown name "include_usage": Cannot find field', Dialect(stream_options=False)),
    ("", Dialect(stream_options=False)),
    ("Bad Request", Dialect(stream_options=False)),
    ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", Dialect(limit_field="max_completion_tokens")),
    ("Unsupported value: 'temperature' does not support 0.3 with this model.", Dialect(temperature=False)),
    ("messages.2: invalid role", None),
]


@pytest.mark.parametrize(("words", "learned"), LESSONS)
def test_a_refusal_of_how_we_speak_teaches_the_dialect(words: str, learned: Dialect | None) -> None:
    body: dict[str, object] = {"stream_options": True, "max_tokens": 5, "temperature": 0.3}
    assert learn(Dialect(), body, words) == learned


def test_what_is_not_sent_cannot_be_refused() -> None:
    assert learn(Dialect(stream_options=False), {"messages": []}, "stream_options: extra fields not permitted") is None
