"""The child's end of the pipe to its parent."""

import os
from collections.abc import Iterator
from typing import BinaryIO

from gatepost.engines.wire import MAX_LINE_BYTES, Answer, Command, decode_command, encode
from gatepost.errors import DataError, EngineError


class Channel:
    """Commands in, answers out, over descriptors that nothing else in this process knows."""

    current: "Channel | None" = None
    """The channel of this process; ``None`` outside an engine's child."""

    def __init__(self, commands: BinaryIO, answers: BinaryIO) -> None:
        self._commands, self._answers = commands, answers

    @classmethod
    def claim_standard_streams(cls) -> "Channel":
        """Take over stdin and stdout, and leave an empty stdin and stderr in their places.

        Libraries print to descriptor 1, from C too, so the channel moves away from it instead of asking them not to.
        """
        commands, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        cls.current = cls(commands, answers)
        return cls.current

    def commands(self) -> Iterator[Command]:
        """Every command until the parent closes its end. Raises ``EngineError`` (``garbage``) for anything else."""
        while line := self._commands.readline(MAX_LINE_BYTES + 1):
            try:
                yield decode_command(line)
            except DataError as error:
                raise EngineError(f"the parent sent garbage: {error}", kind="garbage") from error

    def send(self, answer: Answer) -> None:
        """Send one answer. Raises ``EngineError`` (``garbage``) if the engine gave something that is none."""
        try:
            line = encode(answer)
        except DataError as error:
            raise EngineError(f"the engine answered garbage: {error}", kind="garbage") from error
        self.write(line)

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._answers.write(data)
        self._answers.flush()
