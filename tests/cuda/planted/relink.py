"""Links a test program once more, with another table of embedded kernels in front of the library's."""
import os
import re
import shlex
import subprocess

SOURCE = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))


def name_of(kernels):
    """sm90/kernels/shared_memory_small: what embedded.c calls it."""
    return re.sub(r"\W", "_", kernels)


def fatbins(build):
    """{name: path} of the files of kernels that the build carries."""
    with open(os.path.join(build, "src", "cuda", "embedded.c"), encoding="utf-8") as file:
        return {os.path.basename(path)[:-len(".fatbin")]: path
                for path in re.findall(r'^EMBED\(\w+, "([^"]*\.fatbin)"', file.read(), re.M)}


def fatbin_instead(text, kernels, fatbin):
    """embedded.c with another fatbin of one file of kernels."""
    text, count = re.subn(r'"[^"]*%s\.fatbin"' % name_of(kernels), '"%s"' % fatbin, text)
    assert count == 1
    return text


def without(text, kernels):
    """embedded.c without one file of kernels."""
    text, count = re.subn(r'(?m)^(EMBED\(%s, .*|    \{ "%s", .*)\n' % (name_of(kernels), kernels), "", text)
    assert count == 2
    return text


def relink(build, program, folder, change):
    """PROGRAM in the folder, with embedded.c as change(its text) makes it."""
    with open(os.path.join(build, "src", "cuda", "embedded.c"), encoding="utf-8") as file:
        text = change(file.read())
    source, object_file, to = (os.path.join(folder, name) for name in ("embedded.c", "embedded.o", program))
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    subprocess.run(["cc", "-c", "-I%s/src" % SOURCE, "-o", object_file, source], check=True)
    with open(os.path.join(build, "tests", "cuda", "CMakeFiles", program + ".dir", "link.txt"),
              encoding="utf-8") as file:
        command = shlex.split(file.read())
    at = command.index("-o")
    command[at:at + 2] = [object_file, "-o", to]
    subprocess.run(command, cwd=os.path.join(build, "tests", "cuda"), check=True)
    return to
