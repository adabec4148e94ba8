#!/usr/bin/env python3
"""What documents name exists: links and their anchors, paths of the tree, public names, verbs and options."""
import fnmatch
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check

TOP = "src|tests|bench|include|examples|docs|fuzz|abi|scripts|cudasim|gfxsim|simulator|third_party|cmake"
PATH = re.compile(rf"(?<![\w/.<-])((?:{TOP})/[\w./*-]*[\w/*])")
# The simulators' own pages speak of paths from their folder.
SIMULATORS = ("cudasim/", "gfxsim/")
# Paths of other projects.
ELSEWHERE = {"src/ggml-common.h"}
HISTORY = ["CHANGELOG.md", "docs/notes/"]


def listed():
    done = subprocess.run(["git", "-C", SOURCE, "ls-files"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    if done.returncode != 0:
        raise script.Skip("not a checkout of git")
    return [path for path in done.stdout.splitlines() if os.path.exists(os.path.join(SOURCE, path))]


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def pages():
    return [path for path in listed() if path.endswith(".md") and not path.startswith("third_party/")]


def is_history(path):
    return any(path.startswith(name) for name in HISTORY)


def anchors(path):
    """GitHub's: lower case, spaces as dashes, no other punctuation."""
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.S | re.M)
    heads = re.findall(r"^#+ (.*)$", text, flags=re.M)
    plain = [re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", head).lower() for head in heads]
    return {re.sub(r"[^\w -]", "", head).replace(" ", "-") for head in plain}


def links(path):
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.S | re.M)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"\w+:", target):
            yield target


def every_link_has_a_target():
    wrong, seen = [], 0
    for page in pages():
        for target in links(page):
            seen += 1
            path, _, anchor = target.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(SOURCE, to)):
                wrong.append(f"{page}: {target}")
            elif anchor and to.endswith(".md") and anchor not in anchors(to):
                wrong.append(f"{page}: no heading {target}")
    check(seen > 50, f"{seen} links")
    check(not wrong, "; ".join(wrong))


def every_named_path_exists():
    """In documents, and of documents in comments."""
    known = set(listed())
    folders = {folder for path in known for folder in parents(path)}
    wrong, seen = [], 0
    for page in pages():
        for path in [] if is_history(page) else PATH.findall(read(page)):
            here = page[:page.index("/") + 1] + path if page.startswith(SIMULATORS) else path
            seen += 1
            if "NAME" in path or {path, path.rstrip("/"), here, here.rstrip("/")} & (known | folders | ELSEWHERE):
                continue
            if "*" not in path or not fnmatch.filter(known, path):
                wrong.append(f"{page}: {path}")
    for source in known & set(listed()):
        if re.search(r"\.(c|h|cu|cuh|py|in|txt|sh)$|Makefile$", source):
            for path in re.findall(r"(?<![\w/.-])((?:(?:cudasim|gfxsim)/)?docs/[\w/-]+\.md)", read(source)):
                seen += 1
                if not {path, *(folder + path for folder in SIMULATORS)} & known:
                    wrong.append(f"{source}: {path}")
    check(seen > 100, f"{seen} paths")
    check(not wrong, "; ".join(sorted(wrong)))


def parents(path):
    while path:
        path = os.path.dirname(path)
        yield path


def notes_are_linked_from_nowhere():
    linked = [f"{page}: {target}" for page in pages() for target in links(page) if re.search(r"notes/\d", target)]
    check(not linked, "; ".join(linked))


def every_public_name_exists():
    headers = "".join(read(path) for path in listed() if path.startswith("include/"))
    names = set(re.findall(r"\b(?:bsm|BSM)_\w+", headers))
    wrong = set()
    for page in pages():
        if page.startswith(SIMULATORS) or is_history(page):
            continue
        for name in re.findall(r"\b(?:bsm|BSM)_[A-Za-z0-9_]+\b", re.sub(r"#[\w-]+\)", "", read(page))):
            if name not in names and not any(other.startswith(name) for other in names):
                wrong.add(f"{page}: {name}")
    check(not wrong, "; ".join(sorted(wrong)))


script.cases("docs", [every_link_has_a_target, every_named_path_exists, notes_are_linked_from_nowhere,
                      every_public_name_exists])
