"""A reader of one's own: in each line what the user said, and what the bot answered."""

from collections.abc import Iterator

from pytest_dstfuzz import DataError, Dialogue, Reader, Turn


class TwoColumns(Reader):
    name = "two-columns"
    about = "lines of USER | BOT, with an empty line between two dialogues"

    def detect(self, file, head: str) -> float:  # noqa: ARG002 - its name says nothing
        return 0.9 if " | " in head.partition("\n")[0] else 0

    def read(self, file, how) -> Iterator[Dialogue]:  # noqa: ARG002 - no labels to normalise
        turns, asked = list[Turn](), ""
        for number, line in enumerate([*file.lines(), ""], start=1):
            user, found, bot = line.partition(" | ")
            if found:
                turns.append(Turn(len(turns), asked, user, answer=bot))
            elif line.strip():
                raise DataError(f"{file.place}: line {number} has no ' | '")
            elif turns:
                yield Dialogue(f"talk-{number}", tuple(turns))
            turns, asked = (turns, bot) if found else ([], "")
