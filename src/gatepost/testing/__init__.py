"""For tests of one's own engines and gates.

Engines: the contract as a class to subclass, and builders of small specs and requests. Gates: ``build_record``, which a
gate judges with ``gate.judge(record, thresholds)``.

A test module for an engine of one's own needs two fixtures, ``fresh_engine`` being the same for one test each::

    @pytest.fixture(scope="module")
    def engine():
        with ChildSession(my_spec) as session:
            yield session

    class TestMyEngine(EngineContract):
        pass
"""

from gatepost.testing.builders import (
    HOT,
    THINK_CLOSE,
    THINK_OPEN,
    Sampled,
    build_request,
    build_sampling,
    build_spec,
    collect,
)
from gatepost.testing.contracts import AdapterContract, EngineContract, ForceCloseContract
from gatepost.testing.records import build_record

__all__ = [
    "HOT",
    "THINK_CLOSE",
    "THINK_OPEN",
    "AdapterContract",
    "EngineContract",
    "ForceCloseContract",
    "Sampled",
    "build_record",
    "build_request",
    "build_sampling",
    "build_spec",
    "collect",
]
