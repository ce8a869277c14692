"""The version of NVIDIA's kernel driver, which torch does not tell: its own number is that of CUDA."""

import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_VERSION = r"[0-9]+(?:\.[0-9]+)+"
_MODULE = re.compile(rf"^NVRM version:.*?\s({_VERSION})(?=\s|$)", re.MULTILINE)

KERNEL_MODULE = Path("/proc/driver/nvidia/version")
QUERY = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
QUERY_SECONDS = 30.0
"""A driver without persistence mode takes seconds to wake."""


@cache
def driver_version(module: Path = KERNEL_MODULE, query: Sequence[str] = QUERY) -> str | None:
    """Such as ``580.159.04``: from the kernel module, else by ``nvidia-smi``; ``None`` where neither tells.

    The module's line names its kind first, in words that hold digits (``NVIDIA UNIX Open Kernel Module for x86_64``).
    A container may hide the module and still have the command.
    """
    try:
        if found := _MODULE.search(module.read_text()):
            return found[1]
    except (OSError, UnicodeDecodeError):
        pass
    try:
        asked = subprocess.run(
            query, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=QUERY_SECONDS, check=True
        )
    except (OSError, UnicodeDecodeError, subprocess.SubprocessError):
        return None
    first, *others = asked.stdout.split() or [""]  # a line for each device
    return first if re.fullmatch(_VERSION, first) and set(others) <= {first} else None
