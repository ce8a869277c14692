"""vLLM, many requests at a time: the engine of study A.

This module needs no vLLM; constructing the engine does, and happens in an engine's child alone. So the packages have
been listed before, and a missing one is one clear error.

vLLM knows one limit, ``max_tokens``, and no rule for thinking. So a request is given room for thinking and answer,
every id is counted as it comes, and a request that used up its budget is aborted before the next step: what is kept is
exactly what the rule allows, and nothing is sampled beyond it. (With asynchronous scheduling a step is in flight by
then, and its id is dropped.) The lengths of forward calls stay unknown, because a step feeds many requests at once.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gatepost.engine import (
    THINKING_POLICIES,
    Chunk,
    Completion,
    EngineFacts,
    EngineSpec,
    Prompt,
    Request,
    SamplingParams,
)
from gatepost.engines.adapter import refuse_unless_taken
from gatepost.engines.model_folder import Source, locate
from gatepost.engines.thinking_budget import Transcript, refuse_unless_implemented, refuse_unless_it_fits
from gatepost.engines.vllm_options import VLLMOptions
from gatepost.errors import EngineError
from gatepost.verdict import JSON

if TYPE_CHECKING:
    from gatepost.engines.vllm_core import Output, VLLMCore

ENVIRONMENT = {
    # The engine core in this process: its scheduler, cache and graphs can be read, and it ends with this process.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
}
"""Set before vLLM is imported, which reads most of its switches once."""


class VLLMEngine:
    """Follows ``gatepost.engine.Engine``."""

    def __init__(self, spec: EngineSpec) -> None:
        """Load model and tokenizer.

        Raises:
            EngineError: ``refused``, for options, a model folder or a device that cannot be had as registered.
            ModuleNotFoundError: vLLM is not installed.
        """
        refuse_unless_implemented(spec, THINKING_POLICIES)
        self._spec, self._options = spec, VLLMOptions.read(spec.options)
        if spec.adapter is not None:
            refuse_unless_taken("vllm", spec.options)
        if spec.thinking == "engine_budget" and "reasoning_config" not in self._options.further:
            raise EngineError("options: reasoning_config is missing, engine_budget needs it", kind="refused")
        os.environ.update(ENVIRONMENT)
        source = _source(spec, self._options)

        from gatepost.engines import vllm_core

        self._core: VLLMCore | None = vllm_core.VLLMCore(self._options, source, spec.adapter)
        self._facts = replace(self._core.facts(spec), sampling=self._resolved(spec.sampling))

    def facts(self) -> EngineFacts:
        """What was constructed, and what was counted once something was sampled.

        ``sampling`` becomes unknown once a request came with other values than the spec's.
        """
        return self._facts

    def render(self, conversations: Mapping[str, Sequence[Mapping[str, str]]]) -> list[Prompt]:
        """Render with the model's chat template, thinking channel closed for ``no_think`` and open otherwise."""
        tokenizer, thinking = self._open().tokenizer, self._spec.thinking != "no_think"
        rendered = {name: tokenizer.render(messages, thinking=thinking) for name, messages in conversations.items()}
        return [Prompt(task_id, text, token_ids) for task_id, (text, token_ids) in rendered.items()]

    def generate(self, requests: Iterable[Request]) -> Iterator[Chunk | Completion]:
        """Sample all requests at once, as many at a time as the scheduler admits."""
        batch, core = list(requests), self._open()
        has_adapter = self._spec.adapter is not None
        refuse_unless_it_fits(
            batch, core.max_model_len, force_close_ids=self._spec.force_close_ids, adapter=has_adapter
        )
        if any(self._resolved(sampling) != self._facts.sampling for sampling in {row.sampling for row in batch}):
            self._facts = replace(self._facts, sampling=None)
        close_ids, is_closed = self._spec.force_close_ids, self._spec.thinking == "no_think"
        rows: dict[str, Transcript] = {}
        try:
            for request in batch:
                row = Transcript(request, close_ids, self._options.chunk_tokens, is_closed=is_closed)
                rows[self._first_stage(request)] = row
            outputs = core.outputs()
            while rows:
                output = next(outputs)
                if output.key in rows:
                    yield from self._advance(rows, output)
        finally:
            core.drop(*rows)
            self._facts = replace(self._facts, scheduler={**(self._facts.scheduler or {}), **core.counters()})

    def close(self) -> None:
        """Stop the engine. Device memory that the process still holds goes with the process."""
        core, self._core = self._core, None
        if core is not None:
            core.shut_down()

    def _advance(self, rows: dict[str, Transcript], output: "Output") -> Iterator[Chunk | Completion]:
        """Count what a step gave to one row, and send, close or end the row where that is due."""
        row, core = rows[output.key], self._open()
        for token_id in output.token_ids:  # several with speculative decoding, the last ones perhaps past the limit
            if not row.is_at_end:
                row.add(token_id)
        if output.finish_reason is not None:
            row.end(output.finish_reason)
        if row.is_at_end:
            core.drop(output.key)
            del rows[output.key]
        if row.is_chunk_due:
            yield row.chunk(None)
        if row.is_used_up:
            yield row.close_by_force(None)
            rows[self._second_stage(row)] = row
        elif row.finish_reason is not None:
            yield row.completion(core.tokenizer.decode)

    def _first_stage(self, request: Request) -> str:
        # The engine's budget does not count the close. It does count ids of the prompt that follow the open marker.
        budget = request.max_think_tokens - 1 if self._spec.thinking == "engine_budget" else None
        return self._open().add(
            request.request_id,
            request.token_ids,
            request.sampling,
            seed=request.seed,
            max_tokens=request.max_think_tokens + request.max_answer_tokens,
            with_adapter=request.with_adapter,
            thinking_token_budget=budget,
        )

    def _second_stage(self, row: Transcript) -> str:
        return self._open().add(
            row.request.request_id,
            (*row.request.token_ids, *row.token_ids),
            row.request.sampling,
            seed=row.request.stage_two_seed,
            max_tokens=row.request.max_answer_tokens,
            with_adapter=row.request.with_adapter,
        )

    def _resolved(self, sampling: SamplingParams) -> dict[str, JSON]:
        """Sampling values, read back from the engine."""
        budget = 0 if self._spec.thinking == "engine_budget" else None
        return self._open().resolved(sampling, thinking_token_budget=budget)

    def _open(self) -> "VLLMCore":
        if self._core is None:
            raise EngineError("the engine is closed", kind="refused")
        return self._core


def _source(spec: EngineSpec, options: VLLMOptions) -> Source:
    """Where the model is. Weights that are made up need no file of weights, which ``locate`` insists on."""
    folder = Path(spec.model_path)
    if options.load_format == "dummy" and folder.is_dir() and spec.revision is None and spec.tokenizer_revision is None:
        return Source(folder, folder, None, None)
    return locate(spec)
