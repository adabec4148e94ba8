"""What the tests of a simulator's rooms share: which room may include which, circles, sizes."""
import glob
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
import script
from script import check

# What the simulators share; it includes nothing of either.
SHARED = "simulator"
MOST_FILES, MOST_LINES = 25, 650


def cases(name, knows, least, one_thing=()):
    """The cases of the folder `name`: `knows` has for each room those that its files may include beside their own, and
    stands behind all of them; at least so many includes are read; files of one thing may know one another."""
    top = os.path.join(SOURCE, name)

    def sources():
        """Paths of all its files of C but the tests and the fuzz targets, which may include everything."""
        found = glob.glob(os.path.join(top, "**", "*.[ch]"), recursive=True)
        paths = sorted(os.path.relpath(path, top) for path in found)
        return [path for path in paths if not path.startswith(("tests/", "fuzz/"))]

    def includes(path):
        """What the file includes in quotes, as the compiler finds it: beside the file, or from the folder."""
        with open(os.path.join(top, path), encoding="utf-8") as file:
            for header in re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read(), flags=re.M):
                beside = os.path.normpath(os.path.join(os.path.dirname(path), header))
                yield beside if os.path.exists(os.path.join(top, beside)) else header

    def every_room_is_known():
        rooms = {os.path.dirname(path) for path in sources()}
        check(rooms == set(knows), f"rooms without a rule, or rules without a room: {sorted(rooms ^ set(knows))}")

    def rooms_know_only_what_they_may():
        wrong, seen = [], 0
        for path in sources():
            room = os.path.dirname(path)
            for header in includes(path):
                seen += 1
                if os.path.dirname(header) not in (room, SHARED, *knows[room]):
                    wrong.append(f"{path} includes {header}")
        check(seen > least, "hardly any includes were read")
        check(not wrong, "; ".join(wrong))

    def arrows_make_no_circle():
        """Every room stands behind those that it knows."""
        above = []
        for room, known in knows.items():
            late = [other for other in known if other not in above]
            check(not late, f"{room} knows {late}, which stand behind it")
            above.append(room)

    def files_make_no_circle():
        """A header and its .c file count as one."""
        who = {}
        for path in sources():
            who.setdefault(os.path.splitext(path)[0], set()).update(
                os.path.splitext(header)[0] for header in includes(path))
        done = set()

        def walk(at, below):
            circle = set(below[below.index(at):]) if at in below else None
            check(circle is None or any(circle <= thing for thing in one_thing), f"circle: {' > '.join([*below, at])}")
            if circle is None and at not in done:
                for other in sorted(who.get(at, set()) - {at}):
                    walk(other, [*below, at])
                done.add(at)
        for path in sorted(who):
            walk(path, [])

    def folders_and_files_are_short():
        """The tests' folders too."""
        wrong = []
        for place, _, names in os.walk(top):
            if len(names) > MOST_FILES:
                wrong.append(f"{os.path.relpath(place, SOURCE)} has {len(names)} files")
            for file_name in names:
                if file_name.endswith((".c", ".h", ".cu", ".cuh", ".py")):
                    with open(os.path.join(place, file_name), encoding="utf-8") as file:
                        lines = len(file.readlines())
                    if lines > MOST_LINES:
                        wrong.append(f"{os.path.relpath(os.path.join(place, file_name), SOURCE)} has {lines} lines")
        check(not wrong, "; ".join(wrong))

    script.cases(name + "_rooms", [every_room_is_known, rooms_know_only_what_they_may, arrows_make_no_circle,
                                   files_make_no_circle, folders_and_files_are_short])
