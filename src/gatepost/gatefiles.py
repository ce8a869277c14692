"""Load gates from files: the shipped ones and a user's own take exactly this path."""

import difflib
import importlib.util
import stat
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from gatepost import bundled
from gatepost.errors import RegistrationError
from gatepost.gate import Gate
from gatepost.stages import GateEntry


def load_module(path: Path, *, prefix: str) -> ModuleType:
    """Import one file by its path, under a name that no other file can take."""
    name = f"{prefix}_{path.resolve().as_posix()}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise RegistrationError(f"{path}: is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise  # the user's own; anything else, SystemExit too, is a file that cannot be loaded
        raise RegistrationError(f"{path}: cannot be imported: {type(error).__name__}: {error}") from error
    return module


def read_code(path: Path) -> bytes:
    """The bytes of a Python file, by which a copy is told from another rule."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise RegistrationError(f"{path}: is not a regular file")
        return path.read_bytes()
    except OSError as error:
        raise RegistrationError(f"{path}: cannot be read: {error.strerror}") from None


class Gates:
    """The installed gates by name and version.

    A later folder may add gates and versions, but never redefine one: two files that claim the same name and
    version are refused, since a receipt could then be judged by either. A file that is byte for byte one that is
    loaded already is no second file: a wheel beside the checkout that it was built from has every shipped gate twice.
    """

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        self._gates: dict[tuple[str, int], Gate] = {}
        self._source: dict[tuple[str, int], Path] = {}
        self.folders = tuple(dict.fromkeys(folder.resolve() for folder in (bundled.folder("gates"), *folders)))
        loaded: set[bytes] = set()
        for path in (path for folder in self.folders for path in sorted(folder.glob("*.py"))):
            if (data := read_code(path)) not in loaded:
                self._add(path.resolve())
            loaded.add(data)

    def _add(self, path: Path) -> None:
        for value in vars(load_module(path, prefix="gatepost_gate")).values():
            if not isinstance(value, Gate):
                continue
            key = (value.name, value.version)
            if (other := self._source.setdefault(key, path)) != path:
                raise RegistrationError(
                    f"{path}: gate {value.name} version {value.version} is defined in {other} already, and the files "
                    f"differ; change {path}: another rule takes another version, a copy is the same in every byte"
                )
            self._gates[key] = value

    def get(self, name: str, version: int, *, where: str) -> Gate:
        """The gate of that name and version. Raises ``RegistrationError`` if it is not installed."""
        if (name, version) in self._gates:
            return self._gates[name, version]
        versions = [str(known) for gate, known in sorted(self._gates) if gate == name]
        near = difflib.get_close_matches(name, sorted({gate for gate, _ in self._gates}), n=1)
        searched = f"no gate of that name in {', '.join(map(str, self.folders))}"
        searched += f"; did you mean {near[0]}?" if near else ""
        found = f"versions {', '.join(versions)}" if versions else searched
        more = "--gates DIR adds a folder, under pytest --gatepost-gates=DIR"
        raise RegistrationError(f"{where}: gate {name} version {version} is not installed; found {found}; {more}")

    def of(self, entry: GateEntry, *, where: str) -> Gate:
        """The gate that a protocol registered."""
        return self.get(entry.name, entry.version, where=where)

    @property
    def all(self) -> Mapping[tuple[str, int], Gate]:
        """(name, version) -> gate."""
        return self._gates
