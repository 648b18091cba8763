"""Secrets are seen in every language people write here, and ordinary talk about them is not taken for one (WD-22). No sample is real."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.secret_patterns import API_KEY, CARD, PASSWORD, PRIVATE_KEY, TOKEN, find_secret, luhn

# Put together here, so that no scanner of repositories takes this file for a leak.
OPENAI = "sk-" + "proj-Ab3dEf6hIj9" * 2
AWS = "AKIA" + "IOSFODNN7" + "EXAMPLE"
GITHUB = "ghp" + "_16C7e42F292c6912E7710c838347Ae178B4a"
TELEGRAM = "110201543" + ":AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1"
DISCORD = "MTk4NjIyNDgzNDcxOTI1MjQ4" + ".Cl2FMQ." + "ZnCjm1XVW7vRze4b7Cq4se7kKWs"
JWT = "eyJhbGciOiJIUzI1NiJ9" + ".eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
VISA = "4111 1111 1111 1111"

SECRETS = [
    (PRIVATE_KEY, "-----BEGIN " + "OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA"),
    (PRIVATE_KEY, "-----BEGIN " + "PRIVATE KEY-----"),
    (PRIVATE_KEY, "鍵はこれ: -----BEGIN " + "RSA PRIVATE KEY-----"),
    (PRIVATE_KEY, "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----"),
    (API_KEY, f"use {OPENAI} for the demo"),
    (API_KEY, f"APIキーは{OPENAI}です"),
    (API_KEY, f"密钥是{OPENAI}，别告诉别人"),
    (API_KEY, f"- AWS: `{AWS}`"),
    (API_KEY, "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"),
    (API_KEY, "sk" + "_live_4eC39HqLyjWDarjtT1zdp7dc"),
    (TOKEN, f"token {GITHUB}"),
    (TOKEN, f"令牌{GITHUB}"),
    (TOKEN, f"トークン（{GITHUB}）"),
    (TOKEN, TELEGRAM),
    (TOKEN, f"https://api.telegram.org/bot{TELEGRAM}/getMe"),
    (TOKEN, f"bot token is {DISCORD}"),
    (TOKEN, f"Authorization: Bearer {JWT}"),
    (TOKEN, "xoxb" + "-123456789012-abcdefABCDEF"),
    (TOKEN, "hf" + "_abcdefghijklmnopqrstuvwxyz0123"),
    (
        TOKEN,
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key="
        + "693a91f6-7xxx-4bc4-97a0-0ec2sifa5aaa".replace("x", "1").replace("s", "5").replace("i", "1"),
    ),
    (TOKEN, "AccountKey=" + "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq"),
    (TOKEN, "client_secret: 8f14e45fceea167a5a36dedd4bea2543"),
    (TOKEN, "API key = 9a0b1c2d3e4f5a6b7c8d"),
    (TOKEN, "APIキーは 9a0b1c2d3e4f5a6b7c8d です"),
    (TOKEN, "密钥：9a0b1c2d3e4f5a6b7c8d"),
    (PASSWORD, "postgresql://me:hunter2@db.example.com/app"),
    (PASSWORD, "password: hunter2"),
    (PASSWORD, "My password is hunter2!"),
    (PASSWORD, "the Wi-Fi password for the office is Tr0ub4dor&3"),
    (PASSWORD, "**Password:** `correcthorse9`"),
    (PASSWORD, "pwd=Qwerty!23"),
    (PASSWORD, "PIN: 4929"),
    (PASSWORD, "my pin is 830215"),
    (PASSWORD, "パスワードは hunter2 です"),
    (PASSWORD, "パスワードはhunter2です"),
    (PASSWORD, "パスワード：「ｈｕｎｔｅｒ２」"),
    (PASSWORD, "暗証番号は4929です"),
    (PASSWORD, "密码是hunter2，记住"),
    (PASSWORD, "密码：hunter2"),
    (PASSWORD, "WiFi密码为 88776655"),
    (PASSWORD, "密碼是 Qwerty!23"),
    (PASSWORD, "密码改成了 Qwerty!23"),
    (PASSWORD, "口令: abc@2024x"),
    (PASSWORD, "pw: hunter2!"),
    (PASSWORD, "Пароль: hunter2"),
    (PASSWORD, "mot de passe : hunter2"),
    (PASSWORD, "Das Passwort lautet hunter2"),
    (PASSWORD, "비밀번호는 hunter2"),
    (PASSWORD, "pass\u200bword: hunter2"),
    (CARD, VISA),
    (CARD, "card 4111111111111111, 12/27"),
    (CARD, "4111 1111 1111 1111 12/27 123"),
    (CARD, "4111-1111-1111-1111"),
    (CARD, "カード番号は4111111111111111です"),
    (CARD, "卡号是5500 0000 0000 0004"),
    (CARD, "４１１１ １１１１ １１１１ １１１１"),
    (CARD, "Amex 3782 822463 10005"),
    (CARD, "JCB 3530111333300000"),
    (CARD, "银联 6222 0200 0000 0000 000"),
]

HARMLESS = [
    "My password is too short.",
    "The password was changed on 2026-03-08.",
    "password: never write it down",
    "password: ********",
    "Password: <your password>",
    "password: ${DB_PASSWORD}",
    "The password is stored in 1Password.",
    "Password reset at 14:30, mailed to anna@example.com",
    "A password has 12 characters at least; password: 12 characters",
    "The password is at https://example.com/reset",
    "password = get_password()",
    "passwords are hashed with argon2",
    "Anna forgot the password for the club's router again",
    "She asked for a passport, not a password",
    "PIN: 4 digits",
    "pin: A4-size poster",
    "pinned: 20260308",
    "pin is on the letter of 2024-05-06",
    "I pinned it: 2026",
    "パスワードは変更済みです",
    "パスワードは8文字以上",
    "パスワードは2026-03-08に変更した",
    "パスワードは2026年3月に変更",
    "パスワードは12文字以上にする",
    "パスワードはメモ帳にある",
    "暗証番号は4桁",
    "トークンは 50000 まで",
    "密码是不能告诉别人的",
    "密码：至少12位",
    "密码在2026年3月改过",
    "密码已经改成新的了",
    "口令是“芝麻开门”那一类的",
    "秘钥存放在保险箱里",
    "令牌上限是50000个",
    "token limit is 50000 tokens per prompt",
    "token: budget 200_000",
    "the secret is to rest the dough for 24 hours",
    "secret: patience",
    "The access token is refreshed every 3600 seconds",
    "api key: see config.json",
    "API key: https://platform.example.com/account/api-keys",
    "sk-learn and sk-image are fine libraries to begin with",
    "task-management-for-large-distributed-teams-2026",
    "order 4111111111111112",
    "order no. AB4111111111111111",
    "+4111111111111111",
    "1234567812345670",
    "Discord id 198622483471925248, message 1214567890123456789",
    "Telegram chat -1001234567890, at 1772962013589",
    "WeChat order 4200001234202603081234567890",
    "身份证 620102199003077793",
    "ISBN 978-3-16-148410-0, EAN 4006381333931",
    "IMEI 356938035643809",
    "0.4111111111111111",
    "pi is 3.14159265358979323846",
    "tracking 0000 0000 0000 0000",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid 123e4567-e89b-42d3-a456-426614174000",
    "commit 2774780, then e413fc2",
    "git@github.com:anna/club.git and https://example.com/a:b@c",
    "see https://example.com/?token=short&page=2",
    "bearer of good news: everything works as it did before 2026",
    "-----BEGIN CERTIFICATE-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ anna@laptop",
    "明日は10時30分から会議。会議室は3階、参加者は12人です。",
    "张三的生日是1990年3月7日，电话13800138000。",
    "Anna, born 1990-03-07, phone +81 90 1234 5678, lives at 12 Rue de la Paix",
]


@pytest.mark.rule("WD-22")
@pytest.mark.parametrize(("kind", "text"), SECRETS)
def test_a_secret_is_named_by_its_kind(kind: str, text: str) -> None:
    assert find_secret(text) == kind
    assert find_secret(f"- 2026-03-08: {text} (Anna)\n- next line\n") == kind


@pytest.mark.rule("WD-22")
@pytest.mark.parametrize("text", HARMLESS)
def test_talk_about_secrets_and_numbers_of_every_day_pass(text: str) -> None:
    assert find_secret(text) is None


@pytest.mark.rule("WD-22")
@settings(deadline=None)
@given(st.text(max_size=200))
def test_the_answer_never_holds_a_word_of_the_text(text: str) -> None:
    assert find_secret(text) in (None, PRIVATE_KEY, API_KEY, TOKEN, PASSWORD, CARD)


@pytest.mark.parametrize(
    "piece",
    ["a", "1", "1 ", "4111 ", "-", "sk-", "eyJ", "password ", "password is ", "パスワードは", "密码：", "://a:", "token=", "Bearer 1", "[", "\u200b"],
)
def test_no_text_makes_the_search_slow(piece: str) -> None:
    start = time.process_time()
    find_secret(piece * (262_144 // len(piece)))
    assert time.process_time() - start < 5


def test_luhn_checks_the_last_digit() -> None:
    assert luhn("4111111111111111")
    assert not any(luhn(f"411111111111111{digit}") for digit in "023456789")
