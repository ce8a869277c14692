"""Every error comes back from another process as it was raised there."""

import pickle

import pytest

from gatepost import errors
from gatepost.errors import MAX_SHOWN, DataError, EngineError, GatepostError, MissingExtraError

RAISED = [
    DataError("rows.jsonl:1: token_ids[1] is True"),
    EngineError("gone", kind="crash"),
    GatepostError(),
    GatepostError("long " * MAX_SHOWN + "\nand short"),
    MissingExtraError("numba", needed_for="the compiled loop detector", extra="compiled"),
    *(kind("said") for kind in GatepostError.__subclasses__() if kind not in (EngineError, MissingExtraError)),
]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
def test_an_error_survives_its_process(error: GatepostError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)


def test_none_is_left_out() -> None:
    kinds = {value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, GatepostError)}
    assert kinds - {type(error) for error in RAISED} <= {errors.IntegrityError}
