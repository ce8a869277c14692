"""`gatepost explain`: what a gate asks, reads and needs."""

import re
from pathlib import Path

import pytest

from gatepost import bundled
from gatepost.__main__ import main
from gatepost.errors import RegistrationError
from gatepost.explain import explain_text
from gatepost.gatefiles import Gates

GATES = Gates()
OWN = '''"""Is it so?

More of the file.
"""

from gatepost.gate import Check, Checks, Evidence, gate


@gate(version=1, reads=["engine"], role="validity")
def own(evidence: Evidence, *, max_old: str) -> Checks:
    """The old rule."""
    yield Check("old", None, "<=", max_old)


old = own


@gate(version=2, reads=["completions", "text"])
def own(evidence: Evidence, *, max_new: int, named) -> Checks:
    """The new rule."""
    yield Check("new", None, "<=", max_new)
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "gates").mkdir()
    (tmp_path / "gates" / "own.py").write_text(OWN)
    for study, drafts in {
        "first": {"a.toml": 2, "b.toml": 2, "c.toml": 1},
        "second": {"a.toml": 3},
    }.items():
        (tmp_path / "studies" / study).mkdir(parents=True)
        for name, version in drafts.items():
            text = f'[[stages]]\nname = "s"\ngates.own = {{ version = {version}, max_new = 1, named = "x" }}\n'
            (tmp_path / "studies" / study / name).write_text(text)
    (tmp_path / "studies" / "first" / "d.toml").write_text('extends = "a.toml"\nwithout = ["stages.s.gates.own"]\n')
    return tmp_path


@pytest.mark.parametrize("name", sorted({name for name, _ in GATES.all}))
def test_every_shipped_gate_is_explained(name: str) -> None:
    text = explain_text(name, GATES, [])
    for (known, version), gate in GATES.all.items():
        if known == name:
            assert text.startswith(f"{name}  version {version}, {gate.role}\n  asks:       ")
            assert re.split(r"\n    (?=\S)", text)[0].endswith("?"), "a gate asks a question"
            assert f"  in a draft: gates.{name} = {{ version = {version}" in text
            assert all(f"{threshold} (" in text for threshold in gate.thresholds)
            assert all(channel in text for channel in gate.reads)
            assert "any value" not in text
            when = "before" if gate.before_generation else "after"
            assert f"\n  judges:     {when} generation\n" in text
            assert f"{bundled.folder('gates') / name}.py" in text


def test_every_version_with_what_is_its_own(project: Path) -> None:
    text = explain_text("own", Gates([project / "gates"]), [project / "studies"])
    old, new = text.split("\n\n")
    assert old.splitlines() == [
        "own  version 1, validity",
        "  asks:       Is it so?",
        "    The old rule.",
        "  reads:      engine",
        "  needs:      max_old (str)",
        "  judges:     before generation",
        "  role:       a failure means that the evidence is unsound, and halts the ladder",
        "  in a draft: gates.own = { version = 1, max_old = <str> }",
        "  used by:    first (c.toml)",
        f"  file:       {project / 'gates' / 'own.py'}",
    ]
    assert new.splitlines() == [
        "own  version 2, adequacy",
        "  asks:       Is it so?",
        "    The new rule.",
        "  reads:      completions, text",
        "              what was said is among it, so no blind stage can have this gate",
        "  needs:      max_new (int), named (any value)",
        "  judges:     after generation",
        "  role:       a failure means that the rung is not good enough, and the next one opens",
        "  in a draft: gates.own = { version = 2, max_new = <int>, named = <any value> }",
        "  used by:    first (a.toml, b.toml)",
        f"  file:       {project / 'gates' / 'own.py'}",
    ]


@pytest.mark.parametrize(
    "draft",
    ["not toml [", "stages = 1", "stages = [1]", "stages = [{ gates = 1 }]", "stages = [{ gates.own = 2 }]", ""],
)
def test_a_draft_that_is_none_yet_hides_no_other(project: Path, draft: str) -> None:
    (project / "studies" / "second" / "a.toml").write_text(draft)
    text = explain_text("own", Gates([project / "gates"]), [project / "studies"])
    unread = "; second (a.toml, which cannot be read)" if draft.startswith("not") else ""
    assert f"  used by:    first (a.toml, b.toml){unread}\n" in text


def test_a_study_that_is_found_twice_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bundled.folder("studies").parent)
    text = explain_text("natural_close_bound", GATES, [Path("studies")])
    assert text.count("native_seam (") == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("natural_closes", "did you mean natural_close or natural_close_bound? gatepost gates lists them"),
        ("head_room", "did you mean headroom? "),
        ("zebra", "gate zebra is not installed; gatepost gates lists them, --gates DIR adds a folder"),
        ("", "gate  is not installed; gatepost gates"),
    ],
)
def test_an_unknown_gate(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RegistrationError) as refused:
        explain_text(name, GATES, [])
    assert said in str(refused.value)
    assert main(["explain", name]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"gatepost: {refused.value}\n")


def test_the_command_takes_folders_of_one_s_own(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = ["--gates", str(project / "gates"), "--studies", str(project / "studies")]
    assert main(["explain", "own", *folders]) == 0
    printed = capsys.readouterr().out
    assert printed == explain_text("own", Gates([project / "gates"]), [project / "studies"]) + "\n"
