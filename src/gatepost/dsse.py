"""DSSE envelopes with one Ed25519 signature, and the keys that make them. The one module that knows a crypto library.

An envelope is stored in RFC 8785 bytes, its base64 in the one form that has no spare bits, so that it has one digest.
Its ``keyid`` is the public key itself. That is a claim like any other: what counts is that the signature holds under
the key, over type and payload as DSSE v1 joins them (its pre-authentication encoding).
"""

import base64
import contextlib
import copy
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gatepost import jsonfile
from gatepost.ed25519 import key_text, public_key
from gatepost.errors import ApprovalError, IntegrityError, MissingExtraError
from gatepost.folders import is_archive
from gatepost.verdict import JSON

if TYPE_CHECKING:
    from securesystemslib.signer import CryptoSigner

FIELDS = {"payload", "payloadType", "signatures"}
KEY_ID = re.compile(r"ed25519:[0-9a-f]{64}")
MAX_KEY_BYTES = 2**16


class Envelope(NamedTuple):
    """An envelope as it is stored.

    Attributes:
        payload: the bytes that were signed.
        key: the public key, 32 bytes, that it names.
        document: the whole of it.
    """

    payload: bytes
    key: bytes
    document: Mapping[str, JSON]


def read_envelope(document: JSON, *, payload_type: str, source: str) -> Envelope:
    """Take an envelope apart. Raises ``IntegrityError`` for another type of payload, and unless one signature is there.

    Nothing is verified: see ``signature_holds``.
    """
    if not isinstance(document, dict) or set(document) != FIELDS:
        found = ", ".join(sorted(document)) if isinstance(document, dict) else type(document).__name__
        raise IntegrityError(f"{source}: holds {found:.120}, expected an envelope of {', '.join(sorted(FIELDS))}")
    if document["payloadType"] != payload_type:
        raise IntegrityError(f"{source}: field payloadType is {document['payloadType']!r:.80}, expected {payload_type}")
    signatures = document["signatures"]
    if not isinstance(signatures, list) or len(signatures) != 1:
        found = f"{len(signatures)} of them" if isinstance(signatures, list) else repr(signatures)
        raise IntegrityError(f"{source}: field signatures holds {found:.80}, expected exactly one")
    (signature,) = signatures
    if not isinstance(signature, dict) or set(signature) != {"keyid", "sig"}:
        raise IntegrityError(f"{source}: field signatures[0] is {signature!r:.80}, expected keyid and sig")
    if not isinstance(signature["keyid"], str) or not KEY_ID.fullmatch(signature["keyid"]):
        expected = "ed25519: and 64 hex digits in lower case"
        raise IntegrityError(f"{source}: field signatures[0].keyid is {signature['keyid']!r:.80}, expected {expected}")
    _decoded(signature["sig"], f"{source}: field signatures[0].sig")
    payload = _decoded(document["payload"], f"{source}: field payload")
    return Envelope(payload, public_key(signature["keyid"]), document)


def _decoded(text: JSON, where: str) -> bytes:
    with contextlib.suppress(ValueError, TypeError):
        data = base64.b64decode(text, validate=True)
        if base64.b64encode(data).decode() == text:
            return data
    raise IntegrityError(f"{where} is {text!r:.40}, expected base64 in its one form")


def signature_holds(envelope: Envelope) -> bool:
    """Whether the signature holds under the key that the envelope names. Raises ``MissingExtraError``."""
    require_library("checking an approval")
    from securesystemslib.dsse import Envelope as Signed
    from securesystemslib.exceptions import UnverifiedSignatureError
    from securesystemslib.signer import SSlibKey

    signed = Signed.from_dict(copy.deepcopy(dict(envelope.document)))  # it takes apart what it is given
    (signature,) = signed.signatures.values()
    key = SSlibKey(signature.keyid, "ed25519", "ed25519", {"public": envelope.key.hex()})
    try:
        key.verify_signature(signature, signed.pae())
    except UnverifiedSignatureError:
        return False
    return True


class PrivateKey(NamedTuple):
    """A key that signs. ``public`` is its 32 bytes that verify."""

    public: bytes
    signer: "CryptoSigner"


def sign(payload: bytes, payload_type: str, key: PrivateKey) -> bytes:
    """The RFC 8785 bytes of a new envelope."""
    from securesystemslib.dsse import Envelope as Signed

    envelope = Signed(payload, payload_type, {})
    envelope.sign(key.signer)
    document: dict[str, Any] = envelope.to_dict()
    document["signatures"][0]["keyid"] = key_text(key.public)
    return jsonfile.canonical(document)


def load_key(path: Path) -> PrivateKey:
    """A private key as ``generate_key`` writes it. Raises ``ApprovalError`` for a file that holds none."""
    data = jsonfile.read_bytes(path.resolve(), at_most=MAX_KEY_BYTES)
    require_library("signing an approval")
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.signer import CryptoSigner

    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # is none; has a password; is of a kind that nobody knows
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ApprovalError(f"{path}: is no Ed25519 private key in PEM without a password; gatepost keygen makes one")
    return PrivateKey(key.public_key().public_bytes_raw(), CryptoSigner(key))


def generate_key(path: Path) -> bytes:
    """Write a new private key that only its owner can read; returns the public one, 32 bytes.

    Raises ``ApprovalError`` for a file that exists, and inside an archive, which is there to be given away.
    """
    require_library("making a key")
    from securesystemslib.signer import CryptoSigner

    if archive := next((folder for folder in path.resolve().parents if is_archive(folder)), None):
        raise ApprovalError(f"{path}: lies in the archive {archive}, where no private key belongs")
    signer = CryptoSigner.generate_ed25519()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise ApprovalError(f"{path}: exists already; a key is never overwritten") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(signer.private_bytes)
            stream.flush()
            os.fsync(stream.fileno())
        jsonfile.sync_folder(path.parent)
    except BaseException:
        path.unlink()
        raise
    return bytes.fromhex(signer.public_key.keyval["public"])


def require_library(needed_for: str) -> None:
    """Raise ``MissingExtraError`` unless what the extra installs is there."""
    for package in ("securesystemslib", "cryptography"):
        if find_spec(package) is None:
            raise MissingExtraError(package, needed_for=needed_for, extra="approval")
