"""What exists so far, shown on the embedded default."""

import json
import multiprocessing
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from holdfast.app import Context, open_context, open_recorded, open_storage, preview_storage
from holdfast.config import load_config
from holdfast.errors import ConfigError, HoldfastError
from holdfast.index.models import find
from holdfast.storage import (
    ABSENT,
    ConcurrentModificationError,
    FindingKind,
    Locator,
    StorageBackend,
    content_hash,
    walk,
)
from holdfast.storage.sweep import sweep
from holdfast.storage.wrappers.view import View
from holdfast.surfaces.telling import tell_line

Say = Callable[[str], object]
Environment = dict[str, str]

COUNTER = Locator("counter.md")
PROCESSES = 4
LOOPS = 25
SAID = (
    ("Ana", "Which branch do we release from?"),
    ("Tom", "From main, every second Thursday."),
    ("Ana", "Then I book the train for Wednesday."),
)
TALKS = {
    "march": [
        {"content": "I live in Berlin. I prefer tea over coffee.", "time": "2026-03-02T10:00:00Z"},
    ],
    "may": [
        {"content": "I moved: I live in Lisbon now.", "time": "2026-05-02T10:00:00Z"},
    ],
}


@click.command("demo")
def demo_command() -> None:
    """Show Holdfast at work, in a folder of its own that is removed again."""
    run(tell_line)


def run(say: Say) -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-demo-") as folder:
        environ = {"HOME": folder}
        say("Holdfast keeps an agent's memory as plain Markdown that you own.")
        say(f"Everything below happens in {folder}, which is removed at the end.")
        _show_the_default(say, environ)
        _show_conditional_writes(say, open_storage(environ))
        _show_many_writers(say, environ)
        _show_a_vault(say, environ, Path(folder, "Notes"))
        environ_of_ana = {**environ, "USER": "ana", "MEMORY_VAULT_PATH": str(Path(folder, "Notes"))}
        _show_history(say, environ_of_ana)
        _show_verbs(say, environ_of_ana)
        _show_learning(say, environ_of_ana)
        _show_recall(say, environ_of_ana)
        _show_refusals(say, environ)
    say("\nNext: `make test` proves it; README.md tells the rest.")


def _show_the_default(say: Say, environ: Environment) -> None:
    say("\n1. No key, no model, no server: a folder on this device")
    say(f"   {preview_storage(environ).message}")
    storage = open_storage(environ)
    storage.write(Locator("preferences/indentation.md"), "Prefers tabs over spaces.\n")
    storage.write(Locator("decisions/database.md"), "We use SQLite until it hurts.\n")
    for text in walk(storage, Locator("")):
        say(f"   {text.key:28} {storage.read(text).strip()}")


def _show_conditional_writes(say: Say, storage: StorageBackend) -> None:
    say("\n2. Nobody overwrites what they have not seen")
    note = Locator("preferences/indentation.md")
    seen = content_hash(storage.read(note))
    storage.write(note, "Prefers spaces, since March.\n", expect=seen)
    say("   one agent wrote what it saw, and changed it")
    try:
        storage.write(note, "Prefers tabs, definitely.\n", expect=seen)
    except ConcurrentModificationError as refusal:
        say(f"   another one, too late: {refusal}")
    say(f"   kept: {storage.read(note).strip()}")


def _show_many_writers(say: Say, environ: Environment) -> None:
    say(f"\n3. {PROCESSES} processes add 1 to the same text, {LOOPS} times each")
    storage = open_storage(environ)
    storage.write(COUNTER, "0", expect=ABSENT)
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_count_up, args=(environ,)) for _ in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    say(f"   expected {PROCESSES * LOOPS}, counted {storage.read(COUNTER)}")


def _count_up(environ: Environment) -> None:
    storage = open_storage(environ)
    done = 0
    while done < LOOPS:
        before = storage.read(COUNTER)
        try:
            storage.write(COUNTER, str(int(before) + 1), expect=content_hash(before))
        except ConcurrentModificationError:
            continue
        done += 1


def _show_a_vault(say: Say, environ: Environment, vault: Path) -> None:
    say("\n4. The same contract on an Obsidian vault that a sync client also writes")
    vault.mkdir()
    storage = open_storage({**environ, "MEMORY_VAULT_PATH": str(vault)})
    storage.write(Locator("plan.md"), "# Plan\n\nBuy bread.\nCall the bank.\n")
    copy = vault / "plan (Ana's conflicted copy 2026-03-02).md"
    copy.write_text("# Plan\n\nBuy bread.\nCall the dentist.\n")
    for finding in storage.findings(Locator("")):
        if finding.kind is FindingKind.CONFLICT_COPY:
            say(f"   found: {finding.name}")
            say(f"          a conflict copy of {finding.original}; {finding.advice}")
    say(f"   memories: {', '.join(text.key for text in walk(storage, Locator('')))}")


def _show_history(say: Say, environ: Environment) -> None:
    say("\n5. Every version is kept, also of what was edited by hand; any moment can be read again")
    plan = Locator("plan.md")
    with open_recorded(environ) as memory:
        sweep(memory)  # the plan was written before there was a history
        before = memory.history.store.current()
        agent = memory.because(actor="agent", reason="asked to")
        agent.write(plan, memory.read(plan) + "Ask Tom.\n")
        by_hand = Path(environ["MEMORY_VAULT_PATH"], plan.key)
        by_hand.write_text(by_hand.read_text().replace("bank", "bank before noon"))
        sweep(memory)
        for line in memory.history.blame(plan):
            version = line.version
            who = version.actor or version.origin
            say(f"   version {version.number}  {who:10} {line.text.rstrip()}")
        then = View(memory.history, before).read(plan)
        say(f"   as it was at first: {' / '.join(then.split(chr(10))[2:-1])}")
        report = memory.history.store.verify()
        say(f"   {report.commits} commits, every byte of {report.contents} contents checked")


def _show_verbs(say: Say, environ: Environment) -> None:
    say("\n6. Memories by name, with verbs for people and agents; edit the files as you like")
    ana = Path(environ["MEMORY_VAULT_PATH"], "accounts", "local", "users", "ana", "memories")
    _type(say, environ, "write", "preference/indentation", "Prefers tabs.")
    _type(say, environ, "write", "habit/editor", "Uses vim, for the sake of [[indentation]].")
    before = _position(environ)
    by_hand = ana / "preference" / "indentation" / "content.md"
    by_hand.write_text(by_hand.read_text().replace("tabs", "tabs, but not in YAML"))
    say("   (Ana changes that note in Obsidian)")
    _type(say, environ, "read", "preference/indentation")
    _type(say, environ, "move", "preference/indentation", "style/tabs")
    _type(say, environ, "read", "habit/editor")
    _type(say, environ, "read", "preference/indentation", "--at", before)
    _type(say, environ, "archive", "habit/editor")
    new = ana / "habit" / "tea" / "content.md"
    new.parent.mkdir()
    new.write_text("# Tea\n\nNo milk.\n")
    say("   (Ana makes a folder habit/tea, with a note in it)")
    _type(say, environ, "repair", "--apply")
    _type(say, environ, "tree")


def _type(say: Say, environ: Environment, *words: str) -> None:
    """Run a command line in a process of its own, and show what was typed and answered."""
    say(f"   $ holdfast {shlex.join(words)}")
    done = subprocess.run(  # noqa: S603 - it is this program
        [sys.executable, "-c", "from holdfast.surfaces.cli import main; main()", *words],
        env={**os.environ, "HOLDFAST_HOME": f"{environ['HOME']}/.holdfast", **environ},
        cwd=environ["HOME"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        check=True,
    )
    for line in done.stdout.splitlines():
        say(f"   {line}".rstrip())


def _position(environ: Environment) -> str:
    with open_recorded(environ) as memory:
        return str(memory.history.position())


def _show_learning(say: Say, environ: Environment) -> None:
    say(
        "\n7. Learned from what was said, with the words to prove it; what is said later supersedes"
    )
    for name, talk in TALKS.items():
        file = Path(environ["HOME"], f"{name}.jsonl")
        lines = (json.dumps({"role": "user", "name": "Ana", **message}) for message in talk)
        file.write_text("".join(f"{line}\n" for line in lines))
        for message in talk:
            say(f"   (in {name} Ana says: {message['content']})")
        _type(say, environ, "commit", file.name)
    _type(say, environ, "why", "profile")


def _show_recall(say: Say, environ: Environment) -> None:
    say("\n8. Found again by words and by meaning, with the place to cite, now or as of a moment")
    has_model = _borrow_model(Path(environ["HOME"], ".holdfast"))
    with open_context(environ) as context:
        _save_habit(context, "Lies awake after coffee in the afternoon.")
        context.memory.commit_session(_messages(), session_id="kick-off", extract=False)
    say("   (an agent saves habit/coffee, and the messages of a session)")
    _type(say, environ, "recall", "When is the release?", "--top", "2")
    if has_model:
        _type(say, environ, "recall", "What keeps her from sleeping?", "--top", "1")
        say("   (by meaning; `holdfast models install` gets the model for your own memory)")
    else:
        say("   (with the model, it would also find what shares no word with a question)")
    before = _position(environ)
    with open_context(environ) as context:
        _save_habit(context, "Sleeps well, since she drinks tea.")
    say("   (Ana changes her habit, and the agent its note)")
    _type(say, environ, "recall", "coffee in the afternoon", "--top", "1", "--at", before)
    _type(say, environ, "recall", "When is the release?", "--budget", "260")


def _save_habit(context: Context, text: str) -> None:
    context.memory.save(text, category="habit", slug="coffee")


def _borrow_model(home: Path) -> bool:
    """Let the demo use the model that this user has installed; say whether there is one."""
    try:
        models = load_config(os.environ).home / "models"
    except ConfigError:  # of a user whose config is none of the demo's business
        return False
    if find(models) is None:
        return False
    (home / "models").symlink_to(models)
    return True


def _messages() -> list[dict[str, str]]:
    return [
        {"role": "user", "name": name, "content": said, "time": f"2026-03-02T10:0{minute}:00Z"}
        for minute, (name, said) in enumerate(SAID)
    ]


def _show_refusals(say: Say, environ: Environment) -> None:
    say("\n9. What goes wrong is said, with the fix, and nothing is done instead")
    absent = str(Path(environ["HOME"], "NotMounted"))
    attempts: list[Callable[[], object]] = [
        lambda: Locator("../../etc/passwd"),
        lambda: open_storage({**environ, "MEMORY_VAULT_PATH": absent}),
        lambda: open_storage(environ).read(Locator("preferences/colour.md")),
    ]
    for attempt in attempts:
        try:
            attempt()
        except HoldfastError as refusal:
            say(f"   {type(refusal).__name__}: {refusal}")
