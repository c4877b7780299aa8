"""A Markdown viewer that passes HTML on, and what a browser would run or load of it."""

from html.parser import HTMLParser

from markdown_it import MarkdownIt

RUNS = {
    "script",
    "style",
    "iframe",
    "object",
    "embed",
    "svg",
    "math",
    "form",
    "link",
    "meta",
    "base",
}
SCRIPTS = ("javascript:", "vbscript:", "data:text")


class _Browser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.done += [f"runs {tag}"] * (tag in RUNS)
        for name, value in attrs:
            address = "".join((value or "").split()).lower()
            self.done += [f"handles {name}"] * (name.startswith("on") or name == "style")
            self.done += [f"runs {address}"] * address.startswith(SCRIPTS)
            elsewhere = address.startswith(("http:", "https:", "//", "\\\\"))
            self.done += [f"loads {address}"] * (name in {"src", "srcset"} and elsewhere)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_comment(self, data: str) -> None:
        self.done.append(f"hides {data}")


def done_by_viewing(text: str) -> list[str]:
    """Return what is run, loaded or hidden when the text is viewed."""
    browser = _Browser()
    viewer = MarkdownIt("commonmark", {"html": True}).enable("table")
    viewer.validateLink = lambda url: True  # type: ignore[method-assign]
    browser.feed(viewer.render(text))
    browser.close()
    return browser.done
