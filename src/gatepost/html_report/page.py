"""The page of one archive: question, decision and ladder first, then figures, gates, and where all of it comes from."""

from pathlib import Path
from typing import NamedTuple

from gatepost.gatefiles import Gates
from gatepost.html_report import ending_figures, engine_figures, sections
from gatepost.html_report.climb import Climb, climb_of, climb_table
from gatepost.html_report.facts import read_facts
from gatepost.html_report.markup import details, document, element, escape, paragraph, table, terms
from gatepost.html_report.model import Figure, Missing, Source, Table, counted
from gatepost.html_report.picture import picture
from gatepost.html_report.plots import draw
from gatepost.html_report.sections import GateSection
from gatepost.replay import Replay
from gatepost.verdict import Outcome

STYLE = (Path(__file__).parent / "style.css").read_text()
SHORT_DIGEST = 19
"""``sha256:`` and twelve digits, enough to find the whole one in the table of records."""


class Report(NamedTuple):
    """All that a page says, before anything is drawn.

    Attributes:
        differences: in which the record is not what was recomputed; empty for a faithful one.
        unjudged: how much of it was not judged here, since its evidence lies elsewhere.
        label: of the decision, in the words of the protocol; and the same as a sentence.
    """

    name: str
    digest: str
    question: str
    differences: tuple[str, ...]
    unjudged: int
    label: str
    state: str
    sentence: str
    licenses: tuple[tuple[str, str], ...]
    climb: Climb
    figures: tuple[Figure | Missing, ...]
    overview: tuple[Table, ...]
    gates: tuple[GateSection, ...]
    unknowns: tuple[str, ...]
    plan: tuple[tuple[str, str], ...]
    environment: tuple[Table | None, Table | None]
    provenance: tuple[Table, Table]
    notes: tuple[str, ...]


def report_of(replay: Replay, gates: Gates) -> Report:
    """What there is to say of a replayed archive."""
    archive, decision = replay.archive, replay.decision
    protocol = archive.protocol
    facts = read_facts(replay, gates)
    licence = protocol.labels.get(decision.state)
    return Report(
        name=protocol.id,
        digest=protocol.digest,
        question=protocol.document["preregistration"]["question"],
        differences=tuple(without_paths(said, archive.root) for said in replay.differences),
        unjudged=len(replay.unjudged),
        label=decision.label or "STILL OPEN",
        state=decision.state,
        sentence=_sentence(replay),
        licenses=(("It licenses", licence.licenses), ("It does not license", licence.does_not_license))
        if licence
        else (),
        climb=climb_of(protocol, {step.step: step.standing for step in replay.steps}, decision.rung),
        figures=(
            engine_figures.width_figure(facts),
            engine_figures.steps_figure(facts),
            engine_figures.cache_figure(facts),
            ending_figures.termination_figure(facts),
            ending_figures.close_figure(facts),
            ending_figures.length_figure(facts),
            ending_figures.loop_figure(facts),
            engine_figures.speed_figure(facts),
        ),
        overview=sections.overview(protocol, facts),
        gates=sections.gate_sections(facts),
        unknowns=tuple(without_paths(s, archive.root, archive.evidence) for s in sections.unknowns(replay, facts)),
        plan=sections.plan_rows(protocol),
        environment=sections.environment(facts),
        provenance=sections.provenance(replay, facts),
        notes=tuple(without_paths(said, archive.root, archive.evidence) for said in replay.notes),
    )


def without_paths(text: str, root: Path, evidence: Path | None = None) -> str:
    """The same without where an archive lies: a report is of what is in it."""
    absolute = root.resolve()
    for place in (root, absolute):
        if place != Path():  # whose parts are named without it
            text = text.replace(f"{place}/", "")
    text = text.replace(str(absolute), absolute.name)
    return text if evidence is None else text.replace(str(evidence), "the folder of evidence")


def _sentence(replay: Replay) -> str:
    """The decision in one sentence."""
    decision, protocol = replay.decision, replay.archive.protocol
    rungs = [rung.name for rung in protocol.rungs]
    if decision.state == "run":
        return f"Nothing is decided yet: {decision.step} is the one open step.{_last_attempt(replay)}"
    if decision.state == "halted":
        return f"The ladder halted, which selects and rejects nothing: {decision.reason}."
    if decision.state == "exhausted":
        return f"No rung is selected: {'the only one' if len(rungs) == 1 else f'each of {len(rungs)}'} was rejected."
    after = {
        "selected": "is selected: the first rung whose stages all passed",
        "replicated": "is selected, and every stage after the selection passed",
        "not_replicated": f"was selected, but did not hold: {decision.reason}",
    }
    return f"The rung of {decision.rung} thinking tokens {after[decision.state]}."


def _last_attempt(replay: Replay) -> str:
    """What became of the last attempt that was judged before generation."""
    judged = [attempt.judgement for attempt in replay.attempts if attempt.judgement is not None]
    if not judged:
        return ""
    stopped = [verdict.gate for verdict in judged[-1].verdicts if verdict.outcome is not Outcome.PASS]
    said = f"was refused by {', '.join(stopped)}" if stopped else "passed every gate that judges then"
    return f" Before generation, the last attempt {said}."


def render(report: Report) -> bytes:
    """The page. The same report gives the same bytes. Raises ``MissingExtraError`` without matplotlib."""
    parts = [
        element("a", "Skip to the report", href="#main", class_="skip"),
        element("header", _opening(report)),
        element("main", "\n".join([_figures(report), _gates(report), _unknowns(report), _origin(report)]), id="main"),
        element("footer", paragraph("Written by gatepost from the receipts alone. No clock, no network, no script.")),
    ]
    return document(f"{report.name}: {report.label}", style=STYLE, body="\n".join(parts))


def _opening(report: Report) -> str:
    climb = climb_table(report.climb)
    drawn = picture(
        report.climb,
        name="ladder",
        title=f"The ladder of {report.name}",
        description=f"{report.sentence} As a table below.",
    )
    scroll = {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": "The ladder"}
    ladder = (
        element("h2", "The ladder") + element("div", drawn, **scroll) + details("The ladder as a table", table(climb))
    )
    decision = (
        element("h2", "Decision", class_="eyebrow")
        + element("p", escape(report.label), class_="label")
        + paragraph(report.sentence, class_="sentence")
        + terms(report.licenses)
    )
    return (
        paragraph(f"gatepost report · {report.name}", class_="eyebrow")
        + element("h1", escape(report.question))
        + _faithful(report)
        + element("section", decision, class_=f"decision {'doubtful' if report.differences else report.state}")
        + element("section", ladder, class_="climb")
    )


def _faithful(report: Report) -> str:
    if report.differences:
        lines = "".join(element("li", escape(f"not faithful: {said}")) for said in report.differences)
        text = f"The record differs from what its evidence gives in {counted(len(report.differences), 'place')}."
        return element(
            "div",
            element("strong", "Not faithful.") + f" {escape(text)}" + element("ul", lines),
            class_="alarm",
            role="alert",
        )
    if report.unjudged:
        text = f"Not all of it was judged: {counted(report.unjudged, 'item')} of evidence lies elsewhere."
        return element("p", element("strong", "Faithful as far as judged.") + f" {escape(text)}", class_="partly")
    text = "Every byte is accounted for, and every verdict was made again from the evidence."
    return element("p", element("strong", "Faithful.") + f" {text}", class_="faithful")


def _figures(report: Report) -> str:
    drawn = "".join(figure_markup(one) for one in report.figures if isinstance(one, Figure))
    missing = [one for one in report.figures if isinstance(one, Missing)]
    told = "".join(element("dt", escape(one.title)) + element("dd", escape(one.reason)) for one in missing)
    absent = element("h3", "Not drawn") + element("dl", told, class_="missing") if missing else ""
    return element("section", element("h2", "Figures", id="figures") + drawn + absent, **{"aria-labelledby": "figures"})


def figure_markup(figure: Figure) -> str:
    """A figure: what it shows in words, the drawing, and below it the data and where they are from."""
    words = (
        element("h3", escape(figure.title))
        + paragraph(figure.takeaway, class_="takeaway")
        + (paragraph(figure.note, class_="note") if figure.note else "")
    )
    below = details("Data", table(figure.table)) + details("Source", _sources(figure.sources))
    caption = element("figcaption", words)
    return element(
        "figure", caption + element("div", draw(figure), class_="plot") + element("div", below, class_="below")
    )


def _sources(sources: tuple[Source, ...]) -> str:
    lines = (f"{escape(one.path)} {element('code', escape(one.digest[:SHORT_DIGEST]))}…" for one in sources)
    return element("ul", "".join(element("li", line) for line in lines), class_="sources")


def _gates(report: Report) -> str:
    tables = "".join(map(table, report.overview))
    whole = element("div", tables, class_="overview") if tables else paragraph("No step has a receipt yet.")
    checks = "".join(
        details(f"{one.name}: {one.summary}", table(one.table), is_open=not one.settled) for one in report.gates
    )
    text = (
        "k/n are the counts behind a check. Intervals are two-sided 95 % Wilson score intervals, for shares of samples "
        "in gates of adequacy alone; they take samples as independent, which several of one task are not."
    )
    inside = element("h2", "Gates", id="gates") + whole + element("h3", "Every check") + paragraph(text, class_="note")
    return element("section", inside + checks, **{"aria-labelledby": "gates"})


def _unknowns(report: Report) -> str:
    lines = "".join(element("li", escape(said)) for said in report.unknowns)
    text = element("ul", lines) if lines else paragraph("Nothing: every check of every receipt has an answer.")
    notes = "".join(element("li", escape(said)) for said in report.notes)
    said = element("h3", "What the record says of its own limits") + element("ul", notes) if notes else ""
    head = element("h2", "What is inconclusive, and why", id="unknown")
    return element("section", head + text + said, **{"aria-labelledby": "unknown"})


def _origin(report: Report) -> str:
    facts, packages = report.environment
    engines = table(facts) if facts else paragraph("No engine is on record.")
    if packages:
        engines += details("Installed packages", table(packages))
    records, history = report.provenance
    return (
        element(
            "section",
            element("h2", "What was registered", id="plan") + terms(report.plan),
            **{"aria-labelledby": "plan"},
        )
        + element(
            "section", element("h2", "Environment", id="environment") + engines, **{"aria-labelledby": "environment"}
        )
        + element(
            "section",
            element("h2", "Provenance", id="provenance") + table(records) + details("History", table(history)),
            **{"aria-labelledby": "provenance"},
        )
    )
