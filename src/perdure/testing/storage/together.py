"""Reading several texts of a directory at once says what reading each would."""

from perdure.storage import Locator, StorageBackend
from perdure.testing.storage.base import FOLDER, ROOT, StorageSuite


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
