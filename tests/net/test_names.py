"""Public names, their signatures and the tree of errors are as recorded."""

from tests.net.names import lines_of_answers, lines_of_errors, lines_of_packages
from tests.net.recording import same_as_recorded


def test_public_names_and_signatures_are_as_recorded() -> None:
    lines = [
        "# What the packages with __all__ offer.",
        *lines_of_packages(),
        "",
        "# What perdure.open gives, and what its verbs return.",
        *lines_of_answers(),
        "",
        "# Every error.",
        *lines_of_errors(),
    ]

    same_as_recorded("names.txt", "\n".join(lines) + "\n")
