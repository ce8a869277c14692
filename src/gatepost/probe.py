"""Run the one step that the ladder authorises, with one engine, and commit it."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from gatepost import integrity, jsonfile, schema
from gatepost.agreement import require_counts, require_same_engine
from gatepost.approval import require_approved
from gatepost.archive import Archive
from gatepost.audit import rows as tables
from gatepost.engine import Adapter, Engine, EngineFacts, EngineSpec
from gatepost.engines.plain import to_plain
from gatepost.errors import IntegrityError, OrderError
from gatepost.freeze import find_folder
from gatepost.gatefiles import Gates
from gatepost.judge import judge
from gatepost.ladder import Decision, Step, audit
from gatepost.preflight import judge_before_generation
from gatepost.protocol import Protocol
from gatepost.records import analyse_tasks, choose_samples, grade_choices, grade_samples, records_of, sampling_plan
from gatepost.recovery import recover
from gatepost.refusal import ending
from gatepost.replay import require_faithful
from gatepost.roots import refuse_forbidden, starts_near
from gatepost.sampling import Progress, Stream, first_line, render, requests_of, sample
from gatepost.stages import Rung, Stage
from gatepost.stepfiles import TAKEN_OVER, write_receipt, write_session
from gatepost.studyfiles import Domain, load_domain, scoring_domain

OpenEngine = Callable[[EngineSpec], Engine]


@dataclass(frozen=True)
class Probe:
    """What a live invocation needs: an archive, the installed gates, where studies are, how engines are opened.

    Attributes:
        preflight_only: stop before generation; what was seen stays on record, and the step stays open.
    """

    archive: Archive
    gates: Gates
    studies: tuple[Path, ...]
    open_engine: OpenEngine
    progress: Progress = lambda completed, registered, tokens: None
    preflight_only: bool = False

    def run(self, *, expected: Step | None = None) -> Decision:
        """Run the open step, write its evidence and receipt, and return where that leaves the ladder.

        Args:
            expected: the step that the caller means; another run may have moved the ladder since it looked.

        Raises:
            OrderError: no step is open, or another than the expected one, or one without a preflight where nothing else
                was asked for, or another run holds the archive.
            ApprovalError: the step waits for reviewers.
            PreflightRefusedError: a gate before generation did not pass.
            RegistrationError: the archive or the model lies under a forbidden root.
            IntegrityError: the record is not whole, or a stage that scores finds a history that does not replay.
            EngineError: the engine failed; the attempt is on record with every id that was sampled.
        """
        with self.archive.lock():
            refuse_forbidden(self.archive.protocol, [self.archive.root], near=self.archive.root)
            integrity.verify(self.archive)
            recover(self.archive)
            decision = audit(self.archive.protocol, self.archive.judgements())
            if decision.step is None or decision.terminal:
                raise OrderError(f"protocol {self.archive.protocol.id}: no step is open; {decision}: {decision.reason}")
            if expected not in (None, decision.step):
                raise OrderError(f"protocol {self.archive.protocol.id}: {decision.step} is open, expected {expected}")
            if self.preflight_only:
                self._require_preflight(decision.step)
            require_approved(self.archive, decision.step)
            return self._attempt(decision.step)

    def _require_preflight(self, step: Step) -> None:
        stage = self.archive.protocol.stage(step.stage)
        if not stage.samples:
            raise OrderError(f"{step}: starts no engine, so there is no preflight")
        if not any(self.gates.of(entry, where=str(step)).before_generation for entry in stage.gates):
            raise OrderError(f"{step}: no gate of this stage judges before generation, so there is no preflight")

    def _attempt(self, step: Step) -> Decision:
        protocol = self.archive.protocol
        number, folder = self.archive.begin(step)
        limits: list[str] = []
        try:
            domain = load_domain(protocol.study, protocol.domain_version, self.studies, where=f"protocol {protocol.id}")
            stage = protocol.stage(step.stage)
            tables.write_tasks(folder, analyse_tasks(self.archive, stage, domain))
            if stage.samples and (self.preflight_only or not self._resume(step, folder)):
                limits = self._sample(step, stage, number, folder, domain)
                if self.preflight_only:
                    self.archive.close("preflight", step, number, "all gates before generation passed; nothing sampled")
                    return audit(protocol, self.archive.judgements())
            if stage.scores:
                self._score(step, folder, domain)
            decision = self._receipt(step, stage, number, folder, domain, limits)
        except BaseException as error:
            said, detail = ending(folder, step, f"{type(error).__name__}: {error}".rstrip(": "))
            self.archive.close(said, step, number, detail)
            raise
        self.archive.commit(step, number, folder)
        return decision

    def _resume(self, step: Step, folder: Path) -> bool:
        """Take over the evidence of an earlier attempt whose sampling was complete and whose judging failed.

        A validator's mistake must never cost a run: what was sampled once is judged again, never sampled again.
        """
        for earlier in self._earlier_attempts(step, folder):
            if (earlier / "session.json").exists():
                for path in (earlier / name for name in TAKEN_OVER):
                    if path.exists():
                        jsonfile.write_new(folder / path.name, jsonfile.read_bytes(path))
                return True
        return False

    def _earlier_attempts(self, step: Step, folder: Path) -> list[Path]:
        """Folders of other attempts at the same step, at the same rung, the latest first."""
        attempts = reversed(self.archive.attempt_folders())
        return [path for path in attempts if path.name.partition("-")[2] == str(step) and path != folder]

    def _score(self, step: Step, folder: Path, domain: Domain) -> None:
        """The three passes of ``gatepost.scoring``. What hidden examples may grade is what is read back from disk.

        An attempt that failed may have graded already, so its choices are final.
        """
        require_faithful(self.archive.root, gates=self.gates, studies=self.studies)
        scorer = scoring_domain(domain, where=str(step))
        tables.write_choices(folder / "choices.parquet", choose_samples(self.archive, step, scorer))
        choices = tables.read_choices(folder / "choices.parquet")
        for earlier in self._earlier_attempts(step, folder):
            path = earlier / "choices.parquet"
            if path.exists() and tables.read_choices(path) != choices:
                raise IntegrityError(f"{path}: differs from the choices that are derived now; a choice is made once")
        tables.write_scores(folder / "scores.parquet", grade_choices(self.archive, step, scorer, choices))

    def _sample(self, step: Step, stage: Stage, number: int, folder: Path, domain: Domain) -> list[str]:
        """Have an engine sample. Returns what went wrong once the last sample was there, which costs no run."""
        protocol = self.archive.protocol
        plan = sampling_plan(self.archive, step)
        tasks = {task["task_id"]: task for task in self.archive.tasks(stage.splits[0])}
        limits: list[str] = []
        started = time.monotonic()
        engine = self.open_engine(engine_spec(self.archive, plan.sampled_rung, domain.ANSWER_TEXTS))
        try:
            facts = engine.facts()
            _require_recordable(protocol, step, facts)
            prompts = render(engine, {name: domain.messages(tasks[name], stage.arm) for name in plan.task_ids})
            tables.write_prompts(folder / "prompts.parquet", prompts)
            judge_before_generation(self.archive, step, number, folder, self.gates, facts)
            if self.preflight_only:
                return limits
            requests = requests_of(plan, prompts)
            asked = time.monotonic()
            with Stream(folder / "stream.jsonl", keeps_text=stage.text != "withheld") as stream:
                rows, text = sample(engine, requests, stream, self.progress, limits)
            generated = round(time.monotonic() - asked, 3)
            tables.write_rows(folder / "rows.parquet", rows)
            if stage.text != "withheld":
                tables.write_text(folder / "text.parquet", text)
            elapsed = round(time.monotonic() - started, 3)
            try:
                after = engine.facts()
                require_same_engine(folder / "session.json", facts, after)
                require_counts(folder / "session.json", after.scheduler, rows)
                _require_recordable(protocol, step, after)
            except Exception as error:
                limits.append(f"facts after generation are unknown: {first_line(error)}")
                after = replace(facts, scheduler=None)
            write_session(folder, protocol, step, after, elapsed, generated)
            (folder / "stream.jsonl").unlink()
        finally:
            limits += _close(engine)
        return limits

    def _receipt(
        self, step: Step, stage: Stage, number: int, folder: Path, domain: Domain, limits: list[str]
    ) -> Decision:
        """Grade, judge what is read back from disk, and write the receipt last."""
        protocol = self.archive.protocol
        records = list(records_of(self.archive, step, folder, self.gates, recorded_digest=protocol.digest))
        if not stage.blind and records[0].grades is None and records[0].samples is not None:
            grades = grade_samples(self.archive, stage, domain, records[0].samples, records[0].text or {})
            tables.write_grades(folder / "grades.parquet", grades)
            records = [replace(record, grades=grades) for record in records]
        judgements = [judge(record, lambda entry: self.gates.of(entry, where=str(step))) for record in records]
        decision = audit(protocol, {**self.archive.judgements(), step: judgements})
        write_receipt(protocol, step, number, folder, records[0], judgements, decision, origin="live", limits=limits)
        return decision


def _require_recordable(protocol: Protocol, step: Step, facts: EngineFacts) -> None:
    """Raise ``DataError`` for facts that no session could hold, while nothing is sampled yet."""
    head = {"schema": "gatepost/session/1", "protocol": protocol.digest, "step": step.to_json()}
    data = jsonfile.canonical({**head, "engine": to_plain(facts), "elapsed_seconds": None}, source="engine facts")
    schema.validate(jsonfile.loads(data, source="engine facts"), kind="session", source="engine facts")


def _close(engine: Engine) -> list[str]:
    """Close an engine; a failure at that is reported, never raised.

    Either all that the engine gave is on disk by now, or an error is on its way up that says more.
    """
    try:
        engine.close()
    except Exception as error:
        return [f"the engine failed at closing: {first_line(error)}"]
    return []


def engine_spec(archive: Archive, rung: Rung, answers: Iterable[str]) -> EngineSpec:
    """What is requested of the engine at a rung."""
    protocol = archive.protocol
    model, engine, pin, starts = protocol.model, protocol.engine, protocol.adapter, starts_near(archive.root)
    folder = None if model.path is None else find_folder(model.path, starts, field="model.path")
    adapter = None if pin is None else find_folder(pin.path, starts, field="adapter.path")
    refuse_forbidden(protocol, filter(None, [folder, adapter]), near=archive.root)
    return EngineSpec(
        kind=engine["kind"],
        model_path=str(folder or model.repository),
        revision=None if folder else model.revision,
        tokenizer_revision=None if folder else model.tokenizer_revision,
        options={**engine["options"], **rung.engine},
        markers=(*model.special_tokens, *answers),
        sampling=protocol.sampling,
        thinking=protocol.thinking,
        force_close_ids=protocol.force_close_ids,
        start_timeout_seconds=engine["start_timeout_seconds"],
        idle_timeout_seconds=engine["idle_timeout_seconds"],
        adapter=None if pin is None else Adapter(pin.name, str(adapter)),
    )
