"""A LoRA adapter: its files, and which shipped engine takes one. Needs no package."""

from collections.abc import Mapping
from pathlib import Path

from gatepost.engines.model_folder import sha256
from gatepost.errors import EngineError
from gatepost.verdict import JSON

FILES = ("adapter_config.json", "adapter_model.safetensors")
"""What decides an adapter's numbers. Weights in pickles are never loaded."""


def digests(folder: Path) -> dict[str, str]:
    """File name -> SHA-256 hex digest. Raises ``EngineError`` (``refused``) for a folder without one of the files."""
    for name in FILES:
        if not (folder / name).is_file():
            raise EngineError(f"{folder} holds no {name}, expected a LoRA adapter", kind="refused")
    return {name: sha256(folder / name) for name in FILES}


def refuse_unless_taken(kind: str, options: Mapping[str, JSON]) -> None:
    """Raise ``EngineError`` (``refused``) where a shipped engine could not apply an adapter as it is registered."""
    if kind == "transformers":
        raise EngineError(
            "engine transformers takes no adapter; merge it into the model, or register vllm", kind="refused"
        )
    if kind == "vllm" and options.get("enable_lora") is not True:
        found = options.get("enable_lora")
        raise EngineError(f"options: enable_lora is {found!r}, expected true for an adapter", kind="refused")
