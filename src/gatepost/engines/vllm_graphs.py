"""Which CUDA graph the model runner takes for a step: asked before generation, observed during it.

vLLM has two model runners, with an object each that answers that question: the first one's ``cudagraph_dispatcher``,
the second one's ``cudagraph_manager``. Both have a method ``dispatch``, called once for each forward call of a batch.
vLLM's own ``cudagraph_metrics`` tells the same, but not for the second runner in 0.24, which runs dense Qwen3 there.
"""

import inspect
from collections import Counter
from typing import Any

from gatepost.verdict import JSON


class GraphDispatch:
    """The choices of one model runner. Without a runner in this process, or a dispatcher in it, all is unknown."""

    def __init__(self, runner: Any, *, decode_query_tokens: int) -> None:
        """Find the dispatcher and watch it from now on.

        Args:
            runner: vLLM's model runner; ``None`` if it lives in another process.
            decode_query_tokens: tokens of one sequence in a decode step; more than 1 with speculative decoding.
        """
        self._dispatcher = getattr(runner, "cudagraph_dispatcher", None) or getattr(runner, "cudagraph_manager", None)
        self._query_tokens = decode_query_tokens
        self._steps: Counter[tuple[str, int, int]] = Counter()
        if self._dispatcher is not None:
            self._dispatch = self._dispatcher.dispatch
            self._parameters = list(inspect.signature(self._dispatch).parameters)
            self._dispatcher.dispatch = self._observe

    def uncovered_widths(self, max_num_seqs: int) -> list[int] | None:
        """Decode widths in tokens, up to that of ``max_num_seqs`` sequences, for which there is no full graph."""
        if self._dispatcher is None:
            return None
        widths = [sequences * self._query_tokens for sequences in range(1, max_num_seqs + 1)]
        return [width for width in widths if self._mode_of_decoding(width) != "FULL"]

    def adapter_cases(self) -> list[int] | None:
        """Numbers of active adapters that graphs were captured for, 0 for none."""
        cases = getattr(self._dispatcher, "lora_capture_cases", None)
        if cases is None and (keys := getattr(self._dispatcher, "cudagraph_keys", None)) is not None:
            cases = {key.num_active_loras for mode in keys.values() for key in mode}
        return None if cases is None else sorted(cases)

    def histogram(self) -> list[dict[str, JSON]] | None:
        """Steps by graph mode, width and padded width, both in tokens; ``None`` if none was observed."""
        return [
            {"mode": mode, "tokens": tokens, "padded_tokens": padded, "steps": steps}
            for (mode, tokens, padded), steps in sorted(self._steps.items())
        ] or None

    def _observe(self, *args: Any, **kwargs: Any) -> Any:
        """Stands in for ``dispatch``: its answer, counted."""
        answer = self._dispatch(*args, **kwargs)
        mode, padded = _mode_and_width(answer)
        tokens = kwargs["num_tokens"] if "num_tokens" in kwargs else args[self._parameters.index("num_tokens")]
        self._steps[mode, tokens, padded] += 1
        return answer

    def _mode_of_decoding(self, tokens: int) -> str:
        """The mode of a step in which every sequence decodes, asked in whichever terms this dispatcher has."""
        question = {
            "num_reqs": tokens // self._query_tokens,
            "num_tokens": tokens,
            "uniform_decode": True,
            "uniform_token_count": self._query_tokens,
            "max_query_len": self._query_tokens,
            "num_active_loras": 0,
        }
        mode, _ = _mode_and_width(
            self._dispatch(**{name: question[name] for name in question if name in self._parameters})
        )
        return mode


def _mode_and_width(answer: Any) -> tuple[str, int]:
    """Mode and padded width in tokens: the first runner answers in a pair, the second in one descriptor."""
    mode, descriptor = answer if isinstance(answer, tuple) else (answer.cg_mode, answer)
    return mode.name, descriptor.num_tokens
