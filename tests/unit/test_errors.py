"""Every error comes back from another process as it was raised there."""

import pickle

import pytest

from gatepost import errors
from gatepost.errors import MAX_SHOWN, EngineError, GatepostError, MissingExtraError

KINDS = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, GatepostError)}
RAISED = [
    EngineError("gone", kind="crash"),
    GatepostError("long " * MAX_SHOWN + "\nand short"),
    MissingExtraError("numba", needed_for="the compiled loop detector", extra="compiled"),
    *(kind("said") for kind in sorted(KINDS - {EngineError, GatepostError, MissingExtraError}, key=str)),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_an_error_survives_its_process(error: GatepostError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)
