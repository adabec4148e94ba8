#!/usr/bin/env python3
"""Text of Debian's documentation in one file, for training small language models (bench/train_gpt.py).

Packages are fetched by apt-get and unpacked into a folder; nothing is installed.  HTML loses its tags, lines keep their
breaks, and what is not ASCII is left out, so that bytes are letters.

    python3 bench/debian_text.py --out build/debian.txt              fetches, unpacks, writes some megabytes
    python3 bench/debian_text.py --root / --out build/debian.txt     what is installed here, without a network
"""

import argparse
import gzip
import hashlib
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile

PACKAGES = ("debian-policy", "doc-debian", "developers-reference", "debian-faq", "debian-reference-en", "git-doc",
            "maint-guide", "debmake-doc", "installation-guide-amd64", "debian-handbook", "bash-doc")
# Other languages, indices, and the licence that each package repeats.
LEFT_OUT = re.compile(r"\.(?!en\b)[a-z]{2}(-[a-z]+)?\.(html|txt)|/(?!en)[a-z]{2}(-[A-Z][A-Z])?/|_sources|genindex|"
                      r"copyright|changelog|NEWS|search\.html")


class Text(html.parser.HTMLParser):
    """Collects the text of a page without scripts, styles and navigation."""

    SILENT = {"script", "style", "head", "nav", "svg"}
    BREAKS = {"p", "div", "li", "tr", "br", "h1", "h2", "h3", "h4", "dt", "dd", "pre", "table"}

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.silent += tag in self.SILENT
        if tag in self.BREAKS:
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self.silent -= tag in self.SILENT and self.silent > 0

    def handle_data(self, data: str) -> None:
        if not self.silent:
            self.parts.append(data)


def read(path: pathlib.Path) -> str:
    """The text of one page, tidied: no tags, no runs of blank lines, ASCII."""
    data = gzip.open(path).read() if path.suffix == ".gz" else path.read_bytes()
    text = data.decode("utf-8", "replace")
    if ".html" in path.name:
        parser = Text()
        parser.feed(text)
        text = "".join(parser.parts)
    text = text.translate({0x2018: "'", 0x2019: "'", 0x201c: '"', 0x201d: '"', 0x2013: "-", 0x2014: "-", 0xa0: " "})
    text = text.encode("ascii", "ignore").decode()
    text = re.sub(r"[^\n\x20-\x7e]", " ", text)
    text = re.sub(r" +(?=\n)", "", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    """Every page below usr/share/doc and usr/share/debian-reference in a fixed order."""
    found = []
    for folder in ("usr/share/doc", "usr/share/debian-reference", "usr/share/developers-reference"):
        for path in sorted((root / folder).rglob("*")):
            name = str(path.relative_to(root))
            if path.is_file() and re.search(r"\.(html|txt)(\.gz)?$", name) and not LEFT_OUT.search("/" + name):
                found.append(path)
    return found


def fetch(folder: pathlib.Path) -> None:
    """Downloads the packages by apt-get and unpacks them below folder."""
    for package in PACKAGES:
        done = subprocess.run(["apt-get", "download", package], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            print(f"debian_text.py: {package} is left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
    for archive in sorted(folder.glob("*.deb")):
        subprocess.run(["dpkg", "-x", str(archive), str(folder)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the text file")
    parser.add_argument("--root", type=pathlib.Path, help="a folder with usr/share/doc instead of fetching packages")
    parser.add_argument("--megabytes", type=float, default=12.0, help="the most to write (default 12)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = options.root or pathlib.Path(scratch)
        if options.root is None:
            fetch(root)
        seen: set[bytes] = set()
        parts = []
        for path in pages(root):
            text = read(path)
            digest = hashlib.sha256(text.encode()).digest()
            if len(text) > 400 and digest not in seen:   # the same page lies in several places
                seen.add(digest)
                parts.append((digest, text))
    if not parts:
        print("debian_text.py: no pages were found", file=sys.stderr)
        return 1
    # Pages in the order of their digests: training and validation parts of the file then have pages of every package.
    text = "\n".join(part for _, part in sorted(parts))[:int(options.megabytes * 1e6)]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    print(f"{options.out}: {len(parts)} pages, {len(text) / 1e6:.1f} megabytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
