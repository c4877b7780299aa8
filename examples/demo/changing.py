"""Memories change: by later messages, by hand, and back again."""

from examples.demo.stage import MEMORIES, Stage

_RELEASE = "Every release of the phone app goes out to sailors on a"
_BY_HAND = "- In Makefiles there is no choice: tabs."
_TABS = "Preferences/Tabs over spaces.md"


def show_contradiction(stage: Stage) -> None:
    day = stage.type("recall", "When does a release of the phone app go out?", "--top", "1")
    stage.sees(day, f"{_RELEASE} Tuesday. (since 2026-05-12)")
    why = stage.type("why", "profile", only=(". (since", "superseded", ". (held", '"I live'))
    stage.sees(
        why,
        "Mara lives in Porto. (since 2026-04-21)",
        'Mara: "I live in Porto" (sessions/2026-04-21-boxes, message 2: found there)',
        "Mara lives in Kiel. (held until 2026-04-21",
        'Mara: "I live in Kiel" (sessions/2026-01-05-kick-off, message 5: found there)',
    )


def show_blame(stage: Stage) -> None:
    blamed = stage.type(
        "history", "blame", "profile", only=("version ", " - Mara")
    ).text.splitlines()
    of = {line.split()[0] for line in blamed if "  - Mara " in line}
    stage.holds("the lines of one page are of several versions", is_so=len(of) > 1)
    diff = stage.type("history", "diff", "profile", only=("-- Mara", "+- Mara"))
    stage.sees(diff, "-- Mara lives in Kiel.", "+- Mara lives in Porto.")


def show_edit(stage: Stage) -> None:
    file = stage.folder / MEMORIES / _TABS
    file.write_text(f"{file.read_text(encoding='utf-8').rstrip()}\n{_BY_HAND}\n", encoding="utf-8")
    stage.tell(f"$ echo '{_BY_HAND}' >> '{MEMORIES}/{_TABS}'")
    stage.remark("`perdure watch` takes edits in as they are saved; here, by hand again:")
    stage.sees(stage.type("repair", "--apply"), "recorded 1 edit ")
    found = stage.type("recall", "Makefiles", "--top", "1")
    stage.sees(found, _BY_HAND, "preference/tabs-over-spaces lines ")
    log = stage.type("history", "blame", _TABS, only=("version ", " - Mara", _BY_HAND))
    by_hand = [line for line in log.text.splitlines() if line.endswith(_BY_HAND)]
    stage.holds("the line is recorded as found in the file", is_so="external" in "".join(by_hand))


def show_unmerging(stage: Stage) -> None:
    before = stage.type("read", "entity/jonas")
    stage.sees(before, "Jonas lives in Tromsø.")
    stage.sees_no(before, "Bergen")
    stage.remark("a month at his aunt's was taken for a move; that was wrong")
    stage.sees(
        stage.type("unmerge", "entity/jonas"),
        "holds again: - Jonas lives in Bergen.",
    )
    after = stage.type("read", "entity/jonas")
    stage.sees(after, "- Jonas lives in Bergen.")
    stage.sees_no(after, "Tromsø")
