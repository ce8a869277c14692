"""Compare gatepost with published evidence: a table published / recomputed / equal; exit 0 only if every line is right.

python -m conformance FOLDER [PAGE]     FOLDER holds published.json and one folder per experiment; the published charts,
                                        redrawn, go to PAGE
"""

import json
import sys
import tempfile
from pathlib import Path

from conformance import charts, native_seam, verified_macro
from conformance.table import lines_of, tally
from gatepost.report import replay_text


def main() -> int:
    folder = Path(sys.argv[1])
    items = json.loads((folder / "published.json").read_bytes())["items"]
    published = {(item["experiment"], item["name"]): item["published"] for item in items}
    wrong, tallies, figures = [], [], []
    for study in (native_seam, verified_macro):
        with tempfile.TemporaryDirectory() as scratch:
            found = study.recompute(folder / study.FOLDER, Path(scratch))
            print(replay_text(found.replay))
            drawn = (
                charts.closes(found.replay, published)
                if study is native_seam
                else charts.ends(folder / study.FOLDER, found.replay, published)
            )
        lines = lines_of([item for item in items if item["experiment"] == study.EXPERIMENT], found)
        for said in (*lines, *found.notes):
            print(said)
        wrong += [line.name for line in lines if not line.right]
        wrong += [] if found.replay.faithful else [f"replay of {study.EXPERIMENT}"]
        figure, differ = drawn
        figures.append((study.FOLDER, figure))
        wrong += [f"chart: {name}" for name in differ]
        tallies.append(f"{study.EXPERIMENT}: {tally(lines)}")
    print("\n".join(tallies))
    if len(sys.argv) > 2:
        out = Path(sys.argv[2])
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(charts.page(figures, list(charts.own(Path("receipts")))))
        print(f"charts: {out}")
    print(f"{len(wrong)} wrong{': ' if wrong else ''}{', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
