"""What was registered of a step: the side of a judgement that was public before the data was."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gatepost.counts import count_of
from gatepost.fingerprint import RowKey
from gatepost.ladder import Step
from gatepost.prompts import PromptIdentity
from gatepost.protocol import Protocol
from gatepost.seeds import SampleSeeds, sample_seeds
from gatepost.stages import Rung, Scope, Stage
from gatepost.verdict import JSON


@dataclass(frozen=True)
class Plan:
    """The registered side of a judgement.

    Attributes:
        rung: at which the stage is judged; ``None`` outside the ladder.
        recorded_digest: protocol digest that the record under judgement carries.
        task_ids: registered tasks of the stage, in order, as many as are sampled.
        prompts: task -> what its prompt has to be in the stage's arm; ``None`` where no manifest is bound.
        record_sha256: task -> digest of its bound record, see ``PromptIdentity``; empty where no manifest is bound.
    """

    protocol: Protocol
    stage: Stage
    rung: Rung | None
    recorded_digest: str
    task_ids: tuple[str, ...]
    prompts: Mapping[str, PromptIdentity] | None = None
    record_sha256: Mapping[str, str] = field(default_factory=dict)

    @property
    def step(self) -> Step:
        """The step whose evidence is judged."""
        if self.rung is None or self.stage.scope in (Scope.ONCE, Scope.NESTED):
            return Step(self.stage.name)
        return Step(self.stage.name, self.rung.name)

    @property
    def max_think_tokens(self) -> int | None:
        """The cap in tokens that applies here: the rung's, or the fixed one of a stage outside the ladder."""
        return self.stage.max_think_tokens if self.rung is None else self.rung.max_think_tokens

    @property
    def sampled_rung(self) -> Rung:
        """The rung whose engine samples: the top one, unless the stage is sampled rung by rung."""
        if self.rung is None or self.stage.scope is Scope.NESTED:
            return self.protocol.rungs[-1]
        return self.rung

    @property
    def sampled_think_tokens(self) -> int:
        """The cap in tokens that rows were sampled under: that of the top rung in a nested stage."""
        return self.stage.max_think_tokens or self.sampled_rung.max_think_tokens

    @property
    def reserve_tokens(self) -> int:
        """The most ids that can follow a prompt: thinking, a forced close, an answer."""
        forced = len(self.protocol.force_close_ids)
        return self.sampled_think_tokens + forced + self.protocol.max_answer_tokens

    @property
    def engine_options(self) -> Mapping[str, JSON]:
        """What was registered for the engine that samples: the rung's options over the protocol's."""
        return {**self.protocol.engine["options"], **self.sampled_rung.engine}

    def active_sequences(self, scheduler: Mapping[str, JSON] | None) -> int | None:
        """How many of the registered samples are decoded at once, as the running engine is set up."""
        limit = count_of(scheduler, "max_num_seqs", at_least=1)
        return None if limit is None or not self.keys else min(len(self.keys), limit)

    def decode_widths(self, scheduler: Mapping[str, JSON] | None) -> range | None:
        """Every width in tokens that a decode step can have: per sequence the sampled id, and those speculated.

        An engine that says nothing of speculation is taken at what was registered, which is none unless it was.
        """
        speculated = count_of(scheduler, "speculative_tokens")
        if speculated is None:
            registered = self.engine_options.get("speculative_config")
            speculated = 0 if registered is None else count_of(registered, "num_speculative_tokens")
        active = self.active_sequences(scheduler)
        if active is None or speculated is None:
            return None
        return range(1 + speculated, active * (1 + speculated) + 1, 1 + speculated)

    @property
    def keys(self) -> tuple[RowKey, ...]:
        """Every registered (task, sample), in order: the denominators."""
        return self.keys_of(self.stage)

    def keys_of(self, stage: Stage) -> tuple[RowKey, ...]:
        """The same of another stage with these tasks: one that this stage scores."""
        return tuple(RowKey(task, k) for task in self.task_ids for k in range(stage.samples_per_task))

    def seeds(self, key: RowKey) -> SampleSeeds | None:
        """The registered seeds of one sample; ``None`` for a stage without a base seed."""
        rule, base_seed = self.protocol.seed_rule, self.stage.base_seed
        if base_seed is None:
            return None
        return sample_seeds(rule, base_seed, key.task_id, self.stage.draw(key.sample_index))
