"""The files of an adapter: a folder that vLLM could not apply as it is registered is refused by file and field."""

import json
import os
import socket
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from gatepost.engines.adapter import FILES, digests
from gatepost.errors import EngineError
from tests.adapters import CONFIG, weights_of, write_adapter

CONFIG_FILE, WEIGHTS_FILE = FILES


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    return write_adapter(tmp_path / "tuned")


def refusal(adapter: Path) -> str:
    with pytest.raises(EngineError) as refused:
        digests(adapter)
    assert refused.value.kind == "refused"
    return str(refused.value).removeprefix(f"{adapter}/")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"peft_type": "LORA"}, None),
        ({"peft_type": "lora"}, "field peft_type is 'lora', expected 'LORA'"),
        ({"peft_type": "IA3"}, "field peft_type is 'IA3'"),
        ({"peft_type": None}, "field peft_type is None"),
        ({"r": 1}, None),
        ({"r": 0}, "field r is 0, expected a whole number from 1"),
        ({"r": -4}, "field r is -4"),
        ({"r": 4.0}, "field r is 4.0"),
        ({"r": True}, "field r is True"),
        ({"r": "4"}, "field r is '4'"),
        ({"lora_alpha": 0.5}, None),
        ({"lora_alpha": "16"}, "field lora_alpha is '16', expected a number"),
        ({"lora_alpha": False}, "field lora_alpha is False"),
        ({"target_modules": "all-linear"}, None),
        ({"target_modules": []}, "field target_modules is [], expected names of modules"),
        ({"target_modules": ""}, "field target_modules is ''"),
        ({"target_modules": ["q_proj", 1]}, "field target_modules is"),
        ({"target_modules": {"q_proj": 1}}, "field target_modules is"),
        ({"anything": [None]}, None),
    ],
)
def test_fields_of_the_configuration(adapter: Path, change: dict[str, Any], expected: str | None) -> None:
    (adapter / CONFIG_FILE).write_text(json.dumps({**CONFIG, **change}))
    if expected is None:
        assert list(digests(adapter)) == list(FILES)
    else:
        assert refusal(adapter).startswith(f"{CONFIG_FILE}: {expected}")


@pytest.mark.parametrize("field", ["peft_type", "r", "lora_alpha", "target_modules"])
def test_a_field_that_is_not_there(adapter: Path, field: str) -> None:
    (adapter / CONFIG_FILE).write_text(json.dumps({name: CONFIG[name] for name in CONFIG if name != field}))
    assert refusal(adapter).startswith(f"{CONFIG_FILE}: field {field} is None, expected ")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "not JSON at line 1"),
        (b"{", "not JSON at line 1"),
        (b"[]", "is a list, expected an object"),
        (b"null", "is a NoneType, expected an object"),
        (b"\xff", "byte 0 is not UTF-8"),
        (b'{"r": NaN}', "NaN is not a JSON number"),
        (b'{"r": 1, "r": 2}', "key 'r' appears twice in one object"),
    ],
)
def test_a_configuration_that_is_none(adapter: Path, data: bytes, expected: str) -> None:
    (adapter / CONFIG_FILE).write_bytes(data)
    assert refusal(adapter).startswith(f"{CONFIG_FILE}: {expected}")


def packed(header: object, data: bytes = b"", *, length: int | None = None) -> bytes:
    written = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(written) if length is None else length).to_bytes(8, "little") + written + data


def tensors(*spans: tuple[int, int]) -> dict[str, Any]:
    return {f"t{index}": {"dtype": "U8", "shape": [1], "data_offsets": span} for index, span in enumerate(spans)}


WEIGHTS: dict[str, tuple[bytes, str | None]] = {
    "one tensor": (weights_of(b"a"), None),
    "two tensors": (packed(tensors((0, 1), (1, 3)), b"abc"), None),
    "two, the last first": (packed(tensors((1, 3), (0, 1)), b"abc"), None),
    "a header padded with spaces": (packed(json.dumps(tensors((0, 1))).encode() + b"   ", b"a"), None),
    "nothing": (b"", "is 0 bytes with a header of 0, expected a safetensors file"),
    "seven bytes": (b"\1\0\0\0\0\0\0", "is 7 bytes with a header of 1"),
    "an empty header": (packed(b""), "is 8 bytes with a header of 0"),
    "a header beyond the end": (packed({}, length=3), "is 10 bytes with a header of 3"),
    "a header beyond any limit": (packed({}, length=2**63), "is 10 bytes with a header of 9223372036854775808"),
    "a header that is no JSON": (packed(b"{x"), "header: not JSON"),
    "a header that is a list": (packed([]), "header is a list, expected an object"),
    "a pickle": (b"\x80\x02}q\0." + bytes(64), "is 70 bytes with a header of"),
    "no tensors": (packed({}), "holds 0 bytes of tensors, its header says 0"),
    "remarks alone": (packed({"__metadata__": {}}), "holds 0 bytes of tensors"),
    "an empty tensor": (packed(tensors((0, 0))), "holds 0 bytes of tensors, its header says 0"),
    "a byte short": (weights_of(b"abc")[:-1], "holds 2 bytes of tensors, its header says 3"),
    "a byte too many": (weights_of(b"abc") + b"d", "holds 4 bytes of tensors, its header says 3"),
    "a gap": (packed(tensors((0, 1), (2, 3)), b"abc"), "header: t1 has the data_offsets [2, 3], expected a start at 1"),
    "an overlap": (packed(tensors((0, 2), (1, 3)), b"abc"), "header: t1 has the data_offsets [1, 3], expected a start"),
    "a span that ends before it begins": (packed(tensors((0, -1)), b"a"), "header: t0 has the data_offsets [0, -1]"),
    "no span": (packed({"t": {"dtype": "U8"}}, b"a"), "header: t has the data_offsets None, expected two whole"),
    "a tensor that is none": (packed({"t": 1}, b"a"), "header: t has the data_offsets None"),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(adapter: Path, name: str) -> None:
    data, expected = WEIGHTS[name]
    (adapter / WEIGHTS_FILE).write_bytes(data)
    if expected is None:
        assert list(digests(adapter)) == list(FILES)
    else:
        assert refusal(adapter).startswith(f"{WEIGHTS_FILE}: {expected}")


OTHER_WEIGHTS = ["adapter_model.bin", "adapter_model.pt", "new_embeddings.safetensors", "optimizer.pth", "a.ckpt"]


@pytest.mark.parametrize("name", OTHER_WEIGHTS)
def test_weights_beside_those_that_are_pinned(adapter: Path, name: str) -> None:
    (adapter / name).write_bytes(b"x")
    assert refusal(adapter) == f"{name}: is no file of a LoRA adapter, expected no weights but {WEIGHTS_FILE}"


def test_other_files_change_nothing(adapter: Path) -> None:
    before = digests(adapter)
    for name in ("README.md", "tokenizer.json", "training_args.json"):
        (adapter / name).write_text("{}")
    assert digests(adapter) == before


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound, chdir(path.parent):
        bound.bind(path.name)


NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link": (
        lambda path: path.symlink_to(path.with_name("elsewhere")),
        "is a symbolic link, expected a regular file",
    ),
    "a dangling link": (lambda path: path.symlink_to("nowhere"), "is a symbolic link, expected a regular file"),
    "a pipe": (os.mkfifo, "holds no"),
    "a folder": (Path.mkdir, "holds no"),
    "a socket": (_socket, "holds no"),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("name", NO_FILES)
def test_what_is_no_regular_file(adapter: Path, file: str, name: str) -> None:
    make, expected = NO_FILES[name]
    path = adapter / file
    path.rename(adapter / "elsewhere")
    make(path)
    found = refusal(adapter)
    assert expected in found
    assert file in found
