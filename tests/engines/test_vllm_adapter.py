"""A LoRA adapter on a real vLLM, from a draft to a receipt: one that changes something, and one that adds zeros."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gatepost import jsonfile
from gatepost.archive import Archive
from gatepost.engine import Adapter, Engine
from gatepost.engines.adapter import digests
from gatepost.engines.child import ChildSession
from gatepost.engines.model_folder import Source
from gatepost.errors import EngineError
from gatepost.fingerprint import tree_root
from gatepost.replay import replay
from gatepost.testing import HOT, AdapterContract, build_request, collect
from tests.adapters import CONFIG, with_adapter, write_adapter
from tests.archives import Project, create_project
from tests.engines.vllm_engines import DEVICE, OPTIONS, build_model, needs_vllm, running, vllm_spec

pytestmark = needs_vllm

LORA = {"enable_lora": True, "max_loras": 2, "max_lora_rank": 8, "enable_chunked_prefill": False}
"""Two slots: in a batch of both kinds, the CPU build of 0.32 gives requests without an adapter what the last one holds.
"""
CLOSE_IDS = (260, 10, 10)
SHAPES = {"q_proj": 64, "v_proj": 32}
"""Module -> length of its output in ``build_tiny_vllm.py``; its input has 32."""


def lora(folder: Path, *, b: float, rank: int = 4) -> Path:
    """A random adapter of the tiny model; ``b`` scales its second matrices, so with 0 it adds nothing."""
    import numpy as np
    from safetensors.numpy import save

    random, tensors = np.random.default_rng(7), {}
    for layer in range(2):
        for module, outputs in SHAPES.items():
            name = f"base_model.model.model.layers.{layer}.self_attn.{module}"
            tensors[f"{name}.lora_A.weight"] = random.normal(size=(rank, 32)).astype("float32")
            tensors[f"{name}.lora_B.weight"] = (b * random.normal(size=(outputs, rank))).astype("float32")
    write_adapter(folder, save(tensors))
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, "r": rank}))
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_model("dense", tmp_path_factory.mktemp("dense"))


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lora(tmp_path_factory.mktemp("adapters") / "tuned", b=1.0)


@pytest.fixture(scope="module")
def engine(model: Path, adapter: Path) -> Iterator[Engine]:
    spec = vllm_spec(model, thinking="force_close", close_ids=CLOSE_IDS, **LORA)
    with running(replace(spec, adapter=Adapter("tuned", str(adapter)))) as session:
        yield session


class TestAdapter(AdapterContract):
    pass


def test_the_files_that_were_loaded_are_told(engine: Engine, adapter: Path) -> None:
    assert engine.facts().adapter_files == digests(adapter)


@pytest.mark.parametrize("with_adapter", [False, True])
def test_both_stages_of_a_forced_close_are_of_one_model(engine: Engine, with_adapter: bool) -> None:
    """What follows the close is what a request of its own gives, fed all that went before."""
    (prompt,) = engine.render({"t": [{"role": "user", "content": "hi"}]})
    request = build_request(prompt, engine.facts(), seed=1, stage_two_seed=2, max_think_tokens=6, sampling=HOT)
    row = collect(engine, [replace(request, with_adapter=with_adapter)])[request.request_id]
    assert row.injected_ids == CLOSE_IDS
    before = (*prompt.token_ids, *row.token_ids[: 6 + len(CLOSE_IDS)])
    after = replace(request, token_ids=before, seed=2, max_think_tokens=request.max_answer_tokens)
    answers = {
        choice: collect(engine, [replace(after, with_adapter=choice)])[request.request_id].token_ids
        for choice in (False, True)
    }
    answer = row.token_ids[6 + len(CLOSE_IDS) :]
    assert [choice for choice, ids in answers.items() if ids[: len(answer)] == answer] == [with_adapter]


@pytest.mark.parametrize("problem", ["rank", "module", "config", "enable_lora"])
def test_an_adapter_that_cannot_be_had_is_refused_at_the_start(model: Path, tmp_path: Path, problem: str) -> None:
    folder = lora(tmp_path / "tuned", b=1.0, rank=16 if problem == "rank" else 4)
    if problem == "module":
        path = folder / "adapter_model.safetensors"
        path.write_bytes(path.read_bytes().replace(b"v_proj", b"x_proj"))
    if problem == "config":
        (folder / "adapter_config.json").write_text("{")
    options = {**LORA, "enable_lora": problem != "enable_lora"}
    with pytest.raises(EngineError, match="adapter") as refused:
        ChildSession(replace(vllm_spec(model, **options), adapter=Adapter("tuned", str(folder))))
    assert refused.value.kind == "refused"


@pytest.mark.parametrize(
    ("b", "slots", "applied"),
    [
        (1.0, 2, True),
        (0.0, 2, False),  # its second matrices are zero
        (1.0, 1, DEVICE != "cpu"),  # on the CPU build every sample of a batch gets what its last slot holds
    ],
    ids=["real", "zero", "one slot"],
)
def test_the_gate_tells_whether_an_adapter_changes_anything(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, b: float, slots: int, applied: bool
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    project = create_project(tmp_path)
    archive = _freeze(project, model, lora(tmp_path / "adapters" / "tuned", b=b), max_loras=slots)
    project.step(archive)  # the toy study's checks of its tasks, without an engine
    decision = project.step(archive, ChildSession)
    (judgement,) = archive.receipt(archive.finished_steps()[-1])["judgements"]
    verdicts = {verdict["gate"]: verdict for verdict in judgement["verdicts"]}
    assert {name: verdict["outcome"] for name, verdict in verdicts.items()} == {
        "adapter_applied": "pass" if applied else "fail",
        "seeds": "pass",
        "seed_binding": "pass",
    }
    checks = {check["name"]: check for check in verdicts["adapter_applied"]["checks"]}
    failed = {name for name, check in checks.items() if check["outcome"] == "fail"}
    assert failed == (set() if applied else {"changed_task_share", "changed_beyond_repeats"})
    assert (checks["changed_task_share"]["k"], checks["repeat_changed_share"]["k"]) == (4 if applied else 0, 0)
    assert (decision.state, str(decision.step)) == (("run", "selection") if applied else ("halted", "contrast"))
    session = jsonfile.read(archive.step_folder(archive.finished_steps()[-1]) / "session.json")
    assert session["engine"]["adapter_files"] == archive.protocol.adapter.files
    assert replay(archive.root, gates=project.gates, studies=project.studies).differences == ()


def _freeze(project: Project, model: Path, adapter: Path, **changes: object) -> Archive:
    pin = tree_root(Source(model, model, None, None).digests())
    options = "\n".join(f"{name} = {json.dumps(value)}" for name, value in {**OPTIONS, **LORA, **changes}.items())

    def edit(draft: str) -> str:
        draft = with_adapter(adapter)(draft)
        for old, new in (
            (r'repository = "toy"', f'repository = "toy"\npath = "{model}"'),
            (r'"0{40}"', f'"{pin}"'),
            (r'(token = "<think>", id = )\d+', r"\g<1>259"),
            (r'(token = "</think>", id = )\d+', r"\g<1>260"),
            (r"model_eos_id = \d+\ntokenizer_eos_id = \d+", "model_eos_id = 256\ntokenizer_eos_id = 258"),
            (r"stop_ids = \[\d+\]", "stop_ids = [256]"),
            (r"(?s)max_model_len = 4096\nrules.*?\n\n", f"{options}\n\n"),
            (r"temperature = 0.6\ntop_p = 0.95\ntop_k = 20", "temperature = 2.0\ntop_p = 1.0\ntop_k = 0"),
        ):
            draft, count = re.subn(old, new, draft)
            assert count, old
        return draft

    return project.freeze(kind="vllm", edit=edit)
