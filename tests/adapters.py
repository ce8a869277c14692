"""LoRA adapters for tests, and the toy study of ``tests.archives`` with one: a contrast, then its own stages."""

import json
from collections.abc import Callable
from pathlib import Path

from gatepost.engines.adapter import digests
from gatepost.fingerprint import tree_root

CONFIG = {"peft_type": "LORA", "r": 4, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"], "bias": "none"}

CONTRAST = """
[[stages]]
name = "contrast"
scope = "once"
splits = ["first"]
samples_per_task = 3
max_think_tokens = 16
base_seed = 10
text = "withheld"
adapter = "contrast"
gates.seeds = { version = 1 }
gates.seed_binding = { version = 1 }
gates.adapter_applied = { version = 1, min_changed_task_share = 0.5, max_repeat_changed_share = 0.25 }

"""


def weights_of(data: bytes) -> bytes:
    """A safetensors file of one tensor with these bytes."""
    tensor = {"dtype": "U8", "shape": [len(data)], "data_offsets": [0, len(data)]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "lora_A.weight": tensor}).encode()
    return len(header).to_bytes(8, "little") + header + data


WEIGHTS = weights_of(b"weights")


def write_adapter(folder: Path, weights: bytes = WEIGHTS) -> Path:
    """A folder with the two files of an adapter; the scripted engine reads nothing of them but their digests."""
    folder.mkdir(parents=True)
    (folder / "adapter_config.json").write_text(json.dumps(CONFIG))
    (folder / "adapter_model.safetensors").write_bytes(weights)
    return folder


def with_adapter(folder: Path, *, contrast: str = CONTRAST) -> Callable[[str], str]:
    """An edit of the toy draft: it registers ``adapters/tuned``, contrasts it first, and does without it after."""
    path, pin = f"{folder.parent.name}/{folder.name}", tree_root(digests(folder))
    table = f'[adapter]\nname = "tuned"\npath = "{path}"\nrevision = "{pin}"\n\n'

    def edit(draft: str) -> str:
        for old, new in (
            ("[sampling]", f"{table}[sampling]"),
            ('[[stages]]\nname = "selection"', f'{contrast}[[stages]]\nname = "selection"'),
            ("base_seed = 11\n", 'base_seed = 11\nadapter = "off"\n'),
            ("base_seed = 12\n", 'base_seed = 12\nadapter = "off"\n'),
        ):
            assert draft.count(old) == 1, old
            draft = draft.replace(old, new)
        return draft

    return edit
