"""Ed25519 public keys (RFC 8032, section 5.1): how one is written, and which 32 bytes can be somebody's.

Signatures are the library's job, see ``dsse``.
"""

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
SIZE_BYTES = 32
KEY_PREFIX = "ed25519:"


def public_key(text: str) -> bytes:
    """The bytes of a key that is written as ``ed25519:`` and hex digits."""
    return bytes.fromhex(text.removeprefix(KEY_PREFIX))


def key_text(key: bytes) -> str:
    """How a public key is written."""
    return f"{KEY_PREFIX}{key.hex()}"


def invalid_key(key: bytes) -> str | None:
    """Why nobody can own a key, ``None`` for one that somebody can.

    A point of small order passes for a key, but some signature of anybody's holds under it for any message.
    """
    if len(key) != SIZE_BYTES:
        return f"{len(key)} bytes long, expected {SIZE_BYTES}"
    y = int.from_bytes(key, "little") & (2**255 - 1)
    if y >= P:
        return "not the one encoding of a point, which is below 2^255 - 19"
    if pow(_x_squared(y), (P - 1) // 2, P) not in (0, 1):
        return "not a point of the curve"
    for _ in range(3):
        y = _doubled(y)
    return "a point of small order, under which anybody can sign" if y == 1 else None


def _x_squared(y: int) -> int:
    """From the equation of the curve, -x^2 + y^2 = 1 + d x^2 y^2. Its denominator is never zero."""
    return (y * y - 1) * pow(D * y * y + 1, -1, P) % P


def _doubled(y: int) -> int:
    """The y of twice a point. The sign of x plays no part in it."""
    x_squared = _x_squared(y)
    return (y * y + x_squared) * pow(2 - y * y + x_squared, -1, P) % P
