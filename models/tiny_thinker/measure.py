"""Measure the tiny thinker on the studies' task files: `python models/tiny_thinker/measure.py [folder]`.

Samples traces with plain batch-one forward calls and prints, per task file or arm, the numbers that decide whether each
outcome of a study can be reached: natural closes at the budgets, parsed answers, success, exact loops, and sampled
tokens per second. A macro thought that uses up the largest budget is closed by force and answers.
"""

# mypy: allow-untyped-calls
# (torch and transformers are only partly typed)

import argparse
import json
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import corpus
import macro_corpus
import torch
from tokenizer import THINK_CLOSE
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).resolve().parent
LIST_CAPS = (40, 72, 160)
LIST_ANSWER_TOKENS = 16
MIN_THINKING_TOKENS = 16
MACRO_BUDGETS = (44, 56, 72, 92, 160)
MACRO_ANSWER_TOKENS = 32
TOP_P, TOP_K = 0.95, 20
TAIL_TOKENS, MAX_PERIOD_TOKENS = 64, 32


class Trace(NamedTuple):
    """One sampled continuation: the ids of its thought with the close, if any, and the text of its answer."""

    task: dict[str, Any]
    thought: list[int]
    closed: bool
    answer: str


class Thinker:
    """The model, its tokenizer and a seeded sampler; `sampled_tokens` counts what it drew."""

    def __init__(self, folder: Path, temperature: float, seed: int) -> None:
        self.temperature = temperature
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
        self.close_id = self.tokenizer.get_vocab()[THINK_CLOSE]
        self.eos_id = self.model.config.eos_token_id
        self.random = torch.Generator().manual_seed(seed)
        self.sampled_tokens = 0

    @torch.inference_mode()
    def trace(
        self, task: dict[str, Any], chat: list[dict[str, str]], cap: int, answer_tokens: int, *, force_close: bool
    ) -> Trace:
        """Think up to `cap` ids; after a close, answer until the model EOS or the answer limit."""
        prompt = self.tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
        thought, cache = self._continued(prompt, None, cap, {self.close_id, self.eos_id})
        closed = thought[-1] == self.close_id
        fed = thought[-1:]
        if not closed and force_close and thought[-1] != self.eos_id:
            fed += self.tokenizer.encode(f"{THINK_CLOSE}\n\n")
        elif not closed:
            return Trace(task, thought, closed, "")
        answer, _ = self._continued(fed, cache, answer_tokens, {self.eos_id})
        return Trace(task, thought, closed, self.tokenizer.decode(answer, skip_special_tokens=True))

    def _continued(self, fed: list[int], cache: Any, limit: int, stops: set[int]) -> tuple[list[int], Any]:
        """Up to `limit` sampled ids, the last one a stop if one came, and the cache without the last id."""
        ids: list[int] = []
        while len(ids) < limit and (not ids or ids[-1] not in stops):
            output = self.model(input_ids=torch.tensor([fed]), past_key_values=cache, use_cache=True)
            cache = output.past_key_values
            ids.append(sampled(output.logits[0, -1].float() / self.temperature, self.random))
            fed = ids[-1:]
        self.sampled_tokens += len(ids)
        return ids, cache


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


def thoughts(traces: list[Trace], budgets: Sequence[int]) -> dict[str, Any]:
    """How thoughts ended: closed within each budget, and in an exact loop at the largest."""
    n = len(traces)
    return {
        "traces": n,
        "closed": {budget: rate(sum(t.closed and len(t.thought) <= budget for t in traces), n) for budget in budgets},
        "loops": rate(sum(not t.closed and tail_period(t.thought) is not None for t in traces), n),
    }


def list_summary(traces: list[Trace]) -> dict[str, Any]:
    """Counts and rates of one task file; usable success and mixed tasks are those at the largest cap."""
    closed = [trace for trace in traces if trace.closed]
    answers = [(trace, corpus.domain.parse(trace.answer)) for trace in closed]
    usable = [(t, parsed) for t, parsed in answers if parsed is not None and len(t.thought) > MIN_THINKING_TOKENS]
    outcomes: dict[str, list[bool]] = {}
    for trace, parsed in usable:
        outcomes.setdefault(trace.task["task_id"], []).append(corpus.domain.grade(trace.task, parsed))
    return {
        **thoughts(traces, LIST_CAPS),
        "parsed_of_closed": rate(sum(parsed is not None for _, parsed in answers), len(closed)),
        "usable_of_closed": rate(len(usable), len(closed)),
        "correct_of_usable": rate(sum(map(sum, outcomes.values())), len(usable)),
        "mixed_tasks": sum(len(set(seen)) == 2 for seen in outcomes.values()),
    }


def macro_summary(traces: list[Trace], arm: str) -> dict[str, Any]:
    """Counts and rates of one arm; solved tasks are those that some trace gets right on every hidden example."""
    domain = macro_corpus.domain
    answers = [(trace.task, domain.parse(trace.answer)) for trace in traces]
    valid = [(task, parsed) for task, parsed in answers if domain.is_valid(task, parsed, arm)]
    right = [task for task, parsed in valid if domain.grade(task, parsed)]
    visible = [task for task, parsed in valid if domain.visible_score(task, parsed) == len(task["visible"])]
    reuse = [(task, parsed) for task, parsed in valid if domain.is_reuse(task)]
    macro = [task for task, parsed in reuse if domain.uses_macro(parsed, arm)]
    return {
        **thoughts(traces, MACRO_BUDGETS),
        "parsed": rate(sum(parsed is not None for _, parsed in answers), len(traces)),
        "valid": rate(len(valid), len(traces)),
        "visible_examples_matched": rate(len(visible), len(traces)),
        "correct": rate(len(right), len(traces)),
        "solved_tasks": sorted({task["task_id"] for task in right}),
        "solved_reuse_tasks": len({task["task_id"] for task in right if domain.is_reuse(task)}),
        "macro_on_reuse": rate(len(macro), len(reuse)),
        "reuse_tasks_with_a_macro": len({task["task_id"] for task in macro}),
    }


def rate(count: int, total: int) -> str:
    """`k/n (share)`, so that no share hides its denominator."""
    return f"{count}/{total} ({count / total:.3f})" if total else "0/0"


def read_tasks(path: Path) -> list[dict[str, Any]]:
    """The tasks of a file, one JSON object a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def main() -> None:
    """Print one JSON object per list task file, and per macro task file and arm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE, help="the model folder")
    parser.add_argument("--temperature", type=float, default=0.6)
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--list-traces", type=int, default=3, help="traces per list task; 0 leaves lists out")
    parser.add_argument("--macro-traces", type=int, default=12, help="traces per macro task and arm; 0 leaves them out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in ("selection", "confirmation", "confirmation_high_effort") if options.list_traces else ():
        tasks = read_tasks(corpus.STUDY / "tasks" / f"{name}.jsonl") * options.list_traces
        report(options, name, [(task, corpus.domain.messages(task)) for task in tasks], None)
    for name, arm in product(("probe", "one_macro"), macro_corpus.domain.ARMS) if options.macro_traces else ():
        tasks = read_tasks(macro_corpus.STUDY / "tasks" / f"{name}.jsonl") * options.macro_traces
        report(options, f"{name}, {arm}", [(task, macro_corpus.domain.messages(task, arm)) for task in tasks], arm)


def report(options: argparse.Namespace, name: str, chats: list[tuple[dict[str, Any], Any]], arm: str | None) -> None:
    """Sample every chat once and print the summary; without an arm the tasks are list tasks."""
    thinker = Thinker(options.folder, options.temperature, options.seed)
    cap, limit = (LIST_CAPS[-1], LIST_ANSWER_TOKENS) if arm is None else (MACRO_BUDGETS[-1], MACRO_ANSWER_TOKENS)
    started = time.monotonic()
    traces = [thinker.trace(task, chat, cap, limit, force_close=arm is not None) for task, chat in chats]
    found = list_summary(traces) if arm is None else macro_summary(traces, arm)
    speed = round(thinker.sampled_tokens / (time.monotonic() - started))
    print(json.dumps({"file": name, **found, "tokens_per_second": speed}), flush=True)


if __name__ == "__main__":
    main()
