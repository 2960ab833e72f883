"""The argument parser of all ``dstfuzz`` commands, with options shared with pytest.

The parser's errors are single lines. The module is not in `cli`, because the commands of other
parts of the package use it too and may not import `cli`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from pytest_dstfuzz.config import (
    ADAPTER,
    KEYS,
    NAMED,
    Option,
    option,
    parse_option,
    split_named,
)
from pytest_dstfuzz.config.settings import check_paths, split_keys
from pytest_dstfuzz.errors import UserError, nearest
from pytest_dstfuzz.files import check_path, refuse_address

__all__ = ["Parser", "adapter_options"]


class TypedLine(argparse.Namespace):
    """The parsed arguments. A missing option is ``None``, and ``--turns all`` is, too."""

    # Not in `vars`, which contains only the options.
    __slots__ = ("named",)

    #: The options of the table that the command line sets.
    named: frozenset[str]


class Parser(argparse.ArgumentParser):
    """A parser that raises its errors instead of exiting with a usage message.

    ``prog`` is the command as the user types it. ``examples`` are command lines, one per line.
    """

    def __init__(self, prog: str, description: str, examples: str = "") -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._flags: list[str] = []
        #: The options of the table that the command line sets.
        self._named: set[str] = set()

    def error(self, message: str) -> NoReturn:
        """Raise ``message`` as an error of the user."""
        raise UserError(f"{message} (see {self.prog} --help)")

    def add_argument(self, *names: Any, **how: Any) -> argparse.Action:
        """Add an argument as argparse does. A path is checked, see `check_path`."""
        if how.get("type") is Path:
            shown_as = names[-1] if names[-1].startswith("-") else how.get("metavar", names[-1])
            how["type"] = partial(_path, shown_as=shown_as)
        return super().add_argument(*names, **how)

    def option(self, flag: str, **how: Any) -> None:
        """Add an option as `add_argument` does, and use its name in suggestions."""
        self._flags.append(flag)
        how["help"] = how["help"].replace("%", "%%")
        self.add_argument(flag, **how)

    def value(self, flag: str, parse: Callable[[str], Any], metavar: str, **how: Any) -> None:
        """Add an option with one value. An error of ``parse`` is shown with the flag."""

        def parsed(text: str) -> Any:
            try:
                return parse(text)
            except UserError as error:
                raise UserError(f"{flag}: {error}") from None
            except ValueError as error:
                raise UserError(f"{flag}: {text!r} {error}") from None

        self.option(flag, type=Path if parse is Path else parsed, metavar=metavar, **how)

    def shared(self, *names: str, required: Sequence[str] = ()) -> None:
        """Add options that pytest shares, with the same names but without ``dst-``.

        A key of a tracker, a relation or a comparison is not an option of the parser. It starts as
        ``None`` in the namespace, and its value is read from the option ``--tracker``,
        ``--relation`` or ``--compare``.
        """
        for name in names:
            item = option(name)
            if item.of:
                self.set_defaults(**{name: None})
                continue
            flag = f"--{item.flag}"
            how: dict[str, Any] = {"metavar": item.value.metavar}
            if item.is_switch:
                how = {"nargs": "?", "const": True, "metavar": "yes|no"}
            self.option(
                flag,
                dest=name,
                type=self._reader(item, flag),
                action=_action(item),
                required=name in required,
                # A command reads no conftest.py.
                help=item.help.replace(" or a conftest.py", ""),
                **how,
            )
            if item.is_switch:
                off = f"--no-{item.flag}"
                self.option(
                    off, dest=name, action="store_const", const=False, help=argparse.SUPPRESS
                )

    def _reader(self, item: Option, flag: str) -> Callable[[str], Any]:
        def read(text: str) -> Any:
            self._named.add(item.name)
            if item.name in NAMED:
                return text
            value = parse_option(item.name, text, flag)
            check_paths(item.name, value, flag)
            return value

        return read

    def parse_all(self, arguments: Sequence[str]) -> TypedLine:
        """Parse all arguments, or raise a `UserError`."""
        namespace, unknown = self.parse_known_args(arguments, TypedLine())
        if unknown:
            flag = unknown[0].partition("=")[0]
            if not flag.startswith("-") and "--tracker" in arguments:
                # It is the end of an unquoted header, and so may be a token.
                self.error(
                    "one argument too many: put quotes around a header, as in 'header=Name: value'"
                )
            # Compare without the dashes that all options share.
            names = [known.lstrip("-") for known in self._flags]
            guess = nearest(flag.lstrip("-"), names) if flag.startswith("-") else None
            hint = f"; did you mean --{guess}?" if guess else ""
            self.error(f"unknown argument {flag!r}{hint}")
        lists = {name: each for name, each in vars(namespace).items() if isinstance(each, list)}
        vars(namespace).update({name: tuple(each) for name, each in lists.items()})
        # Check for the option, because another command may have an argument of this name.
        if "--tracker" in self._flags and (keys := namespace.tracker):
            vars(namespace).update(split_keys(keys, "--tracker"))
            namespace.tracker = tuple(key for key in keys if key.name not in KEYS) or None
            if namespace.tracker is None:
                self._named.discard("tracker")
        for owner in self._named.intersection(NAMED):
            whole = parse_option(owner, ",".join(getattr(namespace, owner)), f"--{owner}")
            listed, texts = split_named(owner, whole)
            vars(namespace).update(
                {name: parse_option(name, said, f"--{owner}") for name, said in texts.items()}
            )
            setattr(namespace, owner, listed)
        namespace.named = frozenset(self._named)
        return namespace


def _path(text: str, shown_as: str) -> Path:
    check_path(text, shown_as)
    refuse_address(text, shown_as)
    return Path(text)


def _action(item: Option) -> str:
    """Return the argparse action for an option."""
    # Names with keys are parsed together, after the whole command line is known.
    return "append" if item.name in NAMED else "extend" if item.repeated else "store"


def adapter_options(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options about a service from ``given``, and return those that have a value."""
    values = {name: given.pop(name, None) for name in ADAPTER}
    return {name: value for name, value in values.items() if value is not None}
