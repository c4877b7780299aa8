"""What is given to be kept: a text, from an argument or stdin, and what is to be known of it."""

import json
import sys

import click

from perdure.errors import InvalidValueError, NotTextError
from perdure.model.values import JSON
from perdure.surfaces.asking import Command

STDIN = "-"
_MOST_BYTES = 1_000_000


def parse_meta(text: str) -> tuple[str, JSON]:
    """Read `key=text` or, with anything that JSON can say, `key:=value`."""
    key, equals, value = text.partition("=")
    if not equals or not key.rstrip(":"):
        raise click.BadParameter(f"{text!a} is no key=value. Fix: write it so.")
    if not key.endswith(":"):
        return key, value
    try:
        return key.removesuffix(":"), json.loads(value)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(
            f"{value!a} is no JSON. Fix: write {key.removesuffix(':')}={value} for a text."
        ) from error


def with_meta(command: Command) -> Command:
    return click.option(
        "--meta",
        type=parse_meta,
        metavar="KEY=VALUE",
        multiple=True,
        help="Something of your own, kept with it; KEY:=VALUE is JSON, and KEY:=null takes it "
        "away.",
    )(command)


class TakesText(click.Command):
    """Takes a text that begins with a dash, as a list in Markdown does, for a text."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = [param for param in self.params if isinstance(param, click.Option)]
        valued = {name for option in options if not option.is_flag for name in option.opts}
        given = args[: args.index("--")] if "--" in args else args
        for at, arg in enumerate(given):
            if _is_dashed_text(arg) and (at == 0 or args[at - 1] not in valued):
                return super().parse_args(ctx, [*args[:at], *args[at + 1 :], "--", arg])
        return super().parse_args(ctx, args)


def _is_dashed_text(arg: str) -> bool:
    """Whether it begins like an option, and has a space where no option has one."""
    return arg.startswith("-") and any(c.isspace() for c in arg.partition("=")[0])


def piped() -> str:
    """Return what comes on stdin."""
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidValueError(
            f"more than {_MOST_BYTES:,} bytes came on stdin. Fix: split it into several nodes."
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotTextError("what came on stdin is no text. Fix: give it as UTF-8.") from error
