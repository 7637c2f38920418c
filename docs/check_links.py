"""Check the built site without a network: `python docs/check_links.py docs/_build/html`.

Every link inside the site must lead to a file and, if it names one, to an anchor in it. Nothing
that a page needs to be shown (scripts, styles, pictures, fonts) may come from elsewhere.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

RESOURCES = {"audio", "embed", "iframe", "img", "link", "script", "source", "video"}
URL_IN_STYLE = re.compile(r"""url\(\s*["']?(https?:)?//""")


class Page(HTMLParser):
    """The anchors of a page and all addresses in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.resources: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what one element names and needs."""
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        kept = (
            self.resources if tag in RESOURCES and given.get("rel") != "canonical" else self.links
        )
        kept |= {given[name] for name in ("href", "src") if name in given}


def problems(site: Path) -> list[str]:
    """Return what is wrong with a built site, one line each."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text("utf-8")) for path in files}
    anchors = {path: page.anchors for path, page in pages.items()}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for address in sorted(page.links | page.resources):
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                if address in page.resources:
                    found.append(f"{name}: needs {address} from the network")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                found.append(f"{name}: no file {address}")
            elif parts.fragment and unquote(parts.fragment) not in anchors.get(target, ()):
                found.append(f"{name}: no anchor {address}")
    for path in sorted(site.rglob("*.css")):
        if URL_IN_STYLE.search(path.read_text("utf-8", errors="replace")):
            found.append(f"{path.relative_to(site)}: needs a style or font from the network")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]).resolve())
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
