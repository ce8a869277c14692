"""The scripted engine keeps the contract, in this process and in a child."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gatepost.engine import Adapter, Engine
from gatepost.engines.child import ChildSession
from gatepost.engines.scripted import ScriptedEngine
from gatepost.testing import AdapterContract, EngineContract, build_spec
from tests.adapters import write_adapter


def _open(where: str) -> Engine:
    spec = build_spec()
    return ScriptedEngine(spec) if where == "in_process" else ChildSession(spec)


@pytest.fixture(scope="module", params=["in_process", "in_child"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = _open(request.param)
    yield engine
    engine.close()


@pytest.fixture(params=["in_process", "in_child"])
def fresh_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    engine = _open(request.param)
    yield engine
    engine.close()


class TestScripted(EngineContract):
    pass


class TestScriptedAdapter(AdapterContract):
    @pytest.fixture(params=[ScriptedEngine, ChildSession])
    def engine(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
        adapter = write_adapter(tmp_path / "tuned")
        engine = request.param(build_spec(adapter=Adapter("tuned", str(adapter))))
        yield engine
        engine.close()


class TestScriptedBlind(EngineContract):
    observes_forwards = False

    @pytest.fixture
    def engine(self) -> Engine:
        return ScriptedEngine(build_spec(options={"rules": [{"forwards": "unobserved"}]}))

    @pytest.fixture
    def fresh_engine(self, engine: Engine) -> Engine:
        return engine
