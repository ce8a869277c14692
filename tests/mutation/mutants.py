"""Mutants of one file: mutmut's operators, applied to the whole file.

mutmut itself leaves out each function with a decorator, which every gate and every property is, and finds no mutant in
a module that is loaded by its path, as gates are. So only its operators are taken, and what they must not touch.
"""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import NEVER_MUTATE_FUNCTION_CALLS
from mutmut.mutation.mutators import mutation_operators


class Mutant(NamedTuple):
    """One change of one file.

    Attributes:
        module: path of the file, relative to the tree.
        number: of this mutant among those of the file, in the order of the text.
        line: where the changed expression begins, from 1.
        lines: those of the statement, or of its head, that the change lies in: tests that ran one of them may see it.
        always: whether that runs on import, so that any test of the module may see it.
        before, after: the changed expression.
        source: the whole changed file.
    """

    module: str
    number: int
    line: int
    lines: range
    always: bool
    before: str
    after: str
    source: str


def mutants_of(tree: Path, module: str, *, sample: int | None, seed: int) -> tuple[int, list[Mutant]]:
    """How many mutants a file has, and all of them, or as many as asked for, drawn at random by seed and name."""
    wrapper = MetadataWrapper(cst.parse_module((tree / module).read_text()))
    places = _Places(wrapper.resolve(PositionProvider))
    wrapper.module.visit(places)
    chosen: Sequence[int] = range(len(places.found))
    if sample is not None and sample < len(chosen):
        chosen = sorted(random.Random(f"{seed}/{module}").sample(chosen, sample))
    return len(places.found), [_mutant(wrapper.module, module, number, places.found[number]) for number in chosen]


class _Place(NamedTuple):
    node: cst.CSTNode
    changed: cst.CSTNode
    at: CodeRange
    lines: range
    always: bool


def _mutant(whole: cst.Module, module: str, number: int, place: _Place) -> Mutant:
    source = cst.ensure_type(whole.deep_replace(place.node, place.changed), cst.Module).code
    before, after = whole.code_for_node(place.node).strip(), whole.code_for_node(place.changed).strip()
    return Mutant(module, number, place.at.start.line, place.lines, place.always, before, after, source)


class _Places(cst.CSTVisitor):
    """Every place that an operator changes, and what it makes of it. Annotations change nothing and are left out."""

    def __init__(self, positions: object) -> None:
        super().__init__()
        self._at: dict[cst.CSTNode, CodeRange] = dict(positions)  # type: ignore[call-overload]
        self._statements: list[cst.CSTNode] = []
        self._functions = 0
        self.found: list[_Place] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if _is_left_out(node):
            return False
        if isinstance(node, cst.ClassDef):
            for part in (*node.bases, *node.keywords, node.body):
                self._enter(node)
                part.visit(self)
                self._leave(node)
            return False
        self._enter(node)
        self.found += self._places(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if not isinstance(original_node, cst.ClassDef):
            self._leave(original_node)

    def _enter(self, node: cst.CSTNode) -> None:
        if isinstance(node, cst.BaseStatement | cst.SimpleStatementLine):
            self._statements.append(node)
        self._functions += isinstance(node, cst.FunctionDef | cst.Lambda)

    def _leave(self, node: cst.CSTNode) -> None:
        if self._statements and self._statements[-1] is node:
            self._statements.pop()
        self._functions -= isinstance(node, cst.FunctionDef | cst.Lambda)

    def _places(self, node: cst.CSTNode) -> Iterator[_Place]:
        for kind, operator in mutation_operators:
            for changed in operator(node) if isinstance(node, kind) else ():
                statement = self._statements[-1]
                first, last = self._at[statement].start.line, self._at[statement].end.line
                if isinstance(body := getattr(statement, "body", None), cst.IndentedBlock):
                    last = self._at[body].start.line
                head = isinstance(statement, cst.FunctionDef)  # defaults and decorators, which run on import
                yield _Place(node, changed, self._at[node], range(first, last + 1), head or not self._functions)


def _is_left_out(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
        return node.func.value in NEVER_MUTATE_FUNCTION_CALLS
    return isinstance(node, cst.Annotation | cst.Import | cst.ImportFrom)
