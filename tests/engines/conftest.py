import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gatepost.engine import EngineSpec
from gatepost.engines.child import ChildSession
from gatepost.testing import build_spec
from gatepost.verdict import JSON

OPTIONS = {
    "device": "cpu",
    "dtype": "float32",
    "attention": "sdpa",
    "use_cache": True,
    "max_model_len": 512,
    "threads": 1,
    "deterministic": True,
}


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small causal language model with a chat template that opens a thinking block."""
    if importlib.util.find_spec("transformers") is None or importlib.util.find_spec("torch") is None:
        pytest.skip("needs the extra gatepost[transformers]")
    folder = tmp_path_factory.mktemp("tiny_qwen3")
    subprocess.run([sys.executable, Path(__file__).with_name("build_tiny_qwen3.py"), folder], check=True)
    return folder


@pytest.fixture(scope="session")
def transformers_spec(model_folder: Path) -> Callable[..., EngineSpec]:
    """Spec builder: option changes by keyword."""

    def build(*, folder: Path = model_folder, **changes: JSON) -> EngineSpec:
        return build_spec("transformers", options={**OPTIONS, **changes}, model_path=str(folder))

    return build


@pytest.fixture(scope="session")
def transformers_session(transformers_spec: Callable[..., EngineSpec]) -> Iterator[ChildSession]:
    """One running engine for every test that needs nothing special of it: starting one takes seconds."""
    with ChildSession(transformers_spec()) as session:
        yield session
