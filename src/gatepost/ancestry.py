"""Does version control say that the protocol was there before the receipts? Supporting evidence, never a verdict.

Git is asked in the folder of the archive: with which commit this very ``protocol.json`` came, which commits added a
``receipt.json`` of a step, and whether the one is an ancestor of the others. A history can be written anew, so the
answer is worth as much as the copy of it that somebody else has.

An archive may come with a repository that wants to harm its reader. So git reads objects alone: no hook, monitor,
pager, filter, signature check or transport, each of which can start a program that the repository names.
"""

import os
import subprocess
from pathlib import Path

from gatepost.archive import Archive
from gatepost.errors import GatepostError

TIMEOUT_SECONDS = 20
RECEIPTS = ":(glob)steps/*/receipt.json"

_SETTINGS = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "diff.external=")
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_ADDING = ("--format=%H", "--no-renames", "--no-ext-diff", "--no-textconv", "--topo-order", "--full-history", "-m")


class _CannotTellError(GatepostError):
    """Why git has no answer."""


def ancestry(archive: Archive) -> str:
    """One sentence on the commits of the protocol and of the first receipt. Never raises, never fetches or writes."""
    try:
        return f"git: {_ancestry(archive.root)}"
    except _CannotTellError as error:
        return f"git: cannot tell whether the protocol was there before the receipts: {error}"


def _ancestry(root: Path) -> str:
    inside = _run(root, "rev-parse", "--is-inside-work-tree")
    if inside.stdout.strip() == "false" or "not a git repository" in inside.stderr:
        raise _CannotTellError("the archive is in no work tree")
    _succeeded(inside)
    blob = _run(root, "rev-parse", "--verify", "--quiet", "HEAD:./protocol.json").stdout.strip()
    if not blob:
        raise _CannotTellError("protocol.json is not committed")
    if _git(root, "hash-object", "--no-filters", "--", "protocol.json") != blob:
        raise _CannotTellError("protocol.json is another one than was committed")
    receipts = _git(root, "log", *_ADDING, "--diff-filter=A", "HEAD", "--", RECEIPTS).split()
    if not receipts:
        raise _CannotTellError("no receipt is committed")
    if _git(root, "rev-parse", "--is-shallow-repository") == "true":
        raise _CannotTellError("the clone is shallow, so commits are missing; `git fetch --unshallow` gets them")
    *_, protocol = _git(root, "log", *_ADDING, f"--find-object={blob}", "HEAD", "--", "protocol.json").split() or [""]
    if not protocol:
        raise _CannotTellError("no commit is found that brought protocol.json")
    others = [commit for commit in receipts if not _is_ancestor(root, protocol, commit)]
    first = (others or receipts)[-1]
    names = [_git(root, "rev-parse", "--short", commit) for commit in (protocol, first)]
    if others:
        return f"the protocol came with {names[0]}, which is no ancestor of {names[1]}, where a receipt came"
    if protocol == first:
        return f"protocol and first receipt came in the same commit, {names[0]}, which says nothing of their order"
    return f"the protocol came with {names[0]}, an ancestor of {names[1]}, where the first receipt came"


def _is_ancestor(root: Path, one: str, other: str) -> bool:
    status = _run(root, "merge-base", "--is-ancestor", one, other).returncode
    if status not in (0, 1):
        raise _CannotTellError(f"git merge-base ended with {status}")
    return status == 0


def _git(root: Path, *arguments: str) -> str:
    return _succeeded(_run(root, *arguments)).stdout.strip()


def _succeeded(done: "subprocess.CompletedProcess[str]") -> "subprocess.CompletedProcess[str]":
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise _CannotTellError(said[0] if said else f"git ended with {done.returncode}")
    return done


def _run(root: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.run(
            ["git", "--no-pager", *settings, *arguments],
            cwd=root, env={**inherited, **_ENVIRONMENT}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, errors="replace", timeout=TIMEOUT_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise _CannotTellError("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise _CannotTellError(f"git took longer than {TIMEOUT_SECONDS} seconds") from None
    except OSError as error:
        raise _CannotTellError(f"git could not be started: {error.strerror}") from None
