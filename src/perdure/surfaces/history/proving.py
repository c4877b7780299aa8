"""`prove`."""

import os
from typing import TypedDict, Unpack

import click

from perdure.app import open_signing_key
from perdure.artifacts import CID, Hash
from perdure.artifacts.keys import PublicKey
from perdure.artifacts.proof import LONGEST_TEXT, InclusionProof, Proven, verify_proof
from perdure.artifacts.proving import Prover
from perdure.errors import AbsentError, InvalidCIDError, ProofError
from perdure.storage import Locator
from perdure.storage.history import History
from perdure.surfaces.asking import ONE_OBJECT, Moment, as_json, parse_moment, state_at
from perdure.surfaces.history.files import STANDARD, reading, writing
from perdure.surfaces.history.opening import history_alone
from perdure.surfaces.telling import (
    local_time,
    mention,
    shown,
    tell,
    tell_json,
    tell_line,
    utc_time,
)

_DIGESTS = {Hash.SHA2_256: "sha256", Hash.BLAKE3: "blake3"}
"""As the tools are called that make the same from a file."""


class Asked(TypedDict):
    """What is to be proved, and where the proof goes."""

    version: int | None
    at: Moment | None
    output: str
    force: bool


@click.command("prove")
@click.argument("what", metavar="[KEY|CID]", required=False)
@click.option("--version", type=click.IntRange(min=1), metavar="N", help="Of KEY; else the last.")
@click.option(
    "--at",
    type=parse_moment,
    metavar="MOMENT",
    help="By the log as it was then: a date, a time or a position.",
)
@click.option("--output", "-o", metavar="FILE", default=STANDARD, help="Write the proof here.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option("--check", metavar="FILE", help="Check the proof in FILE instead; needs --key.")
@click.option("--key", metavar="PUBLICKEY", help="Of whoever gave you the proof.")
@click.option("--public-key", is_flag=True, help="Print your public key instead.")
@as_json(ONE_OBJECT)
def prove_command(
    what: str | None,
    check: str | None,
    key: str | None,
    *,
    public_key: bool,
    as_json: bool,
    **asked: Unpack[Asked],
) -> None:
    """Prove that KEY had its text, and since when.

    Or that CID was kept. Give others the proof and, by a way that they trust, your --public-key.
    They check it with --check and --key, and need neither your memory nor this machine. If they
    also give KEY or CID, the proof must be about that.
    """
    if public_key:
        mine = str(open_signing_key(os.environ).public)
        tell_json({"public_key": mine}) if as_json else tell_line(mine)
    elif check is not None:
        if key is None:
            raise click.UsageError("--check needs --key PUBLICKEY. Fix: ask the owner for it.")
        _check(check, key, what, as_json=as_json)
    elif what is None:
        raise click.UsageError("Missing KEY or CID. Fix: say what is to be proved.")
    elif key is not None:
        raise click.UsageError("--key goes with --check. Fix: leave it out; you sign with yours.")
    else:
        _prove(what, asked, as_json=as_json)


# ---------------------------------------------------------------- proving
def _prove(what: str, asked: Asked, *, as_json: bool) -> None:
    signing = open_signing_key(os.environ)
    with history_alone() as history:
        proof = _proof(history, Prover(history.store, signing), what, asked)
    text, output = proof.to_text(), asked["output"]
    if output != STANDARD:
        with writing(output, force=asked["force"]) as file:
            file.write(text.encode())
    shows = verify_proof(proof, signing.public)
    if as_json:
        told = {**_json(shows), "public_key": str(signing.public)}
        tell_json({**told, "proof": text} if output == STANDARD else {**told, "output": output})
    elif output == STANDARD:
        tell(text)
    else:
        mention(f"wrote {shown(output)}; whoever has it checks it with:")
        mention(f"perdure history prove --check {shown(output)} --key {signing.public}")


def _proof(history: History, prover: Prover, what: str, asked: Asked) -> InclusionProof:
    at = asked["at"]
    state = None if at is None else state_at(history, at)
    cid = _cid(what)
    if cid is not None:
        if asked["version"] is not None:
            raise click.UsageError("a CID has no versions. Fix: give a KEY, or no --version.")
        return prover.prove(cid, state)
    locator, number = Locator(what), asked["version"]
    versions = history.versions(locator, state)
    if not versions:
        raise AbsentError(
            f"{what!a} has no history, or had none then. Fix: `perdure history log` shows which "
            "keys do; it also records what was written outside Perdure."
        )
    chosen = versions[-1] if number is None else history.version(locator, number)
    return prover.prove_position(chosen.position, state)


def _cid(what: str) -> CID | None:
    try:
        return CID.parse(what)
    except InvalidCIDError:
        return None


# ---------------------------------------------------------------- checking
def _check(path: str, key: str, what: str | None, *, as_json: bool) -> None:
    with reading(path) as file:
        data = file.read(LONGEST_TEXT + 1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ProofError("a proof is JSON, and this is not. Fix: copy it whole.") from error
    cid = None if what is None else _cid(what)
    proven = verify_proof(InclusionProof.from_text(text), PublicKey.parse(key.strip()), cid)
    if what is not None and cid is None and proven.name != Locator(what).key:
        raise ProofError(
            f"the proof is about {_subject(proven)}, not {what!a}. Fix: ask for another one."
        )
    if as_json:
        tell_json(_json(proven))
    else:
        _tell(proven)


def _tell(proven: Proven) -> None:
    tell_line(f"proven: {_subject(proven)} {_predicate(proven)}")
    tell_line(f"    at {local_time(proven.time)}, by the clock of its owner")
    tell_line(f"    as entry {proven.position} of {proven.size} in the log {proven.origin}")
    if proven.cid is not None:
        tell_line(f"    content {proven.cid}")
        tell_line(f"    {_DIGESTS[proven.cid.hash]} {proven.cid.digest.hex()}")


def _subject(proven: Proven) -> str:
    return f"{proven.name!a}" if proven.name is not None else f"the content {proven.cid}"


def _predicate(proven: Proven) -> str:
    if proven.name is None:
        return "was kept"
    return "was removed" if proven.cid is None else "had the content below"


def _json(proven: Proven) -> dict[str, object]:
    return {
        "key": proven.name,
        "cid": None if proven.cid is None else str(proven.cid),
        "position": proven.position,
        "time": utc_time(proven.time),
        "entries": proven.size,
        "origin": proven.origin,
    }
