"""Signatures, encryption and XML of the vendor's webhooks: exact vectors in both directions, and every change of them refused (section 8)."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from channels.wechat import crypto
from channels.wechat.crypto import Step, Unverified
from channels.wechat.official import xml
from tests.peers.wechat.wecom_server import seal_file

K3_KEY, K3_ID = "kWxPEV2UEDyxWpmPdKC3F4dgPDmOvfKX1HGnEUDS1aR", "wx49f0ab532d5d035a"
O_KEY, O_ID = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "wx0000000000000000"
O_RANDOM = b"0123456789abcdef"
K4_TEXT = """<xml>
<MsgType><![CDATA[text]]></MsgType>
<Content><![CDATA[test]]></Content>
<FromUserName><![CDATA[wx49f0ab532d5d035a]]></FromUserName>
<ToUserName><![CDATA[messense]]></ToUserName>
<AgentID>1</AgentID>
<CreateTime>1411525903</CreateTime>
</xml>"""
K5_TEXT = """<xml><ToUserName><![CDATA[wx49f0ab532d5d035a]]></ToUserName>
<FromUserName><![CDATA[messense]]></FromUserName>
<CreateTime>1411525903</CreateTime>
<MsgType><![CDATA[text]]></MsgType>
<Content><![CDATA[test]]></Content>
<MsgId>4363689963896700987</MsgId>
<AgentID>1</AgentID>
</xml>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """`head` and `tail` of the ciphertext in base64, `pad` in bytes."""

    token: str
    key: str
    receive_id: str
    stamp: str
    nonce: str
    random: bytes
    text: str
    head: str
    tail: str
    signature: str
    pad: int


def vector(token: str, key: str, receive_id: str, stamp: str, nonce: str, random: bytes, text: str, sealed: str, signature: str, pad: int) -> Vector:
    head, _, tail = sealed.partition("…")
    return Vector(
        token=token, key=key, receive_id=receive_id, stamp=stamp, nonce=nonce, random=random, text=text, head=head, tail=tail, signature=signature,
        pad=pad,
    )  # fmt: skip


def o(text: str, sealed: str, signature: str, pad: int) -> Vector:
    return vector("tok", O_KEY, O_ID, "1700000000", "n0nce", O_RANDOM, text, sealed, signature, pad)


VECTORS = {
    "K3": vector(
        "123456", K3_KEY, K3_ID, "1411443780", "437374425", b"2304fc2fe146f1f8", "5927782489442352469",
        "4ByGGj+sVCYcvGeQYhaKIk1o0pQRNbRjxybjTGblXrBaXlTXeOo1+bXFXDQQb1o6co6Yh9Bv41n7hOchLF6p+Q==",
        "dd6b9c95b495b3f7e2901bfbc76c664930ffdb96", 7,
    ),
    "K4": vector(
        "123456", K3_KEY, K3_ID, "1411525903", "461056294", b"1234567890123456", K4_TEXT, "9s4gMv99m88kKTh/H8IdkOiM…patF9XiKzHo3",
        "407518b7649e86ef23978113f92d27afa9296533", 3,
    ),
    "K5": vector(
        "123456", K3_KEY, K3_ID, "1411525903", "461056294", b"ec90b1530358d4d3", K5_TEXT, "RgqEoJj5A4EMYlLvWO1F86io…eBdCRxthuL0=",
        "74d92dfeb87ba7c714f89d98870ae5eb62dff26d", 1,
    ),
    "O1": o(
        "hi", "4j/AuRx71kQlxVlzbpsMWL8R/61/+iL2g9p3Ehvnc3KDTLbkiQdCGUsKu7bq2m1UHrBPypeASsuAcQ+rDqssLg==",
        "b77b3b4d0229745b0572ac378525543e972b18e6", 24,
    ),
    "O2": o(
        "你好😀", "4j/AuRx71kQlxVlzbpsMWF48IEzmAnF0muYtVtl7iXqofhj5T4e0MbjbgUEK4yHovWt1zc3nRTFTC+JvVz+HFA==",
        "f2a6c3d58f8ce6107ad50f9bebcb151bec182225", 16,
    ),
    "O3": o(
        "", "4j/AuRx71kQlxVlzbpsMWAXvxtRdmxsytY8UCX58ADvNrIVpTMU54yoOj1oisjuupiIkVNSzJM6UsVKP+/2V0Q==",
        "a9e1f10d3b9a51a7306807757ce6bc6205d32362", 26,
    ),
    "O4": o(
        "x" * 26,
        "4j/AuRx71kQlxVlzbpsMWLdwa700XSzOWDMkXDdU+WrXhtBXvuL5VNxS0ErMd4tITWydWv5r0CaCCG8tHO0hvC6wpg89zi746E0oZYCOQ2WswZYZJ3XERusxePCom75c",
        "07224561ce07b4e821d30947f032f418c39dfdec", 32,
    ),
    "WE-18": vector(
        "tok2", O_KEY, "", "1710000000", "abc123", b"fedcba9876543210", '{"a":1}', "wrNmYnsdngNwZHPRm4NnSyr1gG8sRyd4P4W0EJXjtVQ=",
        "03e9d298f14b9424074580cee6d4ea524d546f6d", 5,
    ),
}  # fmt: skip


def plain_of(sealed: str, key: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.CBC(key[:16])).decryptor()
    return decryptor.update(base64.b64decode(sealed)) + decryptor.finalize()


def sealed_raw(plain: bytes, key: bytes) -> str:
    """Ciphertext of exactly these bytes, padding included."""
    encryptor = Cipher(algorithms.AES(key), modes.CBC(key[:16])).encryptor()
    return base64.b64encode(encryptor.update(plain) + encryptor.finalize()).decode()


@pytest.mark.case("WE-06", "WE-18")
@pytest.mark.rule("WX-1", "WX-2", "WX-3", "WX-4", "WX-160")
@pytest.mark.parametrize("name", VECTORS)
def test_every_vector_holds_both_ways(name: str) -> None:
    given = VECTORS[name]
    key = crypto.key_of(given.key)
    sealed = crypto.encrypt(given.text, key, given.receive_id, given.random)
    assert sealed.startswith(given.head)
    assert sealed.endswith(given.tail)
    assert given.tail or sealed == given.head
    assert crypto.decrypt(sealed, key, given.receive_id) == given.text
    assert crypto.sign([given.token, given.stamp, given.nonce, sealed]) == given.signature
    crypto.check(given.signature, [given.token, given.stamp, given.nonce, sealed])
    plain = plain_of(sealed, key)
    assert (plain[-1], plain[:16]) == (given.pad, given.random)
    for wrong in (
        [given.token, given.stamp, f"{given.nonce[:-1]}~", sealed],
        [given.token, given.stamp, given.nonce, f"A{sealed[1:]}"],
        ["other", given.stamp, given.nonce, sealed],
    ):
        with pytest.raises(Unverified) as refused:
            crypto.check(given.signature, wrong)
        assert refused.value.step is Step.SIGNATURE


@pytest.mark.rule("WX-2", "WX-160", "WX-161")
def test_a_signature_is_of_the_parts_sorted_as_strings() -> None:
    parts = ["test", "1410685589", "test"]
    assert crypto.sign(parts) == "f21891de399b4e33a1a93c9a7b8a8fffb5a443ff"
    assert crypto.sign(["789", "456", "123"]) == "f7c3bc1d808e04732adf679965ccc34ca7ae3441"
    with pytest.raises(Unverified):
        crypto.check("f21891de399b4e33a1a93c9a7b8a8fffb5a443fe", parts)
    numbers = ["9", "10", "100"]
    for wrong in (sorted(numbers, key=int), numbers):
        joined = hashlib.sha1("".join(wrong).encode(), usedforsecurity=False).hexdigest()
        with pytest.raises(Unverified):
            crypto.check(joined, numbers)
    one, other = crypto.sign(["a", "b"]), crypto.sign(["a", "c"])
    for signature, given_parts in ((other, ["a", "b"]), (one, ["a", "c"]), ("", ["a", "b"]), ("é\udc80", ["a", "b"])):
        with pytest.raises(Unverified):
            crypto.check(signature, given_parts)


@pytest.mark.rule("WX-5", "WX-161")
@pytest.mark.parametrize(
    ("what", "step"),
    [
        ("pad 0", Step.DECRYPT), ("pad 33", Step.DECRYPT), ("unequal pad", Step.DECRYPT), ("length one too large", Step.BUFFER),
        ("length 2^31", Step.BUFFER), ("other receive id", Step.RECEIVER), ("truncated by 1", Step.DECRYPT), ("truncated by 16", Step.DECRYPT),
        ("empty", Step.DECRYPT), ("not base64", Step.BASE64), ("not ascii", Step.BASE64), ("no utf-8", Step.DOCUMENT), ("too short", Step.BUFFER),
    ],
)  # fmt: skip
def test_what_was_tampered_with_is_refused_at_its_step(what: str, step: Step) -> None:
    key = crypto.key_of(O_KEY)
    good = VECTORS["O1"].head
    plain = plain_of(good, key)
    body, pad = plain[: -plain[-1]], plain[-1]
    raw = base64.b64decode(good)
    match what:
        case "pad 0":
            bad = sealed_raw(plain[:-1] + b"\x00", key)
        case "pad 33":
            bad = sealed_raw(bytes(31) + bytes([33]) * 33, key)
        case "unequal pad":
            bad = sealed_raw(body + bytes([pad - 1]) + bytes([pad]) * (pad - 1), key)
        case "length one too large":
            bad = sealed_raw(plain[:16] + (3 + len(O_ID)).to_bytes(4, "big") + plain[20:], key)
        case "length 2^31":
            bad = sealed_raw(plain[:16] + (2**31).to_bytes(4, "big") + plain[20:], key)
        case "other receive id":
            bad = crypto.encrypt("hi", key, "wx1111111111111111", O_RANDOM)
        case "truncated by 1":
            bad = base64.b64encode(raw[:-1]).decode()
        case "truncated by 16":
            bad = base64.b64encode(raw[:-16]).decode()
        case "empty":
            bad = ""
        case "not base64":
            bad = "no base64 at all!"
        case "no utf-8":
            bad = sealed_raw(O_RANDOM + (2).to_bytes(4, "big") + b"\xff\xfe" + O_ID.encode() + bytes([24]) * 24, key)
        case "too short":
            bad = sealed_raw(bytes(14) + bytes([18]) * 18, key)
        case _:
            bad = "日本語"
    with pytest.raises(Unverified) as refused:
        crypto.decrypt(bad, key, O_ID)
    assert refused.value.step is step
    assert str(step.value[0]) in str(refused.value)


@pytest.mark.rule("WX-6")
def test_a_key_with_spare_bits_is_taken_and_any_other_length_is_a_fault() -> None:
    assert base64.b64encode(crypto.key_of(K3_KEY)).decode().rstrip("=") == f"{K3_KEY[:-1]}Q"
    assert crypto.key_of(K3_KEY) == crypto.key_of(f"{K3_KEY[:-1]}Q")
    for wrong in ("", K3_KEY[:-1], f"{K3_KEY}=", f"{K3_KEY}A", "!" * 43, "é" * 43):
        with pytest.raises(ValueError, match="key"):
            crypto.key_of(wrong)


@pytest.mark.rule("WX-110", "WX-160")
def test_a_file_of_the_bot_opens_with_its_key() -> None:
    key = crypto.file_key("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
    assert key == crypto.file_key(O_KEY)
    sealed = bytes.fromhex("cb81c1c41559addf91999d53bc4dc3956c54acd53515bfecf6cf89e716ecbc7d")
    assert crypto.open_file(sealed, key) == b"hello"
    assert crypto.open_file(seal_file(b"x" * 64, key), key) == b"x" * 64
    for wrong in (sealed[:-1], b"", sealed[:16]):
        with pytest.raises(Unverified):
            crypto.open_file(wrong, key)
    for wrong in ("", "AAEC", "no base64!"):
        with pytest.raises(ValueError, match="key"):
            crypto.file_key(wrong)


@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    receive_id=st.text("abcdef0123", max_size=40),
    random=st.binary(min_size=16, max_size=16),
)
@pytest.mark.rule("WX-3")
def test_whatever_is_sealed_opens_again(text: str, receive_id: str, random: bytes) -> None:
    key = crypto.key_of(O_KEY)
    sealed = crypto.encrypt(text, key, receive_id, random)
    plain = plain_of(sealed, key)
    assert len(plain) % 32 == 0
    assert 1 <= plain[-1] <= 32
    assert crypto.decrypt(sealed, key, receive_id) == text


# XML


@pytest.mark.rule("WX-7")
def test_texts_are_read_as_they_stand() -> None:
    document = (
        "<xml><ToUserName>gh</ToUserName><Content><![CDATA[  two\nlines  ]]></Content><Empty></Empty><Also/><MsgId>4363689963896700987</MsgId>"
        "<Escaped>&lt;b&gt; &amp; &#128512;</Escaped><Scan><Type>qr</Type></Scan></xml>"
    )
    assert xml.read(document.encode()) == {
        "ToUserName": "gh", "Content": "  two\nlines  ", "Empty": "", "Also": "", "MsgId": "4363689963896700987", "Escaped": "<b> & 😀",
        "Scan/Type": "qr", "Scan": "",
    }  # fmt: skip


BOMB = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]><xml><Content>&b;</Content></xml>'


@pytest.mark.case("WE-05")
@pytest.mark.rule("WX-7", "WX-185")
@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"hello", b"<xml>", b"<xml></xml><xml/>", BOMB, b"<!DOCTYPE xml SYSTEM 'http://x/'><xml/>", b"<a>" * 1000 + b"</a>" * 1000,
        b"<xml><Content>" + b"x" * 1_000_001 + b"</Content></xml>", b"<xml>\xff\xfe</xml>", b"<xml>&nope;</xml>",
    ],
)  # fmt: skip
def test_what_is_no_plain_xml_is_refused(body: bytes) -> None:
    with pytest.raises(Unverified) as refused:
        xml.read(body)
    assert refused.value.step is Step.DOCUMENT


@pytest.mark.case("WE-04")
@pytest.mark.rule("WX-8")
def test_what_xml_cannot_hold_is_dropped_and_the_rest_reads_back() -> None:
    written = xml.write({"Content": "a]]>b & <c>\x00\x08😀\ud83d", "CreateTime": 1700000000})
    assert "<CreateTime>1700000000</CreateTime>" in written
    assert xml.read(written.encode()) == {"Content": "a]]>b & <c>😀", "CreateTime": "1700000000"}


@given(text=st.text())
@pytest.mark.rule("WX-8")
def test_every_text_makes_a_document(text: str) -> None:
    assert set(xml.read(xml.write({"Content": text}).encode())) == {"Content"}
