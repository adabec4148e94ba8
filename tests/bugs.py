"""Bugs that are kept as data and planted in copies of kernels' sources: *.bugs beside the tests that must notice them.

A line "of WORDS" holds for the bugs behind it.  "bug NAME" begins one, lines "KEY WORDS" belong to it; "-" lines are the old text, found
exactly once, "+" lines the new."""
import os

from script import check


def read(path):
    """A dictionary for each: its keys, "of" and lists "old" and "new"."""
    found, of = [], None
    with open(path, encoding="utf-8") as lines:
        for line in lines.read().splitlines():
            word, _, rest = line.partition(" ")
            if word == "of":
                of = rest.split()
            elif word == "bug":
                found.append({"bug": rest.strip(), "of": of, "old": [], "new": []})
            elif line[:1] in ("-", "+"):
                found[-1]["old" if line[0] == "-" else "new"].append(line[1:])
            elif line and not line.startswith("#"):
                found[-1][word] = rest.strip()
    return found


def plant(bug, tree):
    """Changes the bug's file below `tree`; returns its text as it was."""
    path = os.path.join(tree, bug["file"])
    with open(path, encoding="utf-8") as file:
        text = file.read()
    old, new = "\n".join(bug["old"]), "\n".join(bug["new"])
    check(text.count(old) == 1, "%s: old text found %d times" % (bug["bug"], text.count(old)))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new))
    return text
