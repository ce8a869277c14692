"""Which bytes can be somebody's public key."""

import base64
from pathlib import Path

import pytest

from gatepost.dsse import Envelope, signature_holds
from gatepost.ed25519 import P, invalid_key
from tests.approvals import make_keys, public


def point(y: int) -> bytes:
    return y.to_bytes(32, "little")


IDENTITY = point(1)
# The encoding of a point of order eight.
ORDER_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (b"", "0 bytes long"),
        (bytes(31), "31 bytes long"),
        (bytes(33), "33 bytes long"),
        (point(P), "not the one encoding"),
        (point(P + 1), "not the one encoding"),
        (b"\xff" * 32, "not the one encoding"),
        (point(2), "not a point of the curve"),
        (point(P - 2), "not a point of the curve"),
        (IDENTITY, "small order"),
        (point(1 | 1 << 255), "small order"),
        (point(P - 1), "small order"),
        (point(0), "small order"),
        (point(1 << 255), "small order"),
        (bytes.fromhex(ORDER_8), "small order"),
        (point(P - int.from_bytes(bytes.fromhex(ORDER_8), "little")), "small order"),
    ],
)
def test_what_nobody_can_own_is_no_key(key: bytes, problem: str) -> None:
    assert problem in (invalid_key(key) or "")


def test_every_point_of_small_order_is_found_and_next_to_it_none() -> None:
    """There are eight, with five different y; what lies one further is another point, or none."""
    found = invalid_key(bytes.fromhex(ORDER_8))
    assert found is not None
    y = int.from_bytes(bytes.fromhex(ORDER_8), "little")
    small = {0, 1, P - 1, y, P - y}
    for near in sorted({one + step for one in small for step in (-1, 1)} - small - {-1, P}):
        assert "small order" not in (invalid_key(point(near)) or "")


# RFC 8032, section 7.1: the public keys of its first three tests.
@pytest.mark.parametrize(
    "key",
    [
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
    ],
)
def test_published_keys_are_keys(key: str) -> None:
    assert invalid_key(bytes.fromhex(key)) is None


def test_generated_keys_are_keys(tmp_path: Path) -> None:
    for key in make_keys(tmp_path / "keys").values():
        assert invalid_key(bytes.fromhex(public(key).removeprefix("ed25519:"))) is None


def test_why_small_order_matters() -> None:
    """Under the identity, a signature that nobody made holds for any message: such a reviewer approves everything."""
    for payload in (b"one", b"another"):
        signature = {"keyid": f"ed25519:{IDENTITY.hex()}", "sig": base64.b64encode(IDENTITY + bytes(32)).decode()}
        document = {"payload": base64.b64encode(payload).decode(), "payloadType": "t", "signatures": [signature]}
        assert signature_holds(Envelope(payload, IDENTITY, document))
