"""Write a tiny model for vLLM into a folder: ``python build_tiny_vllm.py KIND FOLDER``.

``dense`` is the Qwen3 of ``build_tiny_qwen3.py`` with heads as long as vLLM's CPU kernels take them. ``hybrid`` (every
second layer recurrent) and ``sliding`` (every second layer with a window) are configurations and a tokenizer alone:
vLLM makes up their weights.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import Gemma3TextConfig, PreTrainedConfig, Qwen3Config, Qwen3ForCausalLM, Qwen3NextConfig

sys.path.insert(0, str(Path(__file__).parent))

from build_tiny_qwen3 import TEMPLATE, build_tokenizer

POSITIONS = 2048
THINKING_SWITCH = "{% if add_generation_prompt and enable_thinking is false %}\n</think>\n\n{% endif %}"


def build_config(kind: str, vocabulary: int, eos_id: int) -> PreTrainedConfig:
    common = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 32,
        "max_position_embeddings": POSITIONS,
        "tie_word_embeddings": False,
        "eos_token_id": eos_id,
    }
    match kind:
        case "dense":
            return Qwen3Config(**common, initializer_range=0.3)  # peaked enough that sampling values matter
        case "sliding":
            layers = ["sliding_attention", "full_attention"]
            return Gemma3TextConfig(
                **common, sliding_window=256, layer_types=layers, architectures=["Gemma3ForCausalLM"]
            )
        case "hybrid":
            return Qwen3NextConfig(
                **common,
                layer_types=["linear_attention", "full_attention"],
                mlp_only_layers=[0],
                num_experts=2,
                num_experts_per_tok=1,
                moe_intermediate_size=64,
                shared_expert_intermediate_size=64,
                linear_num_key_heads=1,
                linear_num_value_heads=2,
                linear_key_head_dim=128,
                linear_value_head_dim=128,
                architectures=["Qwen3NextForCausalLM"],
            )
    raise SystemExit(f"{kind!r}: expected dense, sliding or hybrid")


def main(kind: str, folder: Path) -> None:
    tokenizer = build_tokenizer()
    tokenizer.chat_template = TEMPLATE + THINKING_SWITCH
    tokenizer.save_pretrained(folder)
    config = build_config(kind, len(tokenizer), tokenizer.convert_tokens_to_ids("<|endoftext|>"))
    if kind != "dense":
        config.save_pretrained(folder)
        return
    torch.manual_seed(0)
    Qwen3ForCausalLM(config).save_pretrained(folder)
    # What vLLM would take sampling defaults from, if it were let.
    defaults = {"temperature": 0.01, "top_k": 1, "repetition_penalty": 1.9, "eos_token_id": [256, 10, 20]}
    (folder / "generation_config.json").write_text(json.dumps(defaults))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
