"""What a disk may hold after the power fails, by the least that POSIX promises, and with renames that are atomic.

A run's calls were recorded by ``write_side.c``. After the first ``n`` of them:

- a file holds what was in it when it was last synced; of what was written since, all, nothing, half, or as many zeros;
- a folder holds the names that it had when it was last synced; each change since has happened or has not, in any
  combination, whatever the order. A rename changes both folders or neither;
- syncing a file says nothing about its name, and a folder whose name is lost is lost with all that is in it.

File systems in use promise more. What was there before the run is durable.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Union


class Call(NamedTuple):
    """One call that changed something: its kind, the path, the other path of a rename or link, and what was written."""

    kind: str
    path: str
    other: str
    offset: int
    data: bytes


@dataclass(eq=False)
class File:
    """Bytes as programs see them, and as they were last synced."""

    seen: bytearray
    synced: bytes


@dataclass(eq=False)
class Folder:
    """Names as programs see them, as they were last synced, and the changes since, by their numbers."""

    seen: "dict[str, Node]" = field(default_factory=dict)
    synced: "dict[str, Node]" = field(default_factory=dict)
    changes: "list[tuple[int, str, Node | None]]" = field(default_factory=list)

    def change(self, number: int, name: str, node: "Node | None") -> None:
        """Set or remove a name, not yet durably."""
        _put(self.seen, name, node)
        self.changes.append((number, name, node))

    def sync(self) -> set[int]:
        """Make the names durable; returns the numbers of the changes that were not."""
        numbers = {number for number, _, _ in self.changes}
        self.synced, self.changes = dict(self.seen), []
        return numbers


Node = Union[File, Folder]  # noqa: UP007 - names of classes in a string annotation


def _put(names: "dict[str, Node]", name: str, node: "Node | None") -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def read_calls(log: Path, under: Path) -> list[Call]:
    """The calls in a record of ``write_side.c``, with paths relative to the folder that was watched."""
    data, at, calls = log.read_bytes(), 0, []
    start = len(str(under.resolve())) + 1
    while at < len(data):
        end = data.index(b"\n", at)
        kind, path, other, offset, size = data[at:end].split(b"\0")
        at = end + 1 + int(size)
        names = (path.decode()[start:], other.decode()[start:])
        calls.append(Call(kind.decode(), *names, int(offset), data[end + 1 : at]))
    return calls


def load(folder: Path) -> Folder:
    """A folder on disk, all of it durable."""
    loaded = Folder()
    for path in folder.iterdir():
        data = b"" if path.is_dir() else path.read_bytes()
        loaded.seen[path.name] = load(path) if path.is_dir() else File(bytearray(data), data)
    loaded.sync()
    return loaded


class Disk:
    """The state of a disk after some calls."""

    def __init__(self, before: Path) -> None:
        self.root, self.number = load(before), 0
        self.durable = set[int]()

    def do(self, call: Call) -> None:
        """Carry a call out as programs see it; the next power failure may undo it unless it is synced."""
        self.number += 1
        folder, name = self._parent(call.path)
        if call.kind in ("create", "mkdir"):
            folder.change(self.number, name, File(bytearray(), b"") if call.kind == "create" else Folder())
        elif call.kind == "remove":
            folder.change(self.number, name, None)
        elif call.kind in ("link", "rename"):
            node = folder.seen[name]
            other, new = self._parent(call.other)
            if call.kind == "rename":
                folder.change(self.number, name, None)
            other.change(self.number, new, node)
        else:
            node = folder.seen[name] if name else folder
            if call.kind == "sync" and isinstance(node, Folder):
                self.durable |= node.sync()
            elif isinstance(node, File) and call.kind == "sync":
                node.synced = bytes(node.seen)
            elif isinstance(node, File) and call.kind == "write":
                node.seen[call.offset : call.offset + len(call.data)] = call.data
            else:
                raise AssertionError(f"not modelled: {call}")

    def _parent(self, path: str) -> tuple[Folder, str]:
        *folders, name = path.split("/")
        found: Node = self.root
        for part in folders:
            assert isinstance(found, Folder)
            found = found.seen[part]
        assert isinstance(found, Folder)
        return found, name

    def fail(self, into: Path, choose: random.Random) -> None:
        """Write one of the states that the disk may be in once the power is back into a new folder."""
        probability = choose.choice((0.0, 0.5, 0.5, 1.0))
        kept = self.durable | {number for number in range(1, self.number + 1) if choose.random() < probability}
        files = choose.choice(("all", "nothing", "half", "zeros", "any"))
        _write(self.root, into, kept, files, choose)


def _write(folder: Folder, into: Path, kept: set[int], files: str, choose: random.Random) -> None:
    into.mkdir()
    names = dict(folder.synced)
    for number, name, node in folder.changes:
        if number in kept:
            _put(names, name, node)
    for name, node in names.items():
        if isinstance(node, Folder):
            _write(node, into / name, kept, files, choose)
        else:
            (into / name).write_bytes(_held(node, files, choose))


def _held(file: File, files: str, choose: random.Random) -> bytes:
    how = choose.choice(("all", "nothing", "half", "zeros")) if files == "any" else files
    seen, synced = bytes(file.seen), file.synced
    if how == "nothing" or seen == synced:
        return synced
    new = seen[len(synced) :]
    return seen[: len(synced)] + {"all": new, "half": new[: len(new) // 2], "zeros": bytes(len(new))}[how]
