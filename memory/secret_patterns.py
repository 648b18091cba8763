"""What must never be kept: keys, tokens, passwords, card numbers, found by their shape or by the words around them (WD-22). Pure.

Known shapes come first, for they need no context. A password has no shape, so there a word for it must stand before a value that looks like one, in
the languages people write here; a sentence about passwords is not a password. Wrong alarms cost a line of memory, misses cost a secret: in doubt,
a value that mixes letters with digits or signs counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

PRIVATE_KEY = "private key"
API_KEY = "API key"
TOKEN = "access token"
PASSWORD = "password"
CARD = "card number"

_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")

# What begins a word and has a shape of its own. Letters may not stand before it, so that no word is cut in two.
_WORDS: tuple[tuple[str, str], ...] = (
    (PRIVATE_KEY, r"AGE-SECRET-KEY-1[0-9A-Z]{20,}|PuTTY-User-Key-File-\d"),
    (API_KEY, r"sk-(?:ant-|proj-|or-|svcacct-|admin-)?(?=[\w-]{0,80}\d)[A-Za-z0-9_-]{20,}"),  # OpenAI's kind, and many after it
    (API_KEY, r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}"),  # Stripe
    (API_KEY, r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])|LTAI[A-Za-z0-9]{12,}"),  # AWS, Aliyun
    (API_KEY, r"AIza[0-9A-Za-z_-]{35}"),  # Google
    (API_KEY, r"SG\.[\w-]{16,32}\.[\w-]{32,64}|key-[0-9a-f]{32}(?![A-Za-z0-9])|[0-9a-f]{32}-us\d{1,2}(?![A-Za-z0-9])"),  # senders of mail
    (API_KEY, r"(?:gsk_|xai-|pplx-|r8_|tvly-|nvapi-|fw_)(?=[\w-]{0,40}\d)[A-Za-z0-9_-]{20,}"),
    (TOKEN, r"gh[oprsu]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[\w-]{18,}"),
    (TOKEN, r"hf_[A-Za-z0-9]{24,}|npm_[A-Za-z0-9]{30,}|pypi-AgE[\w-]{30,}|dop_v1_[0-9a-f]{40,}"),
    (TOKEN, r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|ya29\.[\w-]{20,}|yg_[\w-]{16,}"),
    (TOKEN, r"xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}|hooks\.slack\.com/services/T\w+/B\w+/\w{16,}"),
    (TOKEN, r"\d{6,12}:[A-Za-z0-9_-]{35}(?![\w-])"),  # Telegram, alone or in an address behind /bot
    (TOKEN, r"bot\d{6,12}:[A-Za-z0-9_-]{35}(?![\w-])"),
    (TOKEN, r"[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,40}|discord(?:app)?\.com/api/webhooks/\d{15,}/[\w-]{40,}"),
    (TOKEN, r"qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=[0-9a-f-]{36}"),
    (TOKEN, r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{10,}"),  # JSON web token
)
_ANYWHERE: tuple[tuple[str, str], ...] = (
    (PRIVATE_KEY, r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    (TOKEN, r"AccountKey=[\w+/]{40,}|[?&](?:sig|access_token|X-Amz-Signature)=[\w%-]{16,}"),
    (TOKEN, r"(?i:\bbearer)\s{1,3}(?=[\w.~+/-]{0,200}\d)[\w.~+/-]{20,}"),
    (PASSWORD, r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/@:*<>$\[{(]{1,100}@[A-Za-z0-9\[]"),  # postgresql://me:secret@host
)
_SHAPES = tuple(
    [(kind, re.compile(f"(?<![A-Za-z0-9_-])(?:{shape})", re.ASCII)) for kind, shape in _WORDS]
    + [(kind, re.compile(shape, re.ASCII)) for kind, shape in _ANYWHERE]
)

_QUOTES = "[*_`\"'«»„“”‘’「」『』【】()\\[\\]]{0,4}"
# Between the word and the value: a sign, or "is" as each language says it, perhaps after what it is for.
_IS = (
    rf"{_QUOTES}(?:\s{{0,3}}(?:[:=]|:=|=>|->|→)\s{{0,3}}|\s{{1,3}}(?:is|was|are|ist|lautet|est|es|é|è|это)\s{{1,3}}"
    rf"|\s{{0,3}}(?:は|が|を|是|为|為|設定為|设置为|设为|改成了?|改为|는|은|이)\s{{0,3}}:?\s{{0,3}}|\s{{1,3}}[-–—]\s{{1,3}}){_QUOTES}\s?{_QUOTES}"
)
_FOR = r"(?:\s{0,2}(?:for|to|of|für|pour|para|на|от|для)\s{1,2}[^\s:=]{1,30}(?:\s[^\s:=]{1,30}){0,2})?"
_PASSWORD_WORDS = "|".join(
    (
        r"(?<![A-Za-z])(?:pass ?words?|pass ?phrase|pass ?code|passwd|pwd|pw|wi-?fi pass|kennwort|passwort)(?![a-z])",
        r"(?<![A-Za-z])(?:mot de passe|contraseña|senha|hasło|parola)(?![a-z])",
        "парол[ьяеюи]м?",
        "パスワード|パスフレーズ|パスコード|合言葉",
        "密码|密碼|口令",
        "비밀번호|암호",
    )
)
_PIN_WORDS = r"(?<![A-Za-z])(?:pin(?: ?code| number)?|code pin)(?![a-z])|пин-?код|暗証番号"
_KEY_WORDS = "|".join(
    (
        r"(?<![A-Za-z])(?:secret|access|client|private|encryption|app|corp|auth|bot|refresh|session)[ _-]?(?:key|token|secret)s?(?![a-z])",
        r"(?<![A-Za-z])(?:api[ _-]?(?:key|token|secret)|secret|token|api[ _-]?schlüssel)(?![a-z])",
        "apiキー|api キー|シークレット(?:キー)?|アクセスキー|秘密鍵|トークン",
        "密钥|密鑰|秘钥|令牌",
        "токен|ключ api|секретный ключ",
        "토큰",
    )
)
_VALUE = r"(?P<value>[!-~]{4,200})"
_PASSWORD_SAID = re.compile(f"(?:{_PASSWORD_WORDS}){_FOR}{_IS}{_VALUE}", re.IGNORECASE)
_PIN_SAID = re.compile(f"(?:{_PIN_WORDS}){_FOR}{_IS}(?P<value>[0-9]{{4,12}})(?![0-9A-Za-z])", re.IGNORECASE)
_KEY_SAID = re.compile(f"(?:{_KEY_WORDS}){_FOR}{_IS}{_VALUE}", re.IGNORECASE)

_PLACEHOLDER = re.compile(r"[*•x.…_-]+|[<$\[{%].*|your[-_ ]?.*|(?:re)?dact.*|.*\*{3}.*|n/?a|none|null|true|false|example.*|changeme.*", re.IGNORECASE)
# Numbers that say when or how much: 2026-03-08, 12:30, 24h, 3.11, 90% …
_AMOUNT = re.compile(r"[0-9]+(?:[-/.:,~][0-9]+)*[-/.:,~]?(?:th|st|nd|rd|h|d|s|m|min|gb|mb|kb|k|%|\+|am|pm|utc)?", re.IGNORECASE)
_COUNTED = re.compile(r"\s{0,2}(?:[年月日時时分秒文字位桁個个回件名次]|characters|chars|digits|letters|times|years|days|tokens|자리)")
_ADDRESS = re.compile(r"https?://\S+|[\w.+-]+@[\w-]+\.\w+|(?:[\w-]+\.)+(?:md|txt|json|py|com|org|net|html?|env)|/[\w./-]+|\w+\(\)?", re.IGNORECASE)

_NUMBERS = re.compile(r"(?<![0-9A-Za-z_+])(?<![0-9][.,])[0-9]+(?:[ -][0-9]+)*(?![A-Za-z_]|[.,][0-9])")
# How cards are printed: at one go, in fours, 4-6-5 (Amex), 4-6-4 (Diners), 6-13 (UnionPay).
_PRINTED = frozenset({(4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4), (6, 13), (14,), (15,), (16,), (17,), (19,)})
_BRANDS = re.compile(
    r"4(?:[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}|220[0-4][0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|35(?:2[89]|[3-8][0-9])[0-9]{12}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12}|62(?:[0-9]{14,15}|[0-9]{17})"
)


def find_secret(text: str) -> str | None:
    """The kind of the first secret found in `text` ("password", "card number" …), None for none. The value is told to nobody."""
    seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", text))
    return next(_kinds(seen), None)


def _kinds(text: str) -> Iterator[str]:
    yield from (kind for kind, shape in _SHAPES if shape.search(text))
    for said in (_PASSWORD_SAID, _PIN_SAID):
        if any(_is_password(match["value"], text[match.end() : match.end() + 12]) for match in said.finditer(text)):
            yield PASSWORD
    if any(_is_key(match["value"]) for match in _KEY_SAID.finditer(text)):
        yield TOKEN
    if any(_has_card(match[0]) for match in _NUMBERS.finditer(text)):
        yield CARD


def _trimmed(value: str) -> str:
    return value.strip("*_`\"'()[]<>,;.").rstrip("!?:")


def _is_password(value: str, after: str) -> bool:
    bare = _trimmed(value)
    if len(bare) < 4 or _PLACEHOLDER.fullmatch(value) or _PLACEHOLDER.fullmatch(bare) or _ADDRESS.fullmatch(bare):
        return False
    if bare.isdigit():
        return not _COUNTED.match(after) and not (len(bare) == 4 and bare.startswith(("19", "20")) and after[:1] in "-/年")
    if _AMOUNT.fullmatch(bare):
        return False
    letters, digits = any(map(str.isalpha, bare)), any(map(str.isdigit, bare))
    signs = any(sign in "!@#$%^&*+=~?" for sign in bare[:-1])
    mixed_case = bool(re.search(r"[a-z][A-Z]", bare)) and len(bare) >= 8
    return letters and (digits or signs or mixed_case)


def _is_key(value: str) -> bool:
    bare = _trimmed(value)
    if len(bare) < 16 or _PLACEHOLDER.fullmatch(bare) or _ADDRESS.fullmatch(bare):
        return False
    return any(map(str.isalpha, bare)) and sum(map(str.isdigit, bare)) >= 2 and not re.search(r"[(){}]", bare)


def _has_card(run: str) -> bool:
    groups = re.split("[ -]", run)
    for start in range(len(groups)):
        for end in range(start + 1, min(len(groups), start + 5) + 1):
            if tuple(map(len, groups[start:end])) not in _PRINTED:
                continue
            number = "".join(groups[start:end])
            if _BRANDS.fullmatch(number) and luhn(number):
                return True
    return False


def luhn(number: str) -> bool:
    """Whether the last of the ASCII digits `number` checks the others, as on bank cards."""
    doubled = (int(digit) * 2 if at % 2 else int(digit) for at, digit in enumerate(reversed(number)))
    return sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10 == 0
