"""Measure the tiny thinker on the study's task files: `python models/tiny_thinker/measure.py [folder]`.

Samples three traces a task with plain batch-one forward calls and prints, per task file, the numbers that decide
whether each outcome of the study can be reached: natural closes at the caps, parsed answers, usable success, tasks
with mixed success, exact loops, and sampled tokens per second.
"""

# mypy: allow-untyped-calls
# (torch and transformers are only partly typed)

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch
from corpus import STUDY, domain
from tokenizer import THINK_CLOSE
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).resolve().parent
CAPS = (40, 72, 160)
TRACES_PER_TASK = 3
ANSWER_TOKENS = 16
MIN_THINKING_TOKENS = 16
TOP_P, TOP_K = 0.95, 20
TAIL_TOKENS, MAX_PERIOD_TOKENS = 64, 32


class Trace(NamedTuple):
    """One sampled continuation; `close_step` is the one-indexed step of the close id, None if it never came."""

    task_id: str
    ids: list[int]
    close_step: int | None
    parsed: str | None
    correct: bool

    @property
    def usable(self) -> bool:
        """Closed, parsed, and with enough thinking before the close."""
        return self.parsed is not None and self.close_step is not None and self.close_step > MIN_THINKING_TOKENS


class Thinker:
    """The model, its tokenizer and a seeded sampler."""

    def __init__(self, folder: Path, temperature: float, seed: int) -> None:
        self.temperature = temperature
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
        self.close_id = self.tokenizer.get_vocab()[THINK_CLOSE]
        self.random = torch.Generator().manual_seed(seed)

    @torch.inference_mode()
    def trace(self, task: dict[str, Any]) -> Trace:
        """Think up to the largest cap; after a close, answer until the model EOS or the answer limit."""
        chat = domain.messages(task)
        step = self.tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        ids: list[int] = []
        close_step, cache = None, None
        while len(ids) < (close_step + ANSWER_TOKENS if close_step else max(CAPS)):
            output = self.model(input_ids=torch.tensor([step]), past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            ids.append(sampled(output.logits[0, -1].float() / self.temperature, self.random))
            step = ids[-1:]
            if ids[-1] == self.model.config.eos_token_id:
                break
            if close_step is None and ids[-1] == self.close_id:
                close_step = len(ids)
        answer = self.tokenizer.decode(ids[close_step:], skip_special_tokens=True) if close_step else ""
        parsed = domain.parse(answer)
        return Trace(task["task_id"], ids, close_step, parsed, domain.grade(task, parsed))


def sampled(logits: torch.Tensor, random: torch.Generator) -> int:
    """Draw one id from tempered logits (vocabulary,), restricted to top-k, then to top-p."""
    top, ids = torch.topk(logits, TOP_K)
    probabilities = torch.softmax(top, -1)
    before = probabilities.cumsum(-1) - probabilities
    kept = probabilities.masked_fill(before >= TOP_P, 0)
    return int(ids[torch.multinomial(kept, 1, generator=random)])


def tail_period(ids: list[int]) -> int | None:
    """The smallest exact period of the last 64 ids, None when there is none up to 32 or the trace is shorter."""
    tail = ids[-TAIL_TOKENS:]
    if len(tail) < TAIL_TOKENS:
        return None
    return next((p for p in range(1, MAX_PERIOD_TOKENS + 1) if tail[p:] == tail[:-p]), None)


def summary(traces: list[Trace]) -> dict[str, Any]:
    """Counts and rates of one task file; usable success and mixed tasks are those at the largest cap."""
    closed = [trace for trace in traces if trace.close_step]
    usable = [trace for trace in traces if trace.usable]
    outcomes: dict[str, set[bool]] = {}
    for trace in usable:
        outcomes.setdefault(trace.task_id, set()).add(trace.correct)
    return {
        "traces": len(traces),
        "close_rate": {cap: rate(sum((t.close_step or cap + 1) <= cap for t in traces), len(traces)) for cap in CAPS},
        "parsed_of_closed": rate(sum(t.parsed is not None for t in closed), len(closed)),
        "usable_of_closed": rate(len(usable), len(closed)),
        "correct_of_usable": rate(sum(t.correct for t in usable), len(usable)),
        "mixed_tasks": sum(len(seen) == 2 for seen in outcomes.values()),
        "loops": rate(sum(not t.close_step and tail_period(t.ids) is not None for t in traces), len(traces)),
    }


def rate(count: int, total: int) -> str:
    """`k/n (share)`, so that no share hides its denominator."""
    return f"{count}/{total} ({count / total:.3f})" if total else "0/0"


def main() -> None:
    """Print one JSON object per task file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE, help="the model folder")
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=11)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in ("selection", "confirmation", "confirmation_high_effort"):
        tasks = [json.loads(line) for line in (STUDY / "tasks" / f"{name}.jsonl").read_text("utf-8").splitlines()]
        thinker = Thinker(arguments.folder, arguments.temperature, arguments.seed)
        started = time.monotonic()
        traces = [thinker.trace(task) for task in tasks for _ in range(TRACES_PER_TASK)]
        speed = sum(len(trace.ids) for trace in traces) / (time.monotonic() - started)
        print(json.dumps({"file": name, **summary(traces), "tokens_per_second": round(speed)}))


if __name__ == "__main__":
    main()
