"""Imports point down only: shells, effects, pure logic, types. Read from the source, nothing is imported."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "gatepost"

TYPES = {"ed25519", "engine", "errors", "protocol", "reach", "stages", "verdict"}
PURE = {
    "absence", "adapters", "counts", "evidence", "fingerprint", "gate", "judge", "ladder", "periodicity", "plan",
    "prompts", "reachability", "record", "registration", "repeats", "scoring", "seeds", "selection", "stats",
    "thinking", "usercode",
}  # fmt: skip
SHELLS = {
    "__main__", "approve_command", "arguments", "audit_command", "explain", "html_report", "import_command",
    "init_command", "plugin", "report", "report_command", "scaffold", "status", "testing",
}  # fmt: skip
LAYERS = ("types", "pure", "effects", "shells")

WITHOUT_EFFECTS = {
    "abc", "array", "bisect", "collections", "contextlib", "dataclasses", "decimal", "enum", "fractions", "functools",
    "hashlib", "inspect", "itertools", "math", "operator", "packaging", "statistics", "struct", "typing",
}  # fmt: skip
HEAVY = {"torch", "transformers", "tokenizers", "vllm", "safetensors", "huggingface_hub"}
MATHS = {
    "collections",
    "dataclasses",
    "fractions",
    "functools",
    "itertools",
    "math",
    "operator",
    "statistics",
    "typing",
}


def layer(module: str) -> str:
    """The layer of a module's first part: ``gatepost.engines.child`` lies in ``effects``."""
    first = module.split(".")[1] if "." in module else "__init__"
    if first in TYPES or first == "__init__":
        return "types"
    return "pure" if first in PURE else "shells" if first in SHELLS else "effects"


def modules() -> list[tuple[str, Path]]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        found.append((name.removesuffix(".__init__"), path))
    return found


def imports(path: Path, *, everywhere: bool = True) -> Iterator[str]:
    """Modules that a file imports: all of them, or only those that importing the file imports."""
    tree = ast.parse(path.read_text())
    nodes = ast.walk(tree) if everywhere else (node for node in tree.body)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            if node.module == "gatepost":
                yield from (f"gatepost.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_imports_point_down(name: str, path: Path) -> None:
    own = LAYERS.index(layer(name))
    for imported in imports(path):
        if imported.split(".")[0] == "gatepost":
            assert LAYERS.index(layer(imported)) <= own, (
                f"{name} ({layer(name)}) imports {imported} ({layer(imported)})"
            )


@pytest.mark.parametrize(
    ("name", "path"),
    [entry for entry in modules() if layer(entry[0]) in ("types", "pure")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_pure_logic_has_no_effects(name: str, path: Path) -> None:
    outside = {imported.split(".")[0] for imported in imports(path)} - {"gatepost"}
    assert outside <= WITHOUT_EFFECTS, f"{name} imports {outside - WITHOUT_EFFECTS}"
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & {"open", "print", "exec", "eval", "__import__"}


@pytest.mark.parametrize("path", sorted((ROOT / "gates").glob("*.py")), ids=lambda path: path.stem)
def test_gates_import_the_gate_api_and_maths(path: Path) -> None:
    for imported in imports(path):
        assert imported == "gatepost.gate" or imported.split(".")[0] in MATHS, f"{path.name} imports {imported}"


@pytest.mark.parametrize(("name", "path"), modules(), ids=lambda value: value if isinstance(value, str) else "")
def test_heavy_packages_load_in_the_engine_child_alone(name: str, path: Path) -> None:
    heavy = {imported for imported in imports(path) if imported.split(".")[0] in HEAVY}
    assert not heavy or name.startswith("gatepost.engines."), f"{name} imports {heavy}"


def test_only_the_plugin_imports_pytest() -> None:
    importers = {
        name
        for name, path in modules()
        if any(imported.split(".")[0] in ("pytest", "_pytest") for imported in imports(path))
    }
    assert {name.split(".")[1] for name in importers} == {"plugin"}


MAX_LINES = {"src": 300, "gates": 300, "studies": 320, "conformance": 320, "tests": 320, "models": 320}
SOURCES = [path for folder in MAX_LINES for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_stay_small(path: Path) -> None:
    source = path.read_text()
    assert len(source.splitlines()) <= MAX_LINES[path.relative_to(ROOT).parts[0]], "two ideas in one file"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 65, f"{node.name} has {length} lines"
