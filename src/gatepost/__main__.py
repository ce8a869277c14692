"""The command line: freeze, plan, status, replay, prompts, approvals, import. Live steps run under pytest."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from gatepost.errors import GatepostError
from gatepost.folders import root_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit status: 0 done, 1 refused, unfaithful or unfinished, 2 wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        status = int(options.command(options))
        sys.stdout.flush()
    except BrokenPipeError:  # such as of ``| head``: whoever read it has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (GatepostError, OSError) as error:  # a full disk and a folder that is a file are no bugs
        print(f"gatepost: {error}", file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gatepost", description="Preregistered gates on LLM inference experiments.")
    parser.add_argument("--version", action="version", version=f"gatepost {version('gatepost')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    freeze = _add(commands, "freeze", _freeze, "freeze a draft (TOML) into a new archive")
    freeze.add_argument("draft", type=Path)
    freeze.add_argument("--into", type=Path, default=Path("receipts"), help="folder of archives (default: receipts)")

    plan = _add(commands, "plan", _plan, "check a draft and show what it would take, without freezing it")
    plan.add_argument("draft", type=Path)

    _add(commands, "gates", _list_gates, "list the installed gates: what each asks, reads and takes")

    status = _add(commands, "status", _status, "show where the ladder stands and the one next step")
    status.add_argument("archive", type=Path)
    status.add_argument("--log", action="store_true", help="the whole history")
    status.add_argument("--done", action="store_true", help="exit with 0 only if the ladder is terminal")

    replay = _add(commands, "replay", _replay, "recompute every verdict from the evidence and compare")
    replay.add_argument("archive", type=Path)
    replay.add_argument("--json", action="store_true", help="every recomputed check, as JSON")
    replay.add_argument("--root", type=_root, help="catalog root that was noted elsewhere, for exactly one archive")

    prompts = _add(commands, "prompts", _prompts, "print the manifest of what engines rendered, for a draft to bind")
    prompts.add_argument(
        "archives", type=Path, nargs="+", metavar="ARCHIVE", help="with a preflight, or a step that sampled"
    )

    keygen = _add(
        commands, "keygen", _keygen, "make a key for approvals: the private one in a file, the public one printed"
    )
    keygen.add_argument("file", type=Path, help="where the private key goes; never overwritten")

    approve = _add(commands, "approve", _approve, "sign a GO for one step, as a reviewer whom the protocol registers")
    approve.add_argument("archive", type=Path)
    approve.add_argument("--step", required=True, help="such as selection, or confirmation@32")
    approve.add_argument("--key", type=Path, required=True, metavar="FILE", help="the reviewer's private key")
    approve.add_argument("--statement", default="GO", metavar="TEXT", help="one line that is signed too (default: GO)")

    verify = _add(commands, "verify", _verify, "verify every byte of an archive and the signature of every approval")
    verify.add_argument("archive", type=Path)

    import_ = _add(commands, "import", _import, "turn a published run into an archive that replays")
    import_.add_argument("source", type=Path, help="folder of the published experiment")
    import_.add_argument("--into", type=Path, default=Path("receipts"), help="folder of archives (default: receipts)")
    import_.add_argument("--rows", type=_folder, help="folder of rows that were not published, as <step>.jsonl each")
    return parser


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, command: object, text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=command)
    if name in ("freeze", "gates", "plan", "replay", "status"):
        for own, what in (("gates", "gates of your own"), ("studies", "your task domains")):
            text = f"folder with {what}, repeatable (default: ./{own})"
            parser.add_argument(f"--{own}", type=_folder, action="append", default=[], metavar="DIR", help=text)
    return parser


def _list_gates(options: argparse.Namespace) -> int:
    from gatepost.gatefiles import Gates
    from gatepost.status import gates_text

    print(gates_text(Gates(_gates(options))))
    return 0


def _folder(text: str) -> Path:
    folder = Path(text)
    if not folder.is_dir():
        raise argparse.ArgumentTypeError(f"{folder} is not a folder")
    return folder


def _root(text: str) -> str:
    try:
        return root_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _freeze(options: argparse.Namespace) -> int:
    from gatepost import jsonfile
    from gatepost.archive import Archive
    from gatepost.freeze import plan
    from gatepost.gatefiles import Gates

    frozen = plan(options.draft, gates=Gates(_gates(options)), studies=_studies(options))
    jsonfile.make_folder(options.into)
    archive = Archive.create(options.into, frozen)
    print(f"frozen: {archive.root}\nprotocol: {archive.protocol.digest}")
    return 0


def _plan(options: argparse.Namespace) -> int:
    from gatepost.freeze import plan
    from gatepost.gatefiles import Gates
    from gatepost.status import plan_text

    gates = Gates(_gates(options))
    print(plan_text(plan(options.draft, gates=gates, studies=_studies(options)), gates))
    return 0


def _status(options: argparse.Namespace) -> int:
    from gatepost.archive import Archive
    from gatepost.ladder import audit
    from gatepost.status import status_text

    archive = Archive(options.archive)
    print(status_text(archive, log=options.log))
    return 0 if not options.done or audit(archive.protocol, archive.judgements()).terminal else 1


def _replay(options: argparse.Namespace) -> int:
    import json

    from gatepost.archive import find_archives
    from gatepost.gatefiles import Gates
    from gatepost.replay import replay
    from gatepost.report import replay_text

    gates, faithful = Gates(_gates(options)), True
    roots = find_archives(options.archive)
    if options.root and len(roots) > 1:
        raise GatepostError(f"--root: {options.archive} holds {len(roots)} archives, expected exactly one")
    for root in roots:
        result = replay(root, gates=gates, studies=_studies(options), expected_root=options.root)
        print(json.dumps(result.to_json(), indent=1, ensure_ascii=False) if options.json else replay_text(result))
        faithful &= result.faithful
    return 0 if faithful else 1


def _prompts(options: argparse.Namespace) -> int:
    from gatepost.promptfile import manifest_line
    from gatepost.rendered import rendered_prompts

    print("\n".join(map(manifest_line, rendered_prompts(options.archives))))
    return 0


def _keygen(options: argparse.Namespace) -> int:
    from gatepost.dsse import generate_key
    from gatepost.ed25519 import key_text

    print(f"public key: {key_text(generate_key(options.file))}")
    return 0


def _approve(options: argparse.Namespace) -> int:
    from gatepost.approve import approve
    from gatepost.archive import Archive
    from gatepost.status import status_text

    archive = Archive(options.archive)
    reviewer = approve(archive, options.step, options.key, statement=options.statement)
    print(f"approved: {options.step} by {reviewer}\n{status_text(archive)}")
    return 0


def _verify(options: argparse.Namespace) -> int:
    from gatepost import integrity
    from gatepost.approval import require_checked
    from gatepost.archive import Archive
    from gatepost.status import approvals_text

    archive = Archive(options.archive)
    notes = integrity.verify(archive)
    require_checked(archive)
    print("\n".join([approvals_text(archive), *(f"  note: {note}" for note in notes)]))
    return 0


def _import(options: argparse.Namespace) -> int:
    from gatepost.audit import native_seam, verified_macro

    if verified_macro.is_run(options.source):
        archive = verified_macro.import_run(options.source, options.into, rows=options.rows)
    elif options.rows is None:
        archive = native_seam.import_run(options.source, options.into)
    else:
        raise GatepostError(f"--rows: {options.source} is no published run that lacks its rows")
    print(f"imported: {archive.root}\nprotocol: {archive.protocol.digest}")
    return 0


def _gates(options: argparse.Namespace) -> list[Path]:
    """Own gate folders: those named, else ``./gates``; the shipped ones are always there."""
    return options.gates or [Path("gates")]


def _studies(options: argparse.Namespace) -> list[Path]:
    return options.studies or [Path("studies")]


if __name__ == "__main__":
    sys.exit(main())
