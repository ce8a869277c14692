"""Somebody else's JSON document, read field by field: what is missing or of another kind is refused by one sentence."""

from collections.abc import Mapping
from typing import NamedTuple

from gatepost.errors import DataError
from gatepost.verdict import JSON


class Foreign(NamedTuple):
    """A value in a published document: the file, where in it the value stands, and the value."""

    file: str
    value: JSON
    path: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.path}" if self.path else self.file

    def at(self, pointer: str) -> "Foreign":
        """The value below, by field names joined with dots. Raises ``DataError`` naming the first that is missing."""
        here = self
        for name in pointer.split("."):
            path = f"{here.path}.{name}" if here.path else name
            if not isinstance(here.value, Mapping) or name not in here.value:
                raise DataError(f"{self.file}: field {path} is missing")
            here = Foreign(self.file, here.value[name], path)
        return here

    def has(self, name: str) -> bool:
        """Whether the value is an object with that field."""
        return isinstance(self.value, Mapping) and name in self.value

    def count(self, pointer: str, *, at_least: int = 0) -> int:
        """A whole number from ``at_least``."""
        found = self.at(pointer)
        if type(found.value) is not int or found.value < at_least:
            found.refuse(f"a whole number from {at_least}")
        return int(found.value)

    def counts(self, pointer: str) -> list[int]:
        """A list of whole numbers from 0."""
        found = self.at(pointer)
        if not isinstance(found.value, list) or not all(type(item) is int and item >= 0 for item in found.value):
            found.refuse("a list of whole numbers from 0")
        return list(found.value)

    def number(self, pointer: str, *, at_least: float | None = None) -> float:
        """A number from ``at_least``, or one above 0."""
        found = self.at(pointer)
        right = type(found.value) in (int, float) and (found.value > 0 if at_least is None else found.value >= at_least)
        if not right:
            found.refuse("a number above 0" if at_least is None else f"a number from {at_least}")
        return float(found.value)

    def truth(self, pointer: str) -> bool:
        """True or false."""
        found = self.at(pointer)
        if not isinstance(found.value, bool):
            found.refuse("true or false")
        return bool(found.value)

    def text(self, pointer: str) -> str:
        """A string that is not empty."""
        found = self.at(pointer)
        if not isinstance(found.value, str) or not found.value:
            found.refuse("text")
        return str(found.value)

    def each(self, pointer: str) -> list["Foreign"]:
        """The items of a list that is not empty."""
        found = self.at(pointer)
        if not isinstance(found.value, list) or not found.value:
            found.refuse("a list of at least one item")
        return [Foreign(self.file, item, f"{found.path}[{index}]") for index, item in enumerate(found.value)]

    def one(self, pointer: str, field: str, value: JSON) -> "Foreign":
        """The one item of a list whose field has that value."""
        items = [item for item in self.each(pointer) if item.at(field).value == value]
        if len(items) != 1:
            raise DataError(f"{self.at(pointer)}: {len(items)} items have {field} {value!r}, expected exactly one")
        return items[0]

    def expect(self, pointer: str, value: JSON) -> None:
        """Raise ``DataError`` unless the value below is that one."""
        found = self.at(pointer)
        if type(found.value) is not type(value) or found.value != value:
            found.refuse(repr(value))

    def refuse(self, expected: str) -> None:
        """Raise ``DataError`` saying what was expected."""
        raise DataError(f"{self} is {str(self.value)[:60]!r}, expected {expected}")
