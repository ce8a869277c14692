"""A process that runs gatepost's writing commands with one system call spoilt, as often as it is told to.

``write_side.py`` starts it with ``write_side.c`` preloaded, a project, and an archive that it runs once, so that all is
loaded. Then it forks for each order on its input, a line of JSON each.
"""

import ctypes
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cryptography.hazmat.primitives.asymmetric.ed25519
import pyarrow.parquet
import securesystemslib.signer

from gatepost import approve, replay, status
from gatepost.__main__ import main
from gatepost.archive import Archive
from gatepost.audit import native_seam, verified_macro
from gatepost.engines.scripted import ScriptedEngine
from gatepost.errors import GatepostError
from gatepost.probe import Probe
from tests.archives import Project

PRELOADED = (cryptography, pyarrow, securesystemslib, approve, replay, status, native_seam, verified_macro)
ALLOWED_SECONDS = 120
BUG = 70


def live(project: str, archive: str) -> int:
    """Run steps until the ladder is terminal, as so many invocations would."""
    home = Project(Path(project))
    while True:
        decision = Probe(Archive(Path(archive)), home.gates, home.studies, ScriptedEngine).run()
        if decision.terminal:
            return 0


OPERATIONS: dict[str, Callable[..., int]] = {"live": live, "command": lambda *arguments: main(arguments)}


def obey(order: dict[str, Any], shim: ctypes.CDLL) -> None:
    """Run one order in this process, which ends with it: 0 done, 1 refused, ``BUG`` for any other exception."""
    signal.alarm(ALLOWED_SECONDS)
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if order["log"] else -1
    said = os.open(order["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    shim.arm(order["under"].encode(), order["at"], order["kind"], order["error"], order["forever"], log)
    try:
        result = OPERATIONS[order["operation"]](*order["arguments"])
    except (GatepostError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        result = 1
    except BaseException:
        traceback.print_exc()
        result = BUG
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(said, f"\ncalls {shim.counted()}".encode())
    os._exit(result)


def serve() -> None:
    """Obey orders until there are none; answer each with the status that its process ended with."""
    shim = ctypes.CDLL(None)
    live(*sys.argv[1:])
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            obey(json.loads(line), shim)
        _, ended = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(ended), flush=True)


if __name__ == "__main__":
    serve()
