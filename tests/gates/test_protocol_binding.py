import pytest

from gatepost.evidence import Record

from .builders import DIGEST, judge, plan


@pytest.mark.parametrize(
    ("recorded", "outcome"),
    [
        (DIGEST, "pass"),
        (DIGEST[:-1] + "1", "fail"),
        (DIGEST.upper(), "fail"),
        (DIGEST.removeprefix("sha256:"), "fail"),
        ("", "fail"),
    ],
)
def test_only_the_digest_of_this_protocol_binds(recorded: str, outcome: str) -> None:
    assert judge("protocol_binding", Record(plan(recorded_digest=recorded))).outcome == outcome
