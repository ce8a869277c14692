"""Study A's engine geometry on a GPU: what was registered is had exactly, or refused before generation."""

from collections.abc import Callable

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from tests.live.conftest import Run

pytestmark = pytest.mark.gpu

EXACT = [("exact_49152", [1, 2, 4, 8, 16, 19]), ("exact_61440", [1, 2, 4, 8, 15])]
REFUSED = [
    ("implicit_49152", ["capture_sizes [1, 2, 4, 8, 16] == []", "resolved [1, 2, 4, 8, 16], maximum 16; missing [19]"]),
    ("implicit_61440", ["capture_sizes [1, 2, 4, 8] == []", "resolved [1, 2, 4, 8], maximum 8; missing [15]"]),
    ("eager", ["graph_mode NONE in", "decode_mode NONE == FULL"]),
    ("piecewise", ["graph_mode PIECEWISE in", "decode_mode PIECEWISE == FULL"]),
    ("too_wide", ["required_tokens 1013760 <= 996864", "required_blocks"]),
]


@pytest.mark.parametrize(("draft", "sizes"), EXACT)
def test_an_exact_list_passes(freeze: Callable[[str], Archive], run: Run, draft: str, sizes: list[int]) -> None:
    archive = freeze(f"engine_geometry/{draft}.toml")
    assert run(archive, "-m", "gpu", "--gatepost-preflight").returncode == 0
    assert archive.journal.read()[-1].event == "preflight"
    (attempt,) = archive.attempt_folders()
    engine = jsonfile.read_canonical(attempt / "preflight.json")["engine"]
    assert engine["cuda_graphs"]["resolved_capture_sizes"] == sizes
    assert engine["cuda_graphs"]["decode_mode"] == "FULL"
    assert engine["cuda_graphs"]["uncovered_decode_widths"] == []
    assert engine["kv_cache"]["block_size"] == 528


@pytest.mark.parametrize(("draft", "message"), REFUSED)
def test_anything_else_is_refused_before_generation(
    freeze: Callable[[str], Archive], run: Run, draft: str, message: list[str]
) -> None:
    archive = freeze(f"engine_geometry/{draft}.toml")
    result = run(archive, "-m", "gpu", "--gatepost-preflight")
    assert result.returncode == pytest.ExitCode.TESTS_FAILED
    for part in message:
        assert part in result.stdout
    assert archive.journal.read()[-1].event == "refused"
    assert archive.finished_steps() == []
