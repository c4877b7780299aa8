"""Backends and maintenances with one fault each. The name says the fault."""

import errno
import posixpath
import re
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

from perdure.errors import AbsentError
from perdure.storage import (
    ABSENT,
    Capabilities,
    ConcurrentModificationError,
    ConflictStrategy,
    Expectation,
    Finding,
    Info,
    InvalidLocatorError,
    Locator,
    StorageBackend,
    Tier,
    TierLayout,
    content_hash,
    walk,
)
from perdure.storage.changes import check_found, marked_original
from perdure.storage.contract import Listing, Skip
from perdure.storage.device_local import DeviceLocalBackend, FolderBackend
from perdure.storage.in_memory import MemoryBackend
from perdure.storage.locator import TEMPORARY_SUFFIX
from perdure.storage.vault import VaultBackend
from perdure.testing.storage import MirrorMaintenance
from perdure.testing.storage.maintenance import clear

ROOT = Locator("")
A_MOMENT = 0.002
"""Seconds between a check and its write: long enough for another writer to come in between."""


def forged(key: str) -> Locator:
    """Return a locator that nobody checked."""
    locator = object.__new__(Locator)
    object.__setattr__(locator, "key", key)
    return locator


# ---------------------------------------------------------------- resolve


class ResolvesTheLastPartOnly(MemoryBackend):
    def resolve(self, *parts: str) -> Locator:
        return super().resolve(*parts[-1:])


class ResolvesNothingToAHome(MemoryBackend):
    def resolve(self, *parts: str) -> Locator:
        return super().resolve(*(parts or ("home",)))


class CollapsesUpwardSteps(MemoryBackend):
    def resolve(self, *parts: str) -> Locator:
        return super().resolve(posixpath.normpath("/".join(parts)))


class TrustsItsKeys(MemoryBackend):
    def resolve(self, *parts: str) -> Locator:
        return forged("/".join(parts))


class MendsHostileKeys(MemoryBackend):
    def resolve(self, *parts: str) -> Locator:
        return super().resolve(*(re.sub(r"\.\.|[^ -~]", "_", part) for part in parts))


class RefusesAbsoluteKeys(MemoryBackend):
    def resolve(self, *parts: str) -> Locator:
        if any(part.startswith("/") for part in parts):
            raise InvalidLocatorError("a key is relative")
        return super().resolve(*parts)


# ---------------------------------------------------------------- read


class TranslatesLineEnds(MemoryBackend):
    def read(self, locator: Locator) -> str:
        return "\n".join(super().read(locator).splitlines())


class DropsByteOrderMarks(MemoryBackend):
    def read(self, locator: Locator) -> str:
        return super().read(locator).removeprefix("\ufeff")


class StopsAtNul(MemoryBackend):
    def read(self, locator: Locator) -> str:
        return super().read(locator).partition("\0")[0]


class ReadsNothingAsEmpty(MemoryBackend):
    def read(self, locator: Locator) -> str:
        return super().read(locator) if self.exists(locator) else ""


class ReadsDirectoriesAsEmpty(MemoryBackend):
    def read(self, locator: Locator) -> str:
        return "" if is_directory(self, locator) else super().read(locator)


class AbsentAndInvalidError(AbsentError, InvalidLocatorError): ...


class CallsTheAbsentInvalid(MemoryBackend):
    def read(self, locator: Locator) -> str:
        if not self.exists(locator):
            raise AbsentAndInvalidError(locator.key)
        return super().read(locator)


class LetsTheKernelsErrorsThrough(DeviceLocalBackend):
    def read(self, locator: Locator) -> str:
        return Path(self.whereabouts, locator.key).read_bytes().decode()


# ---------------------------------------------------------------- write


class ComposesTexts(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, unicodedata.normalize("NFC", content), expect=expect)


class CutsLongTexts(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, content[:65_536], expect=expect)


class EndsTextsWithANewline(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, content.removesuffix("\n") + "\n", expect=expect)


class WriteReturnsTheDirectory(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, content, expect=expect).parent


class OverwritesTheBeginningOnly(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        end = self._texts.get(locator, b"")[len(content) :].decode()
        return super().write(locator, content + end, expect=expect)


class KeepsABackupBeside(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        super().write(locator.parent.child(f"{locator.name}~"), content)
        return super().write(locator, content, expect=expect)


class WantsDirectoriesFirst(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if not self.exists(locator.parent):
            raise FileNotFoundError(locator.parent.key)
        return super().write(locator, content, expect=expect)


class GivesAllKeysOneText(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        for other in tuple(self._texts):
            super().write(other, content)
        return super().write(locator, content, expect=expect)


class WritesOverEmptyDirectories(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if is_directory(self, locator):
            self.remove(locator)
        return super().write(locator, content, expect=expect)


class WritesTheRootElsewhere(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(Locator(locator.key or "index.md"), content, expect=expect)


class ReplacesTheTextAbove(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if locator.parent in self._texts:
            self.remove(locator.parent)
        return super().write(locator, content, expect=expect)


class LooksOnlyOneStepUp(MemoryBackend):
    def _missing_directories(self, locator: Locator) -> Sequence[Locator]:
        if locator.parent in self._texts:
            return [locator]
        return super()._missing_directories(locator)


class ReplacesHalfCharacters(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, content.encode(errors="replace").decode(), expect=expect)


class LeavesDirectoriesBehind(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.mkdir(locator.parent)
        return super().write(locator, content, expect=expect)


class WritesAnythingAsText(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, str(content), expect=expect)


class RefusesLongNames(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if len(locator.name) > 143:
            raise OSError(errno.ENAMETOOLONG, locator.name)
        return super().write(locator, content, expect=expect)


class CutsLongNames(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        super().write(locator.parent.child(locator.name[:200]), content, expect=expect)
        return locator

    def read(self, locator: Locator) -> str:
        return super().read(locator.parent.child(locator.name[:200]))


class ReplacesOddCharacters(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(Locator(re.sub(r"[*?<>|:]", "_", locator.key)), content, expect=expect)


class TrimsNames(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(Locator(locator.key.strip()), content, expect=expect)


class UnquotesKeys(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(Locator(unquote(locator.key)), content, expect=expect)


# ---------------------------------------------------------------- list


class ListsEverythingBelow(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return sorted(at for at in self._mtimes if locator.contains(at) and at != locator)


class ListsByPrefix(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        depth = len(locator.parts) + 1
        same = (at for at in self._mtimes if at.key.startswith(locator.key))
        return sorted(at for at in same if len(at.parts) == depth)


class ListsUnsorted(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return [*self._children(locator)]


class ListsIgnoringCase(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return sorted(super().list(locator), key=lambda child: child.key.casefold())


class ListsNoDirectories(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return [child for child in super().list(locator) if child in self._texts]


class ListsAnEmptyDirectoryAsItself(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return super().list(locator) or [locator]


class ListsATextAsItself(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return [locator] if locator in self._texts else super().list(locator)


class RefusesToListNothing(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        if not self.exists(locator):
            raise FileNotFoundError(locator.key)
        return super().list(locator)


class LooseLocator(Locator):
    __slots__ = ()

    def child(self, *parts: str) -> Locator:
        return forged("/".join((self.key, *parts)))


class ListsLooseLocators(MemoryBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return [LooseLocator(child.key) for child in super().list(locator)]


# ---------------------------------------------------------------- exists and info


class SeesNoDirectories(MemoryBackend):
    def exists(self, locator: Locator) -> bool:
        return not locator.key or locator in self._texts


class SeesEveryPrefix(MemoryBackend):
    def exists(self, locator: Locator) -> bool:
        return any(at.key.startswith(locator.key) for at in self._mtimes)


class DoubtsItsRoot(MemoryBackend):
    def exists(self, locator: Locator) -> bool:
        return bool(locator.key) and super().exists(locator)


class CountsCharacters(MemoryBackend):
    def info(self, locator: Locator) -> Info:
        text = self._texts.get(locator, b"").decode()
        return replace(super().info(locator), size=len(text))


class WeighsDirectories(MemoryBackend):
    def info(self, locator: Locator) -> Info:
        info = super().info(locator)
        return replace(info, size=4096) if info.is_dir else info


class TellsMilliseconds(MemoryBackend):
    def info(self, locator: Locator) -> Info:
        info = super().info(locator)
        return replace(info, mtime=info.mtime * 1000)


class TellsWholeSeconds(MemoryBackend):
    def info(self, locator: Locator) -> Info:
        info = super().info(locator)
        return replace(info, mtime=int(info.mtime))


class ReportsCreationTime(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        created = self._mtimes.get(locator)
        super().write(locator, content, expect=expect)
        self._mtimes[locator] = created or self._mtimes[locator]
        return locator


class DescribesNothing(MemoryBackend):
    def info(self, locator: Locator) -> Info:
        if not self.exists(locator):
            return Info(locator, is_dir=False, size=0, mtime=0.0)
        return super().info(locator)


class DescribesAPath(MemoryBackend):
    def info(self, locator: Locator) -> Info:
        return replace(super().info(locator), locator=Path(locator.key))  # type: ignore[arg-type]


# ---------------------------------------------------------------- mkdir


class MkdirMakesNothing(MemoryBackend):
    def mkdir(self, locator: Locator) -> Locator:
        return locator


class MkdirReturnsTheDirectoryAbove(MemoryBackend):
    def mkdir(self, locator: Locator) -> Locator:
        return super().mkdir(locator).parent


class MkdirReturnsAPath(MemoryBackend):
    def mkdir(self, locator: Locator) -> Locator:
        return Path(super().mkdir(locator).key)  # type: ignore[return-value]


class MkdirWorksOnlyOnce(MemoryBackend):
    def mkdir(self, locator: Locator) -> Locator:
        if self.exists(locator):
            raise FileExistsError(locator.key)
        return super().mkdir(locator)


class MkdirEmptiesTheDirectory(MemoryBackend):
    def mkdir(self, locator: Locator) -> Locator:
        clear(self, locator)
        return super().mkdir(locator)


class MkdirReplacesTexts(MemoryBackend):
    def mkdir(self, locator: Locator) -> Locator:
        if locator in self._texts:
            self.remove(locator)
        return super().mkdir(locator)


class MkdirTakesAboveForThere(MemoryBackend):
    def mkdir(self, locator: Locator) -> Locator:
        try:
            return super().mkdir(locator)
        except NotADirectoryError as error:
            raise FileExistsError(locator.key) from error


# ---------------------------------------------------------------- remove


class RemoveDoesNothing(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        pass


class RemovesTheNeighboursToo(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        for neighbour in self.list(locator.parent):
            super().remove(neighbour, expect=expect)


class RemovesWhatIsNotThere(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        if self.exists(locator):
            super().remove(locator, expect=expect)


class RemovesTextsOnly(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        if is_directory(self, locator):
            raise IsADirectoryError(locator.key)
        super().remove(locator, expect=expect)


class RemovesEmptyDirectoriesAbove(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        super().remove(locator, expect=expect)
        if locator.parent.key and not self.list(locator.parent):
            self.remove(locator.parent)


class ForgetsDirectoriesWithTheirLastText(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        was_text = locator in self._texts
        super().remove(locator, expect=expect)
        if was_text and locator.parent.key and not self.list(locator.parent):
            super().remove(locator.parent)


class RemovesNonEmptyDirectories(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        clear(self, locator)
        super().remove(locator, expect=expect)


class RemovesTheRoot(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        if locator.key:
            super().remove(locator, expect=expect)
        else:
            clear(self, locator)


# ---------------------------------------------------------------- promises


class PromisesWritersItHasNot(MemoryBackend):
    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(concurrent_writers=True)


class HidesItsWriters(DeviceLocalBackend):
    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()


class PromisesInItsOwnWords(MemoryBackend):
    @property
    def capabilities(self) -> Capabilities:
        return {"concurrent_writers": False}  # type: ignore[return-value]


class SurfacesCopiesItHasNot(MemoryBackend):
    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return ConflictStrategy.SURFACE


class HidesItsStrategy(VaultBackend):
    @property
    def conflict_strategy(self) -> ConflictStrategy:
        return ConflictStrategy.REFUSE


class OpensAnotherFolderEachTime(DeviceLocalBackend):
    def __init__(self, root: str, home: str) -> None:
        super().__init__(f"{root}-{uuid4()}", home)


# ---------------------------------------------------------------- conditions


class IgnoresExpectation(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        return super().write(locator, content)


class NeverExpectsNothing(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if expect is ABSENT:
            raise ConcurrentModificationError(locator.key)
        return super().write(locator, content, expect=expect)


class TakesEmptyForAbsent(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        meets = expect is ABSENT and not self._texts.get(locator)
        return super().write(locator, content, expect=None if meets else expect)


class TakesAbsenceForAnyText(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        meets = expect is not ABSENT and not self.exists(locator)
        return super().write(locator, content, expect=None if meets else expect)


class HashesTranslatedTexts(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        found = self._texts.get(locator)
        check_found(found and found.replace(b"\r\n", b"\n"), expect, locator)
        return super().write(locator, content)


class WritesBeforeItCompares(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        found = self._texts.get(locator)
        super().write(locator, content)
        check_found(found, expect, locator)
        return locator


class TakesAnyCondition(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        check_found(self._texts.get(locator), expect, locator)
        return super().write(locator, content)


class TakesHashesInCapitals(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        lowered = expect.lower() if isinstance(expect, str) else expect
        return super().write(locator, content, expect=lowered)


class CallsEveryRefusalAConflict(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        try:
            return super().write(locator, content, expect=expect)
        except OSError as error:
            raise ConcurrentModificationError(locator.key) from error


class ChecksThenWritesWithoutLock(MemoryBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        check_found(self._texts.get(locator), expect, locator)
        time.sleep(A_MOMENT)
        return super().write(locator, content)


class RemovesNothingConditionally(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        if expect is None:
            super().remove(locator)


class RemovesAnyText(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        super().remove(locator)


class RemovesOnAnyCondition(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_found(self._texts.get(locator), expect, locator)
        super().remove(locator)


class CallsTheGoneAbsent(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        if not self.exists(locator):
            raise FileNotFoundError(locator.key)
        super().remove(locator, expect=expect)


class RemovesAbsence(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        if expect is not ABSENT or self.exists(locator):
            super().remove(locator, expect=expect)


class ComparesDirectoriesAsEmpty(MemoryBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        meets = is_directory(self, locator) and expect == content_hash("")
        super().remove(locator, expect=None if meets else expect)


# ---------------------------------------------------------------- several texts

Changes = Mapping[Locator, str | None]
Conditions = Mapping[Locator, Expectation] | None


class ScansTheTopOnly(MemoryBackend):
    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        return islice(super().scan(directory, skip=skip), 1)


class ScansBackwards(MemoryBackend):
    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        first, *others = super().scan(directory, skip=skip)
        return iter((first, *reversed(others)))


class ScansWhatIsSkipped(MemoryBackend):
    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        return super().scan(directory, skip=lambda key: skip(key) and False)


class StampsSizes(MemoryBackend):
    def scan(self, directory: Locator = ROOT, *, skip: Skip = lambda _: False) -> Iterator[Listing]:
        for here, stamps in super().scan(directory, skip=skip):
            sizes = {name: self.info(here.child(name)).size for name in stamps or ()}
            yield Listing(here, {name: str(size).encode() for name, size in sizes.items()})


class LeavesEmptyTextsOut(MemoryBackend):
    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        return {name: text for name, text in super().read_all(directory, names).items() if text}


class TellsOfTheAbsentAsEmpty(MemoryBackend):
    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        return {**dict.fromkeys(names, ""), **super().read_all(directory, names)}


class ReadsAllThatIsThere(MemoryBackend):
    def read_all(self, directory: Locator, names: Iterable[str]) -> dict[str, str]:
        return super().read_all(directory, [child.name for child in self.list(directory)])


class ChangesTheFirstOnly(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        super().write_all(dict(islice(changes.items(), 1)))


class TrimsSeveralTexts(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        super().write_all({at: text and text.strip() for at, text in changes.items()})


class WantsDirectoriesForSeveral(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator in changes:
            if not self.exists(locator.parent):
                raise FileNotFoundError(locator.parent.key)
        super().write_all(changes, expect=expect)


class WritesSeveralUnderPlainNames(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator, text in changes.items():
            plain = Locator(locator.key.encode("ascii", "replace").decode())
            super().write_all({plain: text})


class WantsSomethingToChange(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        first = next(iter(changes))
        super().write_all({first: changes[first], **changes}, expect=expect)


class StopsAfterAHundred(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        super().write_all(dict(islice(changes.items(), 100)))


class EmptiesWhatItShouldRemove(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        super().write_all({at: text or "" for at, text in changes.items()}, expect=expect)


class RemovesOnlyWhatIsThere(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator, text in changes.items():
            if text is None and not self.exists(locator):
                raise FileNotFoundError(locator.key)
        super().write_all(changes, expect=expect)


class RemovesDirectoriesAmongSeveral(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator, text in changes.items():
            if text is None:
                clear(self, locator)
                self.remove(locator)


class MeetsNoConditions(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        if expect:
            raise ConcurrentModificationError("it is never as expected")
        super().write_all(changes)


class IgnoresConditionsOfSeveral(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        super().write_all(changes)


class ChecksSeveralOneByOne(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator, text in changes.items():
            condition = (expect or {}).get(locator)
            if text is None:
                self.remove(locator, expect=condition)
            else:
                self.write(locator, text, expect=condition)


class ComparesSeveralWithoutLock(MemoryBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator, condition in (expect or {}).items():
            check_found(self._texts.get(locator), condition, locator)
        time.sleep(A_MOMENT)
        super().write_all(changes)


class ComparesSeveralOutsideTheLock(DeviceLocalBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator, condition in (expect or {}).items():
            check_found(self.read(locator).encode(), condition, locator)
        time.sleep(A_MOMENT)
        super().write_all(changes)


class WritesSeveralInKeyOrder(DeviceLocalBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        for locator in sorted(changes):
            super().write_all({locator: changes[locator]})
            time.sleep(A_MOMENT)


class LeavesSeveralUnfinished(DeviceLocalBackend):
    def write_all(self, changes: Changes, *, expect: Conditions = None) -> None:
        folder = Path(self.whereabouts, next(iter(changes)).parent.key)
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = folder / f"{uuid4()}{TEMPORARY_SUFFIX}"
        unfinished.touch()
        super().write_all(changes, expect=expect)
        unfinished.unlink()


# ---------------------------------------------------------------- several processes


class ComparesOutsideTheLock(DeviceLocalBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if expect is not None:
            check_found(self.read(locator).encode(), expect, locator)
            time.sleep(A_MOMENT)
        return super().write(locator, content)


class LooksBeforeItCreates(DeviceLocalBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if expect is ABSENT:
            check_found(b"" if self.exists(locator) else None, expect, locator)
            time.sleep(A_MOMENT)
        return super().write(locator, content)


class LooksBeforeItRemoves(DeviceLocalBackend):
    def remove(self, locator: Locator, *, expect: Expectation = None) -> None:
        check_found(b"prize" if self.exists(locator) else None, expect, locator)
        time.sleep(A_MOMENT)
        Path(self.whereabouts, locator.key).unlink(missing_ok=True)


class YieldsToOthers(DeviceLocalBackend):
    """Leaves a folder to the process that wrote there before."""

    def __init__(self, root: str, home: str) -> None:
        super().__init__(root, home)
        self._mine: set[Locator] = set()

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if self._mine.issuperset(self.list(locator.parent)):
            self._mine.add(locator)
            super().write(locator, content, expect=expect)
        return locator


class KeepsItsIndexWithoutLock(DeviceLocalBackend):
    index = Locator("index")

    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        known = self.read(self.index) if self.exists(self.index) else ""
        super().write(locator, content, expect=expect)
        super().write(self.index, f"{known}{locator}\n")
        return locator

    def list(self, locator: Locator) -> list[Locator]:
        return [Locator(key) for key in self.read(self.index).splitlines()]


class WritesInPlace(DeviceLocalBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        self.mkdir(locator.parent)
        with Path(self.whereabouts, locator.key).open("wb", buffering=0) as file:
            pieces = (content[start : start + 32] for start in range(0, len(content), 32))
            file.writelines(piece.encode() for piece in pieces)
        return locator


class RemovesBeforeItWrites(DeviceLocalBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        if self.exists(locator):
            self.remove(locator)
        return super().write(locator, content, expect=expect)


class LeavesUnfinishedFiles(DeviceLocalBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        unfinished = Path(self.whereabouts, f"{uuid4()}{TEMPORARY_SUFFIX}")
        self.mkdir(ROOT)
        unfinished.touch()
        super().write(locator, content, expect=expect)
        unfinished.unlink()
        return locator


class IsOutlivedByItsLock(DeviceLocalBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        lock = Path(f"{self.whereabouts}.lock")
        lock.touch(exist_ok=False)
        super().write(locator, content, expect=expect)
        lock.unlink()
        return locator


# ---------------------------------------------------------------- conflict copies


class SaysNothingOfCopies(VaultBackend):
    def findings(self, locator: Locator) -> Sequence[Finding]:
        return FolderBackend.findings(self, locator)


class KnowsMarkedCopiesOnly(VaultBackend):
    def findings(self, locator: Locator) -> Sequence[Finding]:
        return [found for found in super().findings(locator) if marked_original(found.name)]


class NamesNoOriginal(VaultBackend):
    def findings(self, locator: Locator) -> Sequence[Finding]:
        return [replace(found, original=None) for found in super().findings(locator)]


class GivesNoAdvice(VaultBackend):
    def findings(self, locator: Locator) -> Sequence[Finding]:
        return [replace(found, advice="") for found in super().findings(locator)]


class SweepsCopiesAway(VaultBackend):
    def findings(self, locator: Locator) -> Sequence[Finding]:
        found = super().findings(locator)
        for each in found:
            self.remove(locator.child(each.name))
        return found


class SettlesCopiesItself(VaultBackend):
    def write(self, locator: Locator, content: str, *, expect: Expectation = None) -> Locator:
        for found in self.findings(locator.parent):
            super().write(locator.parent.child(found.name), content)
        return super().write(locator, content, expect=expect)


class HidesCopies(VaultBackend):
    def list(self, locator: Locator) -> list[Locator]:
        return [child for child in super().list(locator) if not marked_original(child.name)]


class ComparesNoTexts(VaultBackend):
    def _text_or_none(self, locator: Locator) -> str:
        return "the same for all"


# ---------------------------------------------------------------- maintenances


class ReindexesNothing(MirrorMaintenance):
    def reindex(self, tier: Tier) -> None:
        pass


class ReplaysACachedCopy(MirrorMaintenance):
    def __init__(self, backend: StorageBackend, layout: TierLayout) -> None:
        super().__init__(backend, layout)
        self._copies: dict[Tier, dict[Locator, str]] = {}

    def reindex(self, tier: Tier) -> None:
        if tier not in self._copies:
            super().reindex(tier)
            texts = walk(self._backend, self._layout.root_for(tier))
            self._copies[tier] = {text: self._backend.read(text) for text in texts}
        for text, content in self._copies[tier].items():
            self._backend.write(text, content)


class LeavesOrphans(MirrorMaintenance):
    def reindex(self, tier: Tier) -> None:
        before = list(walk(self._backend, self._layout.root_for(tier)))
        retained = {text: self._backend.read(text) for text in before}
        super().reindex(tier)
        for text in retained.keys() - set(walk(self._backend, self._layout.root_for(tier))):
            self._backend.write(text, retained[text])


class StampsTheSource(MirrorMaintenance):
    def reindex(self, tier: Tier) -> None:
        super().reindex(tier)
        self._backend.write(self._layout.source.child("stamp.md"), "reindexed")


class AcceptsTheSource(MirrorMaintenance):
    def reindex(self, tier: Tier) -> None:
        if tier.derived:
            super().reindex(tier)


class ClearsBeforeItRefuses(MirrorMaintenance):
    def reindex(self, tier: Tier) -> None:
        clear(self._backend, self._layout.root_for(tier))
        super().reindex(tier)


class TakesTheSameTimeForNewer(MirrorMaintenance):
    def changed_since(self, mtime: float) -> list[Locator]:
        return sorted(text for text in self._source() if self._backend.info(text).mtime >= mtime)


class TellsOfChangesUnsorted(MirrorMaintenance):
    def changed_since(self, mtime: float) -> list[Locator]:
        return [text for text in self._source() if self._backend.info(text).mtime > mtime]


class TellsOfEverythingAlways(MirrorMaintenance):
    def changed_since(self, mtime: float) -> list[Locator]:
        return super().changed_since(0.0)


class TakesTheDerivedForSource(MirrorMaintenance):
    def changed_since(self, mtime: float) -> list[Locator]:
        everything = walk(self._backend, ROOT)
        return sorted(text for text in everything if self._backend.info(text).mtime > mtime)


def is_directory(backend: StorageBackend, locator: Locator) -> bool:
    return backend.exists(locator) and backend.info(locator).is_dir
