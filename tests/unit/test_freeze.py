"""Freezing: every plan that must not be frozen is refused, in one sentence that names the field and the numbers."""

import re
from pathlib import Path

import pytest

from gatepost import bundled, jsonfile, schema
from gatepost.__main__ import main
from gatepost.archive import Archive
from gatepost.engines import scripted_text
from gatepost.errors import GatepostError, IntegrityError, RegistrationError
from gatepost.freeze import plan
from gatepost.seeds import require_distinct
from tests.archives import Project, create_project

PATTERNS = [
    pattern
    for path in bundled.folder("schemas").glob("*.json")
    for pattern in re.findall(r'"pattern": "(\^.*)"', path.read_text().replace("\\\\", "\\"))
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return create_project(tmp_path)


def write_draft(project: Project) -> Path:
    """The toy draft, as a file of its own."""
    project.freeze("template")
    draft = project.root / "studies" / "toy" / "toy.toml"
    draft.write_text(draft.with_name("template.toml").read_text().replace('id = "template"', 'id = "toy"'))
    return draft


def edit(draft: Path, old: str, new: str) -> None:
    """Replace a passage that has to be there."""
    text = draft.read_text()
    assert old in text, old
    draft.write_text(text.replace(old, new))


CLOSES = "gates.toy_closes = { version = 1, min_close_share = 0.75 }"
REFUSALS = {
    "missing threshold": (CLOSES, "gates.toy_closes = { version = 1 }", r"toy_closes: missing min_close_share"),
    "unknown threshold": (
        "min_close_share = 0.75",
        "min_close_share = 0.75, max_loops = 3",
        r"toy_closes: unknown max_loops; found max_loops, min_close_share, expected min_close_share",
    ),
    "threshold of another type": ("min_close_share = 0.75", 'min_close_share = "0.75"', r"min_close_share"),
    "unknown gate": ("gates.toy_closes", "gates.toy_opens", r"gate toy_opens version 1 is not installed"),
    "unknown version": (
        CLOSES,
        CLOSES.replace("version = 1", "version = 9"),
        r"version 9 is not installed; .*versions 1",
    ),
    "threshold that cannot be met": (
        "min_close_share = 0.75",
        "min_close_share = 1.5",
        r"no sample could meet.*12 samp",
    ),
    "threshold that cannot be missed": (
        "min_close_share = 0.75",
        "min_close_share = 0.0",
        r"could miss it .*12 samples",
    ),
    "blind stage whose gate reads text": (
        CLOSES,
        "gates.parse_given_close = { version = 1, min_parse_rate = 0.9 }",
        r"stage selection: gate parse_given_close: reads completions, grades, but the stage is blind",
    ),
    "a gate of samples in a stage without any": (
        "gates.toy_sizes = { version = 1, min_tasks = 8 }",
        "gates.cache_contract = { version = 1 }",
        r"stage design: gate cache_contract: reads token_ids, but the stage samples nothing",
    ),
    "caps that do not ascend": (
        "max_think_tokens = 32",
        "max_think_tokens = 8",
        r"rungs: max_think_tokens \[8, 8, 64\]",
    ),
    "caps that descend": (
        "max_think_tokens = 64",
        "max_think_tokens = 16",
        r"\[8, 32, 16\], expected strictly ascending",
    ),
    "budget past the context": ("max_model_len = 4096", "max_model_len = 70", r"thinking 64 .* 81 tokens.*context 70"),
    "a context of no number": (
        "max_model_len = 4096\n",
        'max_model_len = "4096"\n',
        r"max_model_len is '4096'",
    ),
    "implicit temperature": ("temperature = 0.6\n", "", r"\$\.sampling.*'temperature' is a required property"),
    "implicit top_k": ("top_k = 20\n", "", r"'top_k' is a required property"),
    "implicit stop ids": ("stop_ids", "stop", r"\$\.sampling"),
    "greedy by temperature alone": ("temperature = 0.6", "temperature = 0.0", r"greedy is False and temperature is 0"),
    "a sampling value that nobody knows": ("top_k = 20", "top_k = 20\ntypical_p = 0.9", r"typical_p"),
    "not a number": ("temperature = 0.6", "temperature = nan", r"sampling.temperature is nan"),
    "infinite": ("idle_timeout_seconds = 60", "idle_timeout_seconds = inf", r"engine.idle_timeout_seconds is inf"),
    "a date": ("idle_timeout_seconds = 60", "idle_timeout_seconds = 2026-01-01", r"idle_timeout_seconds is 2026-01-01"),
    "a branch for a revision": ('revision = "' + "0" * 40, 'revision = "main', r"revision is 'main', expected a com"),
    "a dirty revision": ('revision = "' + "0" * 40, 'revision = "' + "0" * 40 + "-dirty", r"revision"),
    "no question": ('question = "Which cap is enough?"\n', "", r"'question' is a required property"),
    "no stopping rule": ('stopping_rule = "The ladder ends."\n', "", r"stopping_rule"),
    "a label for a state that cannot be reached": (
        "exhausted = {",
        'selected = { name = "S", licenses = "s", does_not_license = "s" }\nexhausted = {',
        r"labels: found exhausted, not_replicated, replicated, selected, expected exactly",
    ),
    "a label without a licence": ('licenses = "saying so", ', "", r"licenses"),
    "a missing task file": ('second = "second.jsonl"', 'second = "third.jsonl"', r"third.jsonl: does not exist"),
    "an unknown split": ('splits = ["second"]', 'splits = ["third"]', r"confirmation: split 'third' is not one of"),
    "the confirmation split sampled before selection": (
        'splits = ["first"]\nsamples_per_task = 3',
        'splits = ["second"]\nsamples_per_task = 3',
        r"stage selection: samples split 'second', which only a selection may open",
    ),
    "one seed for two stages": ("base_seed = 12", "base_seed = 11", r"base_seed 11 is that of stage selection"),
    "a stage that samples without a seed": ("base_seed = 11\n", "", r"stage selection: base_seed is missing"),
    "two stages of one name": ('name = "confirmation"', 'name = "selection"', r"stages: names .*, expected all differ"),
    "stages out of order": (
        'scope = "once"',
        'scope = "selected"',
        r"expected once, then nested or rung, then selected",
    ),
    "no ladder": ('scope = "nested"', 'scope = "once"', r"none is nested or rung|max_think_tokens is None"),
    "a fixed length inside the ladder": ("base_seed = 11", "base_seed = 11\nmax_think_tokens = 8", r"the rung decides"),
    "a stage that samples two splits": (
        'splits = ["first"]\n',
        'splits = ["first", "second"]\n',
        r"expected exactly 1",
    ),
    "markers that stop": ("stop_ids = [", "stop_ids = [{open_id}, ", r"expected two different markers"),
    "forced close ids without the policy": ("force_close_ids = []", "force_close_ids = [5]", r"none otherwise"),
    "the policy without forced close ids": (
        'thinking = "natural"',
        'thinking = "force_close"',
        r"expected ids with think",
    ),
    "another domain version": ("domain_version = 1", "domain_version = 2", r"VERSION is 1, draft registered 2"),
    "an unknown study": ('name = "toy"\ndomain', 'name = "joy"\ndomain', r"study 'joy' has no domain.py"),
    "an unknown key": ("[study]", 'author = "me"\n[study]', r"author"),
    "a name that leaves the folder": ('id = "toy"', 'id = "../toy"', r"\$\.id"),
    "not TOML": ("[study]", "[study", r"not TOML"),
    "a seed past 2^53": (
        "base_seed = 11",
        f"base_seed = {2**60}",
        r"stages\[1\].base_seed is 1152921504606846976, exp",
    ),
    "a number that is rounded": (
        "max_model_len = 4096\n",
        "max_model_len = 1e17\n",
        r"max_model_len is 1e\+17, expect",
    ),
    "a real number of samples": ("samples_per_task = 3", "samples_per_task = 3.5", r"samples_per_task: 3.5 is not of"),
    "a number of 5000 digits": ("base_seed = 11", f"base_seed = {'1' * 5000}", r"not TOML: Exceeds the limit"),
    "lists without end": ("force_close_ids = []", f"force_close_ids = {'[' * 5000}{']' * 5000}", r"nested too deeply"),
    "lists too deep for JSON": ("force_close_ids = []", f"force_close_ids = {'[' * 220}{']' * 220}", r"nested deeper"),
    "a timeout of months": (
        "idle_timeout_seconds = 60",
        "idle_timeout_seconds = 1e7",
        r"idle_timeout_seconds: .*maxim",
    ),
    "a NUL in a path": ('"first.jsonl"', r'"first\u0000.jsonl"', r"holds a NUL"),
    "a NUL in a root": ("forbidden_roots = []", r'forbidden_roots = ["\u0000"]', r"forbidden_roots\[0\]"),
    "a path that is too long": ('"first.jsonl"', f'"{"x" * 5000}"', r"File name too long"),
    "a model path that is too long": (
        'repository = "toy"',
        f'repository = "t"\npath = "{"x" * 5000}"',
        r"no such folder",
    ),
    "a model path with a NUL": (
        'repository = "toy"',
        r'repository = "t"\npath = "\u0000"'.replace(r"\n", "\n"),
        r"no such",
    ),
    "no model": ("[model]", "[models]", r"toy.toml: model is missing, expected a table"),
    "a gate of no table": (CLOSES, "gates.toy_closes = 1", r"stages\[1\].gates.toy_closes is 1, expected a table"),
    "a gate without a version": (CLOSES, CLOSES.replace("version = 1, ", ""), r"toy_closes.version is missing"),
    "a bound file of no table": ('id = "toy"', 'id = "toy"\nbound = ["x"]', r"bound\[0\] is 'x', expected a table"),
    "a bound file without a role": (
        'id = "toy"',
        'id = "toy"\nbound = [{ path = "x" }]',
        r"bound\[0\].role is missing",
    ),
    "a split of no path": ('"first.jsonl"', "1", r"splits.first is 1, expected a string"),
    "an array where a table belongs": ("[[rungs]]\nmax_think_tokens = 8", "rungs = 3\n[x]\ny = 8", r"toy\.toml"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refuses(project: Project, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    old, new, message = REFUSALS[name]
    draft = write_draft(project)
    edit(draft, old, new.replace("{open_id}", str(scripted_text.IDS["<think>"])))
    with pytest.raises(GatepostError, match=message) as caught:
        plan(draft, gates=project.gates, studies=project.studies)
    assert str(draft.parent) in str(caught.value), "the message names the file"
    arguments = ["freeze", str(draft), "--into", str(project.root / "receipts")]
    paths = ["--gates", str(project.root / "gates"), "--studies", str(project.root / "studies")]
    assert main([*arguments, *paths]) == 1
    assert capsys.readouterr().err.startswith("gatepost: ")
    assert not (project.root / "receipts" / "toy").exists(), "nothing half-frozen is left"


def test_freezing_twice_gives_the_same_digest_and_never_overwrites(project: Project) -> None:
    draft = write_draft(project)
    first = plan(draft, gates=project.gates, studies=project.studies)
    second = plan(draft, gates=project.gates, studies=project.studies)
    assert first.data == second.data
    assert first.protocol.digest == jsonfile.digest(first.data)
    archive = Archive.create(project.root / "receipts", first)
    before = (archive.root / "protocol.json").read_bytes()
    assert before == first.data
    with pytest.raises(IntegrityError, match="never overwritten"):
        Archive.create(project.root / "receipts", second)
    assert (archive.root / "protocol.json").read_bytes() == before


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ('{"task_id":"first-1","animal":"cow"}', r"split 'second': task 'first-1' is task 'first-1' of split 'first'"),
        (
            '{"place":"first 0","animal":"cat","task_id":"new"}',
            r"task 'new' is task 'first-0' of split 'first', which is",
        ),
    ],
)
def test_refuses_a_guarded_task_under_any_name(project: Project, task: str, message: str) -> None:
    """A task that was sampled before the selection is not new after it, whatever it is called."""
    draft = write_draft(project)
    with (project.root / "studies" / "toy" / "second.jsonl").open("a") as file:
        file.write(task + "\n")
    with pytest.raises(RegistrationError, match=message):
        plan(draft, gates=project.gates, studies=project.studies)


@pytest.mark.parametrize("pattern", sorted(set(PATTERNS)))
def test_no_pattern_takes_a_final_newline(pattern: str) -> None:
    r"""In Python, ``$`` alone matches before it too."""
    for text in ("0" * 40, "a" * 64, "sha256:" + "a" * 64, "name", "NAME", "2026-01-01T00:00:00Z"):
        assert re.search(pattern, text + "\n") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"first.jsonl: is empty"),
        ("{}\n", r"first.jsonl:1: field task_id is None"),
        ('{"task_id":""}\n', r"task_id is ''"),
        ('{"task_id":"a"}\n{"task_id":"a"}\n', r"first.jsonl:2: task_id 'a' is that of line 1"),
        ('{"task_id":"a"}\n[1]\n', r"first.jsonl:2: is a list, expected an object"),
        ('{"task_id":"a","x":NaN}\n', r"first.jsonl:1: NaN"),
        ('{"task_id":"a"} {"task_id":"b"}\n', r"first.jsonl:1: not JSON"),
        ('{"task_id":"a"}\n\n', r"first.jsonl:2: not JSON"),
    ],
)
def test_refuses_a_malformed_task_file(project: Project, content: str, message: str) -> None:
    draft = write_draft(project)
    (project.root / "studies" / "toy" / "first.jsonl").write_text(content)
    with pytest.raises(GatepostError, match=message):
        plan(draft, gates=project.gates, studies=project.studies)


def test_refuses_a_task_file_behind_a_link(project: Project) -> None:
    draft = write_draft(project)
    path = project.root / "studies" / "toy" / "first.jsonl"
    path.rename(path.with_name("elsewhere.jsonl"))
    path.symlink_to("elsewhere.jsonl")
    with pytest.raises(IntegrityError, match="symbolic link"):
        plan(draft, gates=project.gates, studies=project.studies)


def test_a_local_model_is_pinned_by_its_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.root)
    model = project.root / "models" / "tiny"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"weights")
    (model / "README.md").write_text("not loaded, so not pinned")
    zeros = '"' + "0" * 40 + '"'
    draft = write_draft(project)
    edit(draft, 'repository = "toy"', 'repository = "toy"\npath = "models/tiny"')
    with pytest.raises(GatepostError, match="the pin is dirty") as caught:
        plan(draft, gates=project.gates, studies=project.studies)
    found = re.search(r"sha256:[0-9a-f]{64}", str(caught.value))
    assert found is not None
    edit(draft, zeros, f'"{found[0]}"')
    frozen = plan(draft, gates=project.gates, studies=project.studies)
    assert set(frozen.protocol.model.files) == {"config.json", "model.safetensors"}
    (model / "model.safetensors").write_bytes(b"weightz")
    with pytest.raises(GatepostError, match="the pin is dirty"):
        plan(draft, gates=project.gates, studies=project.studies)


def test_a_colliding_registration_of_seeds_is_refused(project: Project) -> None:
    """Study A's children count up from their parent's seed, so two parents closer than K share children."""

    def children(parents: list[int]) -> list[tuple[str, int]]:
        return [(f"{parent}/{index}", parent + index) for parent in parents for index in range(4)]

    require_distinct(children([100, 104, 108, 112, 116]))
    with pytest.raises(RegistrationError, match="101/0 derive the same child seed 101"):
        require_distinct(children([100, 101, 102, 103, 104]))


@pytest.mark.parametrize("value", [1e30, 8.0, True])
def test_an_integer_is_written_as_one(project: Project, value: object) -> None:
    """JSON Schema takes 8.0 and 1e30 for integers; the code behind would count with floats."""
    document = jsonfile.read(project.freeze().root / "protocol.json")
    document["rungs"][0]["max_think_tokens"] = value
    with pytest.raises(GatepostError, match=r"rungs\[0\].max_think_tokens: .* is not of type 'integer'"):
        schema.validate(document, kind="protocol", source="test")
