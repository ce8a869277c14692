"""Write the prompts: `python studies/engine_geometry/make_tasks.py`. Seeded; the same prompts every time.

They are 974 to 990 tokens long with the tokenizer in ``models/shapes``, as study A's (base arm) were with its own.
"""

import json
import random
from pathlib import Path

FOLDER = Path(__file__).parent / "tasks"
PROMPTS = 19
SHORTEST_NUMBERS, LONGEST_NUMBERS = 950, 966


def prompt(numbers: int, generator: random.Random) -> str:
    """A list to go on with."""
    listed = " ".join(str(generator.randrange(10)) for _ in range(numbers))
    return f"Go on with this list: {listed}"


def main() -> None:
    """Write as many prompts as the widest step of study A decodes at once; the first twelve are its probe."""
    generator = random.Random(49152)
    span = LONGEST_NUMBERS - SHORTEST_NUMBERS + 1
    tasks = [
        {"task_id": f"prompt-{n:02}", "prompt": prompt(LONGEST_NUMBERS - n % span, generator)} for n in range(PROMPTS)
    ]
    (FOLDER / "prompts.jsonl").write_text("".join(json.dumps(task, sort_keys=True) + "\n" for task in tasks))


if __name__ == "__main__":
    main()
