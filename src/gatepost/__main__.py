"""The command line, a command for each thing but live steps, which run under pytest."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gatepost.approve_command import add_arguments as add_approve_arguments
from gatepost.approve_command import run as run_approve
from gatepost.arguments import NOT_ALL, add_evidence, add_own_folders, folder, own_gates, own_studies, root
from gatepost.audit_command import add_arguments as add_audit_arguments
from gatepost.audit_command import run as run_audit
from gatepost.errors import GatepostError
from gatepost.import_command import add_arguments as add_import_arguments
from gatepost.import_command import run as run_import
from gatepost.init_command import add_arguments as add_init_arguments
from gatepost.init_command import run as run_init
from gatepost.report_command import add_arguments as add_report_arguments
from gatepost.report_command import run as run_report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns the exit status: 0 done, 1 refused, unfaithful or unfinished, 2 wrong usage, 3 ``NOT_ALL``.
    """
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
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    add_init_arguments(_add(commands, "init", run_init, "write a study of your own that runs at once"))

    freeze = _add(commands, "freeze", _freeze, "freeze a draft (TOML) into a new archive")
    freeze.add_argument("draft", type=Path)
    freeze.add_argument("--into", type=Path, default=Path("receipts"), help="folder of archives (default: receipts)")

    plan = _add(commands, "plan", _plan, "check a draft and show what it would take, without freezing it")
    plan.add_argument("draft", type=Path)

    _add(commands, "gates", _list_gates, "list the installed gates: what each asks, reads and takes")

    explain = _add(commands, "explain", _explain, "print what one gate asks, reads and needs, and which studies use it")
    explain.add_argument("gate", metavar="GATE", help="name of an installed gate")

    status = _add(commands, "status", _status, "show where the ladder stands and the one next step")
    status.add_argument("archive", type=Path)
    status.add_argument("--log", action="store_true", help="the whole history")
    status.add_argument("--done", action="store_true", help="exit with 0 only if the ladder is terminal")

    replay = _add(commands, "replay", _replay, "recompute every verdict from the evidence and compare")
    replay.add_argument("archive", type=Path)
    replay.add_argument("--json", action="store_true", help="every recomputed check, as JSON")
    replay.add_argument("--root", type=root, help="catalog root that was noted elsewhere, of now or of earlier")

    prompts = _add(commands, "prompts", _prompts, "print the manifest of what engines rendered, for a draft to bind")
    prompts.add_argument(
        "archives", type=Path, nargs="+", metavar="ARCHIVE", help="with a preflight, or a step that sampled"
    )

    keygen = _add(
        commands, "keygen", _keygen, "make a key for approvals: the private one in a file, the public one printed"
    )
    keygen.add_argument("file", type=Path, help="where the private key goes; never overwritten")

    add_approve_arguments(
        _add(commands, "approve", run_approve, "sign a GO for one step, as a reviewer whom the protocol registers")
    )

    verify = _add(commands, "verify", _verify, "verify every byte of an archive and the signature of every approval")
    verify.add_argument("archive", type=Path)
    verify.add_argument("--root", type=root, help="catalog root that was noted elsewhere, of now or of earlier")

    detach = _add(commands, "detach", _detach, "move large evidence of a finished study out of its archive")
    detach.add_argument("archive", type=Path)
    detach.add_argument("--into", type=folder, required=True, metavar="DIR", help="where it goes, named by SHA-256")
    detach.add_argument(
        "--over-bytes", type=int, default=1_000_000, metavar="N", help="what is not longer stays (default: 1000000)"
    )
    add_evidence(replay)
    add_evidence(verify)

    audit = _add(commands, "audit", run_audit, "find loops in rows of token ids, without a look at what they say")
    add_audit_arguments(audit)

    add_report_arguments(_add(commands, "report", run_report, "write a page for people: asked, decided, measured"))

    add_import_arguments(_add(commands, "import", run_import, "turn a published run into an archive that replays"))
    return parser


class _Version(argparse.Action):
    """Looks the version up once it is asked for, which takes longer than to start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"gatepost {version('gatepost')}")
        parser.exit()


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, command: object, text: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=command)
    if name in ("detach", "explain", "freeze", "gates", "plan", "replay", "report", "status"):
        add_own_folders(parser)
    return parser


def _list_gates(options: argparse.Namespace) -> int:
    from gatepost.gatefiles import Gates
    from gatepost.status import gates_text

    print(gates_text(Gates(own_gates(options))))
    return 0


def _explain(options: argparse.Namespace) -> int:
    from gatepost.explain import explain_text
    from gatepost.gatefiles import Gates

    print(explain_text(options.gate, Gates(own_gates(options)), own_studies(options)))
    return 0


def _freeze(options: argparse.Namespace) -> int:
    from gatepost import jsonfile
    from gatepost.archive import Archive
    from gatepost.freeze import plan
    from gatepost.gatefiles import Gates

    frozen = plan(options.draft, gates=Gates(own_gates(options)), studies=own_studies(options))
    jsonfile.make_folder(options.into)
    archive = Archive.create(options.into, frozen)
    print(f"frozen: {archive.root}\nprotocol: {archive.protocol.digest}")
    return 0


def _plan(options: argparse.Namespace) -> int:
    from gatepost.freeze import plan
    from gatepost.gatefiles import Gates
    from gatepost.status import plan_text

    gates = Gates(own_gates(options))
    print(plan_text(plan(options.draft, gates=gates, studies=own_studies(options)), gates))
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

    gates, faithful, judged = Gates(own_gates(options)), True, True
    roots = find_archives(options.archive)
    if options.root and len(roots) > 1:
        raise GatepostError(f"--root: {options.archive} holds {len(roots)} archives, expected exactly one")
    for one in roots:
        result = replay(
            one, gates=gates, studies=own_studies(options), expected_root=options.root, evidence=options.evidence
        )
        print(json.dumps(result.to_json(), indent=1, ensure_ascii=False) if options.json else replay_text(result))
        faithful &= result.faithful
        judged &= not result.unjudged
    return (0 if judged else NOT_ALL) if faithful else 1


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


def _verify(options: argparse.Namespace) -> int:
    from gatepost import elsewhere, integrity, stored
    from gatepost.ancestry import ancestry
    from gatepost.approval import require_checked
    from gatepost.archive import Archive
    from gatepost.status import approvals_text

    archive = Archive(options.archive, evidence=options.evidence)
    notes = integrity.verify(archive, expected_root=options.root)
    stored.verify(archive)
    require_checked(archive)
    print("\n".join([approvals_text(archive), *(f"  note: {note}" for note in notes)]))
    print(f"  {ancestry(archive)}\n  catalog root: {archive.catalog()['root']}")
    return NOT_ALL if elsewhere.not_at_hand(archive) else 0


def _detach(options: argparse.Namespace) -> int:
    from gatepost import elsewhere
    from gatepost.archive import Archive
    from gatepost.detach import detach
    from gatepost.gatefiles import Gates

    archive = Archive(options.archive)
    moved = detach(
        archive,
        options.into,
        gates=Gates(own_gates(options)),
        studies=own_studies(options),
        over_bytes=options.over_bytes,
    )
    entries = elsewhere.entries(archive)
    for name in moved:
        print(f"moved: {name}, {entries[name]['size_bytes']} bytes, to {options.into / entries[name]['sha256']}")
    print(f"moved {len(moved)} files; the catalog root is as before: {archive.catalog()['root']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
