"""`perdure history prove`."""

import os
from typing import TypedDict, Unpack

import click

from perdure import CID, ProvenEntry, check_proof
from perdure.app import default_request, open_log, open_signing_key
from perdure.errors import InvalidCIDError
from perdure.surfaces import out
from perdure.surfaces.cli.options import (
    STANDARD,
    Moment,
    as_json,
    new_file,
    parse_moment,
    read_signed_file,
)
from perdure.surfaces.out import local_time, picked, shown, utc_time

_MOST_BYTES = 1 << 21
_DIGESTS = {"SHA2_256": "sha256", "BLAKE3": "blake3"}
"""The usual names of the hash functions."""


class ProveOptions(TypedDict):
    version: int | None
    at: Moment | None
    output: str
    force: bool


@click.command("prove")
@click.argument("what", metavar="[KEY|CID]", required=False)
@click.option(
    "--version",
    type=click.IntRange(min=1),
    metavar="N",
    help="Prove this version of KEY. Default: the last.",
)
@click.option(
    "--at",
    type=parse_moment,
    metavar="MOMENT",
    help="Use the log as of a date, a time or a position.",
)
@click.option("--output", "-o", metavar="FILE", default=STANDARD, help="Write the proof to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--check", metavar="FILE", help="Check the proof in FILE instead; needs --key.")
@click.option("--key", metavar="PUBLICKEY", help="The public key of the proof's author.")
@click.option("--public-key", is_flag=True, help="Print your public key instead.")
@as_json()
def prove_command(
    what: str | None,
    check: str | None,
    key: str | None,
    *,
    public_key: bool,
    as_json: bool,
    **options: Unpack[ProveOptions],
) -> None:
    """Prove that KEY had its text, and since when.

    With a CID, proves that this content was stored. Give others the proof and, over a channel that
    they trust, your --public-key. They check it with --check and --key, and need neither your
    memory nor this machine. If they also give KEY or CID, the proof must be about that.
    """
    if public_key:
        mine = str(open_signing_key(os.environ).public)
        out.answer({"public_key": mine}, mine, as_json=as_json)
    elif check is not None:
        if key is None:
            raise click.UsageError("--check needs --key PUBLICKEY. Fix: ask the owner for it.")
        proven = check_proof(read_signed_file(check, "proof", _MOST_BYTES), key, what)
        out.json(_json(proven)) if as_json else _print(proven)
    elif what is None:
        raise click.UsageError("Missing KEY or CID. Fix: name what to prove.")
    elif key is not None:
        raise click.UsageError("--key needs --check. Fix: leave it out; you sign with your own.")
    elif options["version"] is not None and _is_cid(what):
        raise click.UsageError("a CID has no versions. Fix: give a KEY, or no --version.")
    else:
        _prove(what, options, as_json=as_json)


def _is_cid(what: str) -> bool:
    try:
        return bool(CID.parse(what))
    except InvalidCIDError:
        return False


def _prove(what: str, options: ProveOptions, *, as_json: bool) -> None:
    with open_log(os.environ, texts=False) as log:
        found = log.find(what, default_request(os.environ))
        proof = log.prove(found, options["version"], at=options["at"])
    output = options["output"]
    if output != STANDARD:
        with new_file(output, force=options["force"]) as file:
            file.write(proof.text.encode())
    if as_json:
        where = {"proof": proof.text} if output == STANDARD else {"output": output}
        out.json({**_json(proof.proven), "public_key": proof.public_key, **where})
    elif output == STANDARD:
        out.write(proof.text)
    else:
        out.mention(f"wrote {shown(output)}; anyone can check it with:")
        out.mention(f"perdure history prove --check {shown(output)} --key {proof.public_key}")


def _print(proven: ProvenEntry) -> None:
    predicate = "was removed" if proven.cid is None else "had the content below"
    stored = f"the content {proven.cid} was stored"
    out.line(f"proven: {stored if proven.name is None else f'{proven.name!a} {predicate}'}")
    out.line(f"    at {local_time(proven.time)}, by the clock of its owner")
    out.line(f"    as entry {proven.position} of {proven.size} in the log {proven.origin}")
    if proven.cid is not None:
        out.line(f"    content {proven.cid}")
        out.line(f"    {_DIGESTS[proven.cid.hash.name]} {proven.cid.digest.hex()}")


def _json(proven: ProvenEntry) -> dict[str, object]:
    fields = picked(proven, "key=name cid position entries=size origin")
    return {**fields, "time": utc_time(proven.time)}
