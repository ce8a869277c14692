"""The frozen plan, as typed data. Parsing assumes a schema-valid document (see ``gatepost.schema``)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gatepost.ed25519 import public_key
from gatepost.engine import SamplingParams
from gatepost.errors import RegistrationError
from gatepost.stages import Rung, Stage
from gatepost.verdict import JSON


@dataclass(frozen=True)
class ModelPin:
    """The registered model: data, never constants in code.

    Attributes:
        repository: repository id, or a name for a local model.
        path: folder relative to the study for a local model; ``None`` when the repository is to be loaded.
        revision, tokenizer_revision: commit hex for a repository; for a local folder the tree digest of its files.
        files: file name -> SHA-256 hex digest of a local model; empty for a repository.
        think_open, think_close: marker text and the single id registered for it.
        model_eos_id, tokenizer_eos_id: both ends of sequence; which of them stops is said by the sampling.
    """

    repository: str
    path: str | None
    revision: str
    tokenizer_revision: str
    files: Mapping[str, str]
    think_open: tuple[str, int]
    think_close: tuple[str, int]
    model_eos_id: int
    tokenizer_eos_id: int

    @property
    def special_tokens(self) -> dict[str, int]:
        """Marker text -> registered id."""
        return dict([self.think_open, self.think_close])

    @classmethod
    def from_json(cls, document: Mapping[str, JSON]) -> Self:
        values = dict(document)
        for marker in ("think_open", "think_close"):
            values[marker] = (document[marker]["token"], document[marker]["id"])
        return cls(**values)


@dataclass(frozen=True)
class AdapterPin:
    """The registered LoRA adapter: a name for it, its folder relative to the study, and the digest of its files."""

    name: str
    path: str
    revision: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Label:
    """A terminal state, and what it may and may not be cited for."""

    name: str
    licenses: str
    does_not_license: str


@dataclass(frozen=True)
class BoundFile:
    """A file whose bytes are part of the plan, copied into the archive when the protocol is frozen."""

    path: str
    role: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Approvals:
    """Who has to say GO before a step may run.

    Attributes:
        author: Ed25519 public key, 32 bytes, of whoever wrote the protocol.
        reviewers: name -> public key of those who can approve.
        steps: stage -> how many reviewers each of its steps needs, every stage named; 0 for none.
    """

    author: bytes
    reviewers: Mapping[str, bytes]
    steps: Mapping[str, int]

    @classmethod
    def from_json(cls, document: Mapping[str, JSON]) -> Self:
        reviewers = {name: public_key(text) for name, text in document["reviewers"].items()}
        return cls(public_key(document["author"]), reviewers, document["steps"])


@dataclass(frozen=True)
class Protocol:
    """A frozen protocol.

    Attributes:
        digest: ``sha256:…`` of its RFC 8785 bytes; the name by which everything refers to it.
        study, domain_version: which task domain renders, parses and grades.
        labels: terminal state (``exhausted``, ``selected``, ``replicated``, ``not_replicated``) -> label.
        engine: kind, options, timeouts and registered package versions.
        thinking, force_close_ids: how thinking is bounded, see ``gatepost.engine.THINKING_POLICIES``.
        seed_rule: how child seeds are derived, see ``gatepost.seeds``.
        splits, parents: name -> path of the bound file that holds the tasks.
        approvals: who has to say GO; ``None`` for a protocol that asks nobody.
        prompt_manifest: path of the bound file that says what prompts are; ``None`` for a protocol that registers none.
        adapter: beside the model; ``None`` for most protocols.
        document: the whole document, for everything that is only read by people.
    """

    digest: str
    id: str
    study: str
    domain_version: int
    model: ModelPin
    engine: Mapping[str, JSON]
    sampling: SamplingParams
    max_answer_tokens: int
    thinking: str
    force_close_ids: tuple[int, ...]
    seed_rule: str
    rungs: tuple[Rung, ...]
    stages: tuple[Stage, ...]
    labels: Mapping[str, Label]
    splits: Mapping[str, str]
    parents: Mapping[str, str]
    bound: tuple[BoundFile, ...]
    document: Mapping[str, JSON]
    approvals: Approvals | None = None
    prompt_manifest: str | None = None
    adapter: AdapterPin | None = None

    def stage(self, name: str) -> Stage:
        """The stage of that name. Raises ``RegistrationError`` listing the registered ones."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        known = ", ".join(stage.name for stage in self.stages)
        raise RegistrationError(f"protocol {self.id}: no stage {name!r}, registered: {known}")

    def rung(self, name: str) -> Rung:
        """The rung of that name. Raises ``RegistrationError`` listing the registered ones."""
        for rung in self.rungs:
            if rung.name == name:
                return rung
        known = ", ".join(rung.name for rung in self.rungs)
        raise RegistrationError(f"protocol {self.id}: no rung {name!r}, registered: {known}")

    def sampling_stages(self, stage: Stage) -> tuple[Stage, ...]:
        """The stages whose samples a stage judges: those that it scores, else itself if it samples."""
        if stage.scores:
            return tuple(map(self.stage, stage.scores))
        return (stage,) if stage.samples else ()

    @property
    def locks(self) -> tuple[str, ...]:
        """Paths of the bound locks, whose pins are among the engine's registered packages."""
        return tuple(file.path for file in self.bound if file.role == "lock")

    def approvals_needed(self, stage: str) -> int:
        """How many reviewers have to say GO before a step of a stage may run."""
        return 0 if self.approvals is None else self.approvals.steps.get(stage, 0)

    @property
    def forbidden_roots(self) -> tuple[str, ...]:
        """Folders of earlier studies, from which nothing may come and into which nothing may go."""
        return tuple(self.document["preregistration"]["forbidden_roots"])

    @classmethod
    def from_json(cls, document: Mapping[str, JSON], *, digest: str) -> Self:
        sampling = dict(document["sampling"])
        generation = {name: sampling.pop(name) for name in ("max_answer_tokens", "thinking", "seed_rule")}
        force_close_ids = tuple(sampling.pop("force_close_ids"))
        sampling["stop_ids"] = tuple(sampling["stop_ids"])
        return cls(
            digest=digest,
            id=document["id"],
            study=document["study"]["name"],
            domain_version=document["study"]["domain_version"],
            model=ModelPin.from_json(document["model"]),
            engine=document["engine"],
            sampling=SamplingParams(**sampling),
            force_close_ids=force_close_ids,
            **generation,
            rungs=tuple(Rung(**rung) for rung in document["rungs"]),
            stages=tuple(Stage.from_json(stage) for stage in document["stages"]),
            labels={state: Label(**label) for state, label in document["labels"].items()},
            splits=document["splits"],
            parents=document["parents"],
            bound=tuple(BoundFile(**entry) for entry in document["bound"]),
            document=document,
            approvals=Approvals.from_json(document["approvals"]) if "approvals" in document else None,
            prompt_manifest=document["prompts"]["manifest"] if "prompts" in document else None,
            adapter=AdapterPin(**document["adapter"]) if "adapter" in document else None,
        )
