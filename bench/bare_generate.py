"""vLLM's own ``LLM.generate``, as a researcher would call it: the alternative in ``test_session_overhead``.

``python bench/bare_generate.py ARGUMENTS`` constructs the engine from a JSON object of engine arguments, then answers
each line of standard input, a JSON list of requests, with a line ``{"seconds": …, "tokens": …}``.
"""

import json
import os
import sys
import time

answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # what vLLM prints is no answer

from gatepost.engines.vllm import ENVIRONMENT  # noqa: E402  # not before the pipes are apart

os.environ.update(ENVIRONMENT)

from vllm import LLM, SamplingParams  # noqa: E402  # reads its switches once


def main() -> None:
    """Serve until standard input ends."""
    engine = LLM(**json.loads(sys.argv[1]))
    for line in sys.stdin:
        requests = json.loads(line)
        prompts = [{"prompt_token_ids": request["token_ids"]} for request in requests]
        params = [SamplingParams(**request["sampling"]) for request in requests]
        started = time.monotonic()
        outputs = engine.generate(prompts, params, use_tqdm=False)
        seconds = time.monotonic() - started
        tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
        print(json.dumps({"seconds": seconds, "tokens": tokens}), file=answers, flush=True)


if __name__ == "__main__":
    main()
