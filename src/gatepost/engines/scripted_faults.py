"""The faults of the scripted engine, real ones:

===================  ==========================================================================
``crash``            raises ``RuntimeError``
``out_of_memory``    raises ``MemoryError``
``missing_package``  imports a package that is not installed
``noise``            prints to stdout and goes on: no fault, but what libraries do
``hang``             sleeps for ever
``exit``             the process exits with code 3 (only in a child, as all that follow)
``kill``             the process is killed by SIGKILL
``garbage``          writes a line that is no message to the parent, and goes on
``partial_line``     writes half a message and exits with code 0
===================  ==========================================================================
"""

import importlib
import os
import signal
import time

from gatepost.engines.channel import Channel
from gatepost.errors import EngineError


def commit(fault: str | None) -> None:
    """Commit one of these faults; ``None`` commits none."""
    match fault:
        case None:
            pass
        case "crash":
            raise RuntimeError("scripted crash")
        case "out_of_memory":
            raise MemoryError("scripted lack of memory")
        case "missing_package":
            importlib.import_module("gatepost_scripted_missing_package")
        case "noise":
            print("scripted noise on stdout", flush=True)
            os.write(1, b"and on its descriptor\n")
        case "hang":
            while True:
                time.sleep(3600)
        case "exit":
            _require_child(fault)
            os._exit(3)
        case "kill":
            _require_child(fault)
            os.kill(os.getpid(), signal.SIGKILL)
        case "garbage":
            _require_child(fault).write(b"Loading weights: 100%\n")
        case "partial_line":
            _require_child(fault).write(b'{"kind":"chu')
            os._exit(0)
        case _:
            raise EngineError(f"fault {fault!r} is unknown", kind="refused")


def _require_child(fault: str) -> Channel:
    if Channel.current is None:
        raise EngineError(f"fault {fault!r} would end this process: it needs an engine in a child", kind="refused")
    return Channel.current
