"""Write a randomly initialised Qwen3 model of a few thousand weights, with a byte-level tokenizer, into a folder.

A script of its own, so that the tests' process stays free of torch: ``python build_tiny_qwen3.py FOLDER``.
"""

import sys
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

MARKERS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)


def build_tokenizer() -> PreTrainedTokenizerFast:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: index for index, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(MARKERS)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", chat_template=TEMPLATE)


def build_model(vocabulary: int, eos_id: int) -> Qwen3ForCausalLM:
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        initializer_range=0.3,  # peaked enough that sampling values matter
        tie_word_embeddings=False,
        eos_token_id=eos_id,
    )
    return Qwen3ForCausalLM(config)


def main(folder: Path) -> None:
    tokenizer = build_tokenizer()
    tokenizer.save_pretrained(folder)
    build_model(len(tokenizer), tokenizer.convert_tokens_to_ids("<|endoftext|>")).save_pretrained(folder)
    (folder / "generation_config.json").unlink()  # the tests add one of their own


if __name__ == "__main__":
    main(Path(sys.argv[1]))
