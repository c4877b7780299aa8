"""Reading several texts at once says what reading each would; a scan meets all of them."""

from perdure.storage import Locator, StorageBackend
from perdure.testing.storage.base import FOLDER, NOTE, ROOT, StorageSuite


class ReadAllTests(StorageSuite):
    def test_read_all_returns_the_texts_by_name(self, backend: StorageBackend) -> None:
        texts = {"a.md": "a", "b.md": "b\r\n", ".c": "", "d é.md": "é"}
        for name, text in texts.items():
            backend.write(FOLDER.child(name), text)

        assert backend.read_all(FOLDER, texts) == texts

    def test_read_all_leaves_out_what_is_no_text_there(self, backend: StorageBackend) -> None:
        backend.write(FOLDER.child("a.md"), "a")
        backend.write(FOLDER.child("below", "b.md"), "b")

        found = backend.read_all(FOLDER, ["absent.md", "below", "a.md", ".."])

        assert found == {"a.md": "a"}
        assert backend.read_all(Locator("nowhere"), ["a.md"]) == {}
        assert backend.read_all(FOLDER.child("a.md"), ["a.md"]) == {}

    def test_read_all_reads_only_what_is_asked_for(self, backend: StorageBackend) -> None:
        backend.write(Locator("a.md"), "a")
        backend.write(Locator("b.md"), "b")

        assert backend.read_all(ROOT, ["b.md"]) == {"b.md": "b"}
        assert backend.read_all(ROOT, []) == {}


def scanned(backend: StorageBackend, directory: Locator = ROOT) -> dict[str, bytes]:
    """Return the stamp of each text below a directory, by its key."""
    return {
        here.child(name).key: stamp
        for here, stamps in backend.scan(directory)
        for name, stamp in (stamps or {}).items()
    }


class ScanTests(StorageSuite):
    def test_scan_meets_every_text_once(self, backend: StorageBackend) -> None:
        keys = ["a.md", "b/c.md", "b/d é.md", "b/e/.f", "b.md"]
        for key in keys:
            backend.write(Locator(key), key)
        backend.mkdir(Locator("empty"))

        assert sorted(scanned(backend)) == sorted(keys)
        assert sorted(scanned(backend, Locator("b"))) == ["b/c.md", "b/d é.md", "b/e/.f"]
        assert scanned(backend, Locator("nowhere")) == {}

    def test_scan_meets_directories_in_key_order(self, backend: StorageBackend) -> None:
        for key in ("z.md", "b/x/1.md", "b/a/1.md", "a/1.md", "b-c/1.md"):
            backend.write(Locator(key), key)

        met = [here.key for here, stamps in backend.scan() if stamps]

        assert [each for each in met if each != "b-c"] == ["", "a", "b/a", "b/x"]
        assert "b-c" in met[2:]

    def test_scan_enters_nothing_that_is_skipped(self, backend: StorageBackend) -> None:
        for key in ("a/1.md", "b/2.md", "b/c/3.md"):
            backend.write(Locator(key), key)
        asked: list[str] = []

        def skip(key: str) -> bool:
            asked.append(key)
            return key == "b"

        met = [
            here.child(name).key for here, found in backend.scan(skip=skip) for name in found or ()
        ]
        assert met == ["a/1.md"]
        assert asked == ["a", "b"]

    def test_stamps_tell_contents_apart(self, backend: StorageBackend) -> None:
        """Also those of one size, written within one tick of a clock."""
        stamps = set()
        for text in ("one", "two", "three", "four", "five"):
            backend.write(NOTE, text)
            stamp = scanned(backend)[NOTE.key]

            assert not stamp or stamp not in stamps
            stamps.add(stamp)
