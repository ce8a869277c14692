"""Train the tiny thinker on the CPU and write its folder: `python models/tiny_thinker/train.py [folder]`.

The same versions on the same machine give the same weights. The evaluation tasks are excluded from the training tasks
by record and by content.
"""

# mypy: allow-untyped-calls
# (torch and transformers are only partly typed)

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import corpus
import macro_corpus
import torch
from corpus import Sample
from tokenizer import CONTEXT_TOKENS, MODEL_EOS, train_tokenizer
from transformers import GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

HERE = Path(__file__).resolve().parent
IGNORED = -100
TYPICAL_COMPLETION_TOKENS = 64


class Training(NamedTuple):
    """The hyper-parameters; `copying_steps` are the first of `steps`."""

    seed: int = 8
    threads: int = 1
    copying_steps: int = 250
    steps: int = 2400
    warmup_steps: int = 100
    batch_samples: int = 24
    batches_per_chunk: int = 20
    macro_share: float = 0.5
    high_effort_share: float = 0.25
    max_completion_tokens: int = 256
    peak_learning_rate: float = 3e-3
    weight_decay: float = 0.1
    max_gradient_norm: float = 1.0


class Batch(NamedTuple):
    """Right-padded ids and next-token labels, both (samples, tokens); labels outside completions are ignored."""

    ids: torch.Tensor
    labels: torch.Tensor


def excluded_fingerprints(study: Path, domain: Any) -> set[str]:
    """Record and content fingerprints of every task file of a study except the development corpus."""
    files = [path for path in sorted((study / "tasks").glob("*.jsonl")) if path.stem != "development"]
    tasks = [json.loads(line) for path in files for line in path.read_text("utf-8").splitlines()]
    return {digest(task) for task in tasks for digest in (domain.record_fingerprint, domain.content_fingerprint)}


def draw(seed: int, count: int, plan: Training) -> list[Sample]:
    """Samples of both skills; the evaluation tasks of both studies are left out."""
    macros = round(count * plan.macro_share)
    lists_seen = excluded_fingerprints(corpus.STUDY, corpus.domain)
    macros_seen = excluded_fingerprints(macro_corpus.STUDY, macro_corpus.domain)
    return [
        *corpus.samples(seed, count - macros, plan.high_effort_share, lists_seen),
        *macro_corpus.samples(seed, macros, macros_seen),
    ]


def build_model(tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """A fresh dense Qwen3 of about one million parameters; its EOS is not the tokenizer's."""
    eos = tokenizer.get_vocab()[MODEL_EOS]
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=64,
        max_position_embeddings=CONTEXT_TOKENS,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=eos,
        pad_token_id=eos,
    )
    model = Qwen3ForCausalLM(config)
    # Attention that copies forms sooner if what it reads is written back unchanged from the first step.
    with torch.no_grad():
        for layer in model.model.layers:
            attention = layer.self_attn
            torch.nn.init.orthogonal_(attention.v_proj.weight)
            attention.o_proj.weight.copy_(0.5 * attention.v_proj.weight.T)
    return model


def encode(sample: Sample, tokenizer: PreTrainedTokenizerFast, max_completion_tokens: int) -> tuple[list[int], int]:
    """The ids of a sample and how many of them are the prompt; a closed completion ends with the model EOS."""
    prompt = tokenizer.apply_chat_template(sample.messages, add_generation_prompt=True, return_dict=False)
    text = sample.completion + (MODEL_EOS if sample.closed else "")
    completion = tokenizer.encode(text, truncation=True, max_length=max_completion_tokens)
    return prompt + completion, len(prompt)


def collate(encoded: list[tuple[list[int], int]], pad_id: int) -> Batch:
    """Pad to the longest and shift: position t is asked for id t+1."""
    width = max(len(ids) for ids, _ in encoded)
    padded = torch.full((len(encoded), width), pad_id)
    labels = torch.full((len(encoded), width), IGNORED)
    for row, (ids, prompt_tokens) in enumerate(encoded):
        padded[row, : len(ids)] = torch.tensor(ids)
        labels[row, prompt_tokens - 1 : len(ids) - 1] = padded[row, prompt_tokens : len(ids)]
    return Batch(padded, labels)


def copying_batch(generator: torch.Generator, vocabulary: int) -> Batch:
    """Random ids whose block of 8 to 32 repeats; what the first block does not tell is not asked."""
    block = int(torch.randint(8, 33, (), generator=generator))
    ids = torch.randint(vocabulary, (32, block), generator=generator).repeat(1, 96 // block + 1)[:, :96]
    labels = torch.full_like(ids, IGNORED)
    labels[:, block - 1 : -1] = ids[:, block:]
    return Batch(ids, labels)


def curriculum(tokenizer: PreTrainedTokenizerFast, plan: Training) -> Iterator[Batch]:
    """Copying first, then tasks.

    A thought refers back to its own lines. Repeated random ids start the attention that copies, which on tasks alone
    forms late.
    """
    generator = torch.Generator().manual_seed(plan.seed)
    for _ in range(plan.copying_steps):
        yield copying_batch(generator, len(tokenizer))
    yield from batches(tokenizer, plan)


def batches(tokenizer: PreTrainedTokenizerFast, plan: Training) -> Iterator[Batch]:
    """An endless stream of batches of similar lengths, drawn chunk by chunk."""
    generator = torch.Generator().manual_seed(plan.seed)
    pad_id = tokenizer.get_vocab()[MODEL_EOS]
    size = plan.batch_samples
    chunk = 0
    while True:
        drawn = draw(plan.seed * 100_000 + chunk, size * plan.batches_per_chunk, plan)
        encoded = sorted((encode(s, tokenizer, plan.max_completion_tokens) for s in drawn), key=lambda e: len(e[0]))
        for start in torch.randperm(plan.batches_per_chunk, generator=generator).tolist():
            yield collate(encoded[start * size : (start + 1) * size], pad_id)
        chunk += 1


def learning_rate(step: int, plan: Training) -> float:
    """Linear warm-up, then a cosine to zero."""
    if step < plan.warmup_steps:
        return plan.peak_learning_rate * (step + 1) / plan.warmup_steps
    progress = (step - plan.warmup_steps) / max(1, plan.steps - plan.warmup_steps)
    return plan.peak_learning_rate * 0.5 * (1 + math.cos(math.pi * progress))


def completion_loss(model: Qwen3ForCausalLM, batch: Batch) -> torch.Tensor:
    """Cross-entropy of the completion ids, summed and divided by 64 ids a sample; a typical completion has as many.

    Batches hold samples of similar length. A mean over their ids would let the opening of a long thought count for less
    than that of a short one, and long thoughts would be sampled too rarely.
    """
    wanted = batch.labels != IGNORED
    with torch.autocast("cpu", torch.bfloat16):
        logits = model.lm_head(model.model(input_ids=batch.ids).last_hidden_state[wanted])
    total = torch.nn.functional.cross_entropy(logits.float(), batch.labels[wanted], reduction="sum")
    return total / (TYPICAL_COMPLETION_TOKENS * len(batch.ids))


def train(model: Qwen3ForCausalLM, stream: Iterator[Batch], plan: Training) -> None:
    """Train in place, weights in float32 and products in bfloat16, printing the mean loss of every hundred steps."""
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=plan.weight_decay)
    started, recent = time.monotonic(), 0.0
    for step, batch in zip(range(plan.steps), stream, strict=False):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, plan)
        loss = completion_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.max_gradient_norm)
        optimizer.step()
        recent += loss.item()
        if (step + 1) % 100 == 0:
            print(f"step {step + 1} loss {recent / 100:.4f} seconds {time.monotonic() - started:.0f}", flush=True)
            recent = 0.0


def save(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write weights in bfloat16, configuration and tokenizer.

    The generation configuration differs on purpose from anything a study registers, so that a runner which inherits
    sampling values from the model folder is caught.
    """
    eos = model.config.eos_token_id
    model.generation_config = GenerationConfig(
        do_sample=True, temperature=1.0, top_k=50, repetition_penalty=1.05, eos_token_id=eos, pad_token_id=eos
    )
    model.bfloat16()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def main(folder: Path, plan: Training) -> None:
    """Build the tokenizer, train the model and write both."""
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    tokenizer = train_tokenizer(tokenizer_texts(plan))
    model = build_model(tokenizer)
    print(f"{model.num_parameters()} parameters, {len(tokenizer)} tokens")
    train(model, curriculum(tokenizer, plan), plan)
    save(model, tokenizer, folder)


def tokenizer_texts(plan: Training) -> list[str]:
    """Chats and completions of a few hundred samples."""
    drawn = draw(plan.seed, 800, plan)
    chats = [message["content"] for sample in drawn for message in sample.messages]
    roles = ["system\n", "user\n", "assistant\n"]
    return [*chats, *(sample.completion for sample in drawn), *(roles * 10)]


def parse_arguments() -> Any:
    """The output folder and, for a quick trial, the number of steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE, help="where the model folder is written")
    parser.add_argument("--steps", type=int, default=Training().steps)
    return parser.parse_args()


if __name__ == "__main__":
    arguments = parse_arguments()
    main(arguments.folder, Training(steps=arguments.steps))
