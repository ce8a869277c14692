"""Mutation testing of the code that decides: does a test fail for each small change of it?

    python -m tests.mutation [--sample N] [--seed N] [--out FILE] [MODULE…]

It works in a copy of the tree under ``build/``. One line per mutant that nothing killed, then a table; all outcomes
go to FILE. Exit 0 only if at least 90 % are killed.
"""

import argparse
import gc
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

# fmt: off
DECIDING = (
    "selection", "scoring", "judge", "verdict", "history", "integrity", "layout", "jsonfile", "differences", "gate",
    "agreement", "fingerprint", "replay", "journal", "approval", "preflight", "tree", "thinking", "ladder", "stats",
    "periodicity", "reach", "seeds", "counts", "absence", "adapters", "prompts", "stages", "ed25519",
)
# fmt: on
TESTS = [f"tests/{folder}" for folder in ("unit", "gates", "ladder", "scoring", "faults", "imports")] + ["receipts"]
ROOT = Path(__file__).resolve().parents[2]
LEAST_SCORE = 0.9


def main(words: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.mutation")
    options.add_argument(
        "modules", nargs="*", metavar="MODULE", help="such as ladder or gates/seeds.py; all that decide else"
    )
    options.add_argument("--sample", type=int, help="at most so many mutants of each file, drawn at random")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.json")
    options.add_argument("--suite", type=Path, help="which tests run which lines, as an earlier run found out")
    chosen = options.parse_args(words)
    tree = ROOT / "build" / "mutants"
    _copy(tree)
    suite = chosen.suite.resolve() if chosen.suite else _covering(tree)
    files = [f"src/gatepost/{name}.py" for name in DECIDING]
    files += [f"gates/{path.name}" for path in sorted((ROOT / "gates").glob("*.py"))]
    named = [file for name in chosen.modules for file in files if name in (file, Path(file).stem)]
    return _try_all(tree, suite, named or files, chosen)


def _copy(tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    (tree / "build").mkdir()


def _covering(tree: Path) -> Path:
    out = tree / "build" / "suite.json"
    command = [sys.executable, "-m", "tests.mutation.covering", str(out), *TESTS]
    subprocess.run(command, cwd=tree, check=True, env={**os.environ, "PYTHONPATH": str(tree / "src")})
    return out


def _try_all(tree: Path, suite_file: Path, files: list[str], chosen: argparse.Namespace) -> int:
    """Try each mutant. The heavy modules are imported once, here; gatepost is not, so that each fork reads it anew."""
    os.chdir(tree)
    sys.path.insert(0, str(tree / "src"))
    os.environ["PYTHONPATH"] = str(tree / "src")
    import hypothesis  # noqa: F401
    import jsonschema  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import rfc8785  # noqa: F401
    import securesystemslib.signer  # noqa: F401

    from tests.mutation.covering import read
    from tests.mutation.mutants import Mutant, mutants_of
    from tests.mutation.swapped import killed_by
    from tests.mutation.trial import outcome_of

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # now, so that what no mutant changes is compiled once
    compiled = ["-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *TESTS]
    subprocess.run([sys.executable, *compiled], check=True, stdout=subprocess.DEVNULL)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    gc.freeze()  # each trial ends with collections, which need not look at what all of them share
    suite, table, results = read(suite_file), [], []
    for file in files:
        total, mutants = mutants_of(tree, file, sample=chosen.sample, seed=chosen.seed)
        unchanged = Mutant(file, -1, 1, range(1), True, "", "", (tree / file).read_text())
        if (said := outcome_of(tree, unchanged, suite)) != "survived":
            print((tree / "build" / "trial.txt").read_text())
            raise SystemExit(f"{file}: {said} unchanged, so that no outcome would say anything")
        counts = Counter[str]()
        killed = killed_by(tree, file, mutants, suite)
        for mutant in mutants:
            quick = killed.get(mutant.number)
            outcome = (
                outcome_of(tree, mutant, suite) if quick is None else "timeout" if quick == "timeout" else "killed"
            )
            counts[outcome] += 1
            results.append({**mutant._asdict(), "outcome": outcome, "lines": list(mutant.lines), "source": None})
            if outcome not in ("killed", "timeout"):
                print(f"{file}:{mutant.line} #{mutant.number} {outcome}: {mutant.before} -> {mutant.after}", flush=True)
        table.append((file, total, len(mutants), counts["killed"] + counts["timeout"]))
        print(_line(table[-1]), flush=True)
        chosen.out.write_text(json.dumps(results))
    print("\n| module | mutants | tried | killed | survived | score |\n|---|---|---|---|---|---|")
    table.append(("all", *(sum(row[column] for row in table) for column in (1, 2, 3))))
    for row in table:
        print(_line(row))
    return 0 if table[-1][3] >= LEAST_SCORE * table[-1][2] else 1


def _line(row: tuple[str, int, int, int]) -> str:
    file, total, tried, killed = row
    return f"| {file} | {total} | {tried} | {killed} | {tried - killed} | {100 * killed / (tried or 1):.0f} % |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
