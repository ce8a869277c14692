"""A LoRA adapter: its files, and which shipped engine takes one. Needs no package."""

import os
from collections.abc import Mapping
from pathlib import Path

from gatepost import jsonfile
from gatepost.errors import DataError, EngineError
from gatepost.verdict import JSON

FILES = ("adapter_config.json", "adapter_model.safetensors")
"""What decides an adapter's numbers. Weights in pickles are never loaded."""


WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".ckpt")
"""How files of weights end. What is not listed in ``FILES`` would be loaded or not, by no rule that is registered."""

MAX_HEADER_BYTES = 100_000_000
"""The format's own limit for the header of a safetensors file."""


def digests(folder: Path) -> dict[str, str]:
    """File name -> SHA-256 hex digest.

    Raises ``EngineError`` (``refused``) naming file and field, for a folder without one of the files or with other
    weights, for a link, for a configuration that vLLM could not apply, and for weights that are no safetensors file.
    """
    config, weights = (folder / name for name in FILES)
    for path in (config, weights):
        if not path.is_symlink() and not path.is_file():
            raise EngineError(f"{folder} holds no {path.name}, expected a LoRA adapter", kind="refused")
    for path in sorted(folder.iterdir()):
        if path.suffix in WEIGHTS and path.name not in FILES:
            raise EngineError(
                f"{path}: is no file of a LoRA adapter, expected no weights but {FILES[1]}", kind="refused"
            )
    try:
        _check_config(config)
        _check_weights(weights)
        return {path.name: jsonfile.sha256_of(path) for path in (config, weights)}
    except DataError as error:
        raise EngineError(str(error), kind="refused") from None


def _check_config(path: Path) -> None:
    """The fields without which vLLM has no adapter: kind, rank, scale and the modules."""
    config = jsonfile.read(path)
    if not isinstance(config, dict):
        raise DataError(f"{path}: is a {type(config).__name__}, expected an object")
    modules, alpha = config.get("target_modules"), config.get("lora_alpha")
    names = modules if isinstance(modules, list) else [modules]
    for field, fits, expected in (
        ("peft_type", config.get("peft_type") == "LORA", "'LORA'"),
        ("r", type(config.get("r")) is int and config["r"] > 0, "a whole number from 1"),
        ("lora_alpha", type(alpha) in (int, float), "a number"),
        ("target_modules", names and all(name and isinstance(name, str) for name in names), "names of modules"),
    ):
        if not fits:
            raise DataError(f"{path}: field {field} is {config.get(field)!r:.80}, expected {expected}")


def _check_weights(path: Path) -> None:
    """A safetensors file: the length of its header, the header, and the bytes of each tensor, all of them used."""
    with jsonfile.open_regular(path) as stream:
        size_bytes = os.fstat(stream.fileno()).st_size
        header_bytes = int.from_bytes(stream.read(8), "little")
        data_bytes = size_bytes - 8 - header_bytes
        if not 0 < header_bytes <= MAX_HEADER_BYTES or data_bytes < 0:
            raise DataError(
                f"{path}: is {size_bytes} bytes with a header of {header_bytes}, expected a safetensors file"
            )
        header = jsonfile.loads(stream.read(header_bytes), source=f"{path}: header")
    if not isinstance(header, dict):
        raise DataError(f"{path}: header is a {type(header).__name__}, expected an object")
    spans = []
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        span = tensor.get("data_offsets") if isinstance(tensor, dict) else None
        if not (isinstance(span, list) and len(span) == 2 and all(type(offset) is int for offset in span)):
            raise DataError(f"{path}: header: {name} has the data_offsets {span!r:.80}, expected two whole numbers")
        spans.append((span[0], span[1], name))
    end = 0
    for start, stop, name in sorted(spans):
        if start != end or stop < start:
            raise DataError(f"{path}: header: {name} has the data_offsets {[start, stop]}, expected a start at {end}")
        end = stop
    if not end or end != data_bytes:
        raise DataError(
            f"{path}: holds {data_bytes} bytes of tensors, its header says {end}; expected as many, and some"
        )


def refuse_unless_taken(kind: str, options: Mapping[str, JSON]) -> None:
    """Raise ``EngineError`` (``refused``) where a shipped engine could not apply an adapter as it is registered."""
    if kind == "transformers":
        raise EngineError(
            "engine transformers takes no adapter; merge it into the model, or register vllm", kind="refused"
        )
    if kind == "vllm" and options.get("enable_lora") is not True:
        found = options.get("enable_lora")
        raise EngineError(f"options: enable_lora is {found!r}, expected true for an adapter", kind="refused")
