"""What makes a plan worth freezing: the rules that a protocol has to meet as a whole. Pure; see ``freeze``."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from gatepost import adapters, seeds
from gatepost.ed25519 import invalid_key, key_text
from gatepost.errors import RegistrationError
from gatepost.evidence import AFTER_GENERATION
from gatepost.judge import GateOf
from gatepost.protocol import Protocol
from gatepost.reachability import registered_reach, require_reachable
from gatepost.stages import Scope, Stage
from gatepost.verdict import JSON

_ORDER = {Scope.ONCE: 0, Scope.NESTED: 1, Scope.RUNG: 1, Scope.SELECTED: 2}


def check(protocol: Protocol, gate_of: GateOf, task_ids: Mapping[str, Sequence[str]]) -> None:
    """Raise ``RegistrationError`` for the first rule that the protocol breaks.

    Args:
        gate_of: the installed gate of an entry; raises if there is none.
        task_ids: split -> its task ids, in order.
    """
    _check_rungs(protocol)
    _check_engine(protocol)
    _check_sampling(protocol)
    _check_stages(protocol, task_ids)
    _check_labels(protocol)
    for stage in protocol.stages:
        require_registered(protocol, stage, gate_of)
        _check_gates(stage, gate_of)
    _check_approvals(protocol)
    adapters.check(protocol, gate_of)
    _check_context(protocol)
    _check_splits(protocol)
    seeds.check(protocol, task_ids)
    require_reachable(registered_reach(protocol, gate_of, {split: len(ids) for split, ids in task_ids.items()}))


def _check_rungs(protocol: Protocol) -> None:
    caps = [rung.max_think_tokens for rung in protocol.rungs]
    if any(low >= high for low, high in pairwise(caps)):
        raise RegistrationError(f"rungs: max_think_tokens {caps}, expected strictly ascending")


def _check_engine(protocol: Protocol) -> None:
    engines = {"engine.options": protocol.engine["options"]}
    engines |= {f"rung {rung.name}: engine": rung.engine for rung in protocol.rungs}
    for where, options in engines.items():
        sizes = options.get("cudagraph_capture_sizes")
        if sizes is not None and (problem := invalid_capture_sizes(sizes)):
            raise RegistrationError(f"{where}.cudagraph_capture_sizes: {problem}")
    listed = {entry.name for stage in protocol.stages for entry in stage.gates}
    if "machine" in protocol.engine and "environment" not in listed:
        raise RegistrationError("engine.machine: no stage lists the gate environment, so nothing compares it")


def invalid_capture_sizes(sizes: JSON) -> str | None:
    """Why a list cannot be compared with the one that an engine resolves, which sorts it and drops what comes twice."""
    whole = isinstance(sizes, list) and all(type(size) is int and size > 0 for size in sizes)
    if whole and sizes and all(low < high for low, high in pairwise(sizes)):
        return None
    return f"{sizes}, expected positive sizes in tokens, strictly ascending"


def _check_sampling(protocol: Protocol) -> None:
    sampling, model = protocol.sampling, protocol.model
    if sampling.greedy != (sampling.temperature == 0):
        raise RegistrationError(
            f"sampling: greedy is {sampling.greedy} and temperature is {sampling.temperature}; "
            "greedy decoding is registered as greedy = true with temperature = 0, sampling as neither"
        )
    markers = {model.think_open[1], model.think_close[1]}
    if markers & set(sampling.stop_ids) or len(markers) < 2:
        raise RegistrationError(
            f"model: think_open {model.think_open[1]}, think_close {model.think_close[1]} and sampling.stop_ids "
            f"{list(sampling.stop_ids)}: expected two different markers, neither of which stops sampling"
        )
    forced = protocol.thinking == "force_close"
    if forced != bool(protocol.force_close_ids) or (forced and model.think_close[1] not in protocol.force_close_ids):
        raise RegistrationError(
            f"sampling: thinking is {protocol.thinking} and force_close_ids are {list(protocol.force_close_ids)}; "
            f"expected ids with think_close {model.think_close[1]} for force_close, none otherwise"
        )


def _check_stages(protocol: Protocol, task_ids: Mapping[str, Sequence[str]]) -> None:
    names = [stage.name for stage in protocol.stages]
    if len(set(names)) < len(names):
        raise RegistrationError(f"stages: names {names}, expected all different")
    if any(_ORDER[a.scope] > _ORDER[b.scope] for a, b in pairwise(protocol.stages)):
        order = [f"{stage.name} ({stage.scope})" for stage in protocol.stages]
        raise RegistrationError(f"stages: {', '.join(order)}: expected once, then nested or rung, then selected")
    if not any(_ORDER[stage.scope] == 1 for stage in protocol.stages):
        raise RegistrationError("stages: none is nested or rung, so no rung could ever be judged")
    for stage in protocol.stages:
        where = f"stage {stage.name}"
        _require_splits(protocol, stage)
        if stage.scores:
            _check_scoring(protocol, stage)
            continue
        if not stage.samples:
            if stage.scope is not Scope.ONCE:
                raise RegistrationError(f"{where}: scope {stage.scope} needs samples_per_task of at least 1, found 0")
            continue
        if len(stage.splits) != 1:
            raise RegistrationError(f"{where}: samples {len(stage.splits)} splits, expected exactly 1")
        if stage.base_seed is None:
            raise RegistrationError(f"{where}: base_seed is missing, expected one for a stage that samples")
        if (stage.max_think_tokens is None) is (stage.scope is Scope.ONCE):
            expected = "a fixed max_think_tokens" if stage.scope is Scope.ONCE else "none: the rung decides"
            raise RegistrationError(f"{where}: max_think_tokens is {stage.max_think_tokens}, expected {expected}")


def _check_scoring(protocol: Protocol, stage: Stage) -> None:
    """A stage that scores opens the text of ladder stages whose arms can be compared: same tasks, as many samples."""
    where = f"stage {stage.name}"
    if stage.scope is not Scope.SELECTED or stage.samples or stage.blind:
        raise RegistrationError(
            f"{where}: scores {', '.join(stage.scores)} with scope {stage.scope}, text {stage.text} and "
            f"samples_per_task {stage.samples_per_task}; expected selected, graded and 0"
        )
    scored = protocol.sampling_stages(stage)
    for other in scored:
        if other.scope not in (Scope.NESTED, Scope.RUNG) or other.text == "withheld":
            raise RegistrationError(
                f"{where}: scores {other.name} with scope {other.scope} and text {other.text}; "
                "expected nested or rung, with sealed or graded text"
            )
        found = (other.splits, other.max_tasks, other.samples_per_task)
        expected = (stage.splits, stage.max_tasks, scored[0].samples_per_task)
        if found != expected:
            raise RegistrationError(
                f"{where}: scores {other.name} with splits, max_tasks and samples_per_task {found}; "
                f"expected {expected}, as of {where} and the first that it scores"
            )
    arms = [other.arm for other in scored]
    if len(set(arms)) < len(arms):
        raise RegistrationError(f"{where}: scores stages of the arms {arms}, expected all different")
    for entry in stage.gates:
        for name, value in entry.thresholds.items():
            # Else a misspelt arm would be found when all samples are paid for.
            if (name == "arm" or name.endswith("_arm")) and value not in arms:
                raise RegistrationError(f"{where}: gate {entry.name}: {name} is {value!r}, expected one of {arms}")


def _check_labels(protocol: Protocol) -> None:
    after = any(stage.scope is Scope.SELECTED for stage in protocol.stages)
    expected = {"exhausted", "replicated", "not_replicated"} if after else {"exhausted", "selected"}
    if set(protocol.labels) != expected:
        raise RegistrationError(
            f"labels: found {', '.join(sorted(protocol.labels))}, expected exactly the terminal states that these "
            f"stages can reach: {', '.join(sorted(expected))}"
        )


def require_registered(protocol: Protocol, stage: Stage, gate_of: GateOf) -> None:
    """Raise ``RegistrationError`` unless a stage names splits of its protocol, and gates with their own thresholds.

    Judging rests on both, whoever wrote the protocol.
    """
    _require_splits(protocol, stage)
    for entry in stage.gates:
        gate_of(entry).require_thresholds(entry.thresholds, where=f"stage {stage.name}: gate {entry.name}")


def _require_splits(protocol: Protocol, stage: Stage) -> None:
    if unknown := sorted(set(stage.splits) - set(protocol.splits)):
        raise RegistrationError(f"stage {stage.name}: split {unknown[0]!r} is not one of {', '.join(protocol.splits)}")


def _check_gates(stage: Stage, gate_of: GateOf) -> None:
    for entry in stage.gates:
        where = f"stage {stage.name}: gate {entry.name}"
        gate = gate_of(entry)
        if stage.blind and gate.reads_content:
            channels = ", ".join(sorted(gate.reads))
            raise RegistrationError(f"{where}: reads {channels}, but the stage is blind: text and grades are withheld")
        if absent := gate.reads & AFTER_GENERATION - _left_by(stage):
            problem = "scores" if absent == {"scores"} else "samples"
            raise RegistrationError(f"{where}: reads {', '.join(sorted(absent))}, but the stage {problem} nothing")


def _check_approvals(protocol: Protocol) -> None:
    """Keys are compared as the bytes that sign, so that no spelling or name makes two of one."""
    if (approvals := protocol.approvals) is not None:
        owners: dict[bytes, str] = {}
        keys = {"author": approvals.author}
        keys |= {f"reviewers.{name}": key for name, key in approvals.reviewers.items()}
        for owner, key in keys.items():
            if problem := invalid_key(key):
                raise RegistrationError(f"approvals.{owner} is {key_text(key)}: {problem}")
            if (other := owners.setdefault(key, owner)) != owner:
                raise RegistrationError(f"approvals.{owner} is {key_text(key)}, the key of approvals.{other}")
        stages = {stage.name for stage in protocol.stages}
        if odd := sorted(stages ^ set(approvals.steps)):
            problem = "is not given, expected a number, 0 for none" if odd[0] in stages else "is no stage"
            raise RegistrationError(f"approvals.steps.{odd[0]}: {problem}; stages are {', '.join(sorted(stages))}")
        if not any(approvals.steps.values()):
            raise RegistrationError("approvals.steps: no stage needs any; leave approvals out, or ask for one")
    for stage in protocol.stages:
        needed, reviewers = protocol.approvals_needed(stage.name), len(approvals.reviewers) if approvals else 0
        if needed > reviewers:
            raise RegistrationError(f"approvals.steps.{stage.name} is {needed}, but there are {reviewers} reviewers")
        if (needed > 0) is not any(entry.name == "approval" for entry in stage.gates):
            problem = "does not list the gate approval" if needed else "lists the gate approval"
            raise RegistrationError(f"stage {stage.name}: {problem}, but its steps need {needed} approvals")


def _left_by(stage: Stage) -> frozenset[str]:
    """The channels that there are once a stage has run."""
    if stage.scores:
        return frozenset({"scores"})
    return AFTER_GENERATION - {"scores"} if stage.samples else frozenset()


def _check_context(protocol: Protocol) -> None:
    """Budgets fit the context: with the registered prompt limit where there is one, with an empty prompt else."""
    context = protocol.engine["options"].get("max_model_len")
    if not isinstance(context, int):
        raise RegistrationError(f"engine.options.max_model_len is {context!r}, expected the context length in tokens")
    for stage in protocol.stages:
        if not stage.samples:
            continue
        cap = stage.max_think_tokens or protocol.rungs[-1].max_think_tokens
        limits = next((gate.thresholds for gate in stage.gates if gate.name == "prompt_envelope"), {})
        prompt = limits.get("max_prompt_tokens", 1)
        answer = len(protocol.force_close_ids) + protocol.max_answer_tokens
        need, limit = prompt + cap + answer, limits.get("max_total_tokens", context)
        if need > limit or limit > context:
            raise RegistrationError(
                f"stage {stage.name}: prompt {prompt} + thinking {cap} + answer {answer} = {need} "
                f"tokens, registered total {limit}, context {context}: expected need <= total <= context"
            )


def _check_splits(protocol: Protocol) -> None:
    """Nothing but a selection may open a split that a stage after selection samples."""
    sampling = [stage for stage in protocol.stages if stage.samples]
    guarded = {split for stage in sampling if stage.scope is Scope.SELECTED for split in stage.splits}
    for stage in sampling:
        opened = guarded & set(stage.splits)
        if stage.scope is not Scope.SELECTED and opened:
            raise RegistrationError(
                f"stage {stage.name}: samples split {sorted(opened)[0]!r}, which only a selection may open"
            )


def check_tasks(protocol: Protocol, contents: Mapping[str, Mapping[str, bytes]]) -> None:
    """Refuse a split that only a selection may open if an earlier stage samples one of its tasks under any name.

    Args:
        contents: split -> task id -> the canonical bytes of all else in the task.
    """
    sampling = [stage for stage in protocol.stages if stage.samples]
    after = {split for stage in sampling if stage.scope is Scope.SELECTED for split in stage.splits}
    before = {split for stage in sampling if stage.scope is not Scope.SELECTED for split in stage.splits}
    for guarded in sorted(after):
        for opened in sorted(before):
            names = {content: task_id for task_id, content in contents[opened].items()}
            for task_id, content in contents[guarded].items():
                if task_id in contents[opened] or content in names:
                    raise RegistrationError(
                        f"split {guarded!r}: task {task_id!r} is task {names.get(content, task_id)!r} of split "
                        f"{opened!r}, which is sampled before a selection; only a selection may open it"
                    )


def check_locks(protocol: Protocol, locks: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse a lock that is bound but not registered: gates compare with ``engine.packages``.

    Args:
        locks: path of a bound lock -> package -> version.
    """
    packages = protocol.engine["packages"]
    for path, pins in locks.items():
        for package, version in pins.items():
            if packages.get(package) != version:
                found = packages.get(package, "missing")
                raise RegistrationError(f"engine.packages: {package} is {found}, expected {version} as in {path}")
