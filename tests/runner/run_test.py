#!/usr/bin/env python3
"""tests/run itself: what it must call a failure."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import script

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "run")


def runner(lines, *options):
    """Exit status and last line of a run over a list of "NAME SECONDS SHELL" lines."""
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "tests"))
        path = os.path.join(folder, "tests", "list.txt")
        with open(path, "w", encoding="utf-8") as out:
            for name, seconds, shell in lines:
                out.write(f"{name} {seconds} sh -c '{shell}'\n")
        done = subprocess.run([sys.executable, RUNNER, *options, path], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.strip().splitlines()[-1], done.stdout


GOOD = ("good", 5, 'echo "good: 3 passed, 0 failed, 0 skipped"')


def expect(lines, status, last, *options):
    got_status, got_last, everything = runner(lines, *options)
    script.check((got_status, got_last) == (status, last), f"got {got_status} \"{got_last}\", want {status} \"{last}\":\n{everything}")


def adds_up(): expect([GOOD, ("two", 5, 'echo "two: 4 passed, 0 failed"')], 0, "7 passed, 0 failed")
def counts_skipped(): expect([GOOD, ("s", 5, 'echo "s: 1 passed, 0 failed, 2 skipped"')], 0, "4 passed, 0 failed")
def failed_case(): expect([GOOD, ("f", 5, 'echo "f: 1 passed, 2 failed, 0 skipped"; exit 1')], 1, "4 passed, 2 failed")
def failed_case_with_status_0(): expect([("f", 5, 'echo "f: 1 passed, 1 failed, 0 skipped"')], 1, "1 passed, 2 failed")
def status_without_failure(): expect([("f", 5, 'echo "f: 2 passed, 0 failed, 0 skipped"; exit 3')], 1, "2 passed, 1 failed")
def crash(): expect([GOOD, ("c", 5, 'echo "c: 1 passed, 0 failed, 0 skipped"; kill -SEGV $$')], 1, "4 passed, 1 failed")
def silence(): expect([GOOD, ("quiet", 5, "true")], 1, "3 passed, 1 failed")
def another_name(): expect([("a", 5, 'echo "b: 1 passed, 0 failed, 0 skipped"')], 1, "1 passed, 1 failed")
def listed_again(): expect([("p_way", 5, 'echo "p: 1 passed, 0 failed, 0 skipped"')], 0, "1 passed, 0 failed")
def name_of_another_way(): expect([("p", 5, 'echo "p_way: 1 passed, 0 failed, 0 skipped"')], 1, "1 passed, 1 failed")
def begins_alike(): expect([("pq", 5, 'echo "p: 1 passed, 0 failed, 0 skipped"')], 1, "1 passed, 1 failed")
def nothing_ran(): expect([("n", 5, 'echo "n: 0 passed, 0 failed, 0 skipped"')], 1, "0 passed, 1 failed")
def only_skipped(): expect([("n", 5, 'echo "n: 0 passed, 0 failed, 1 skipped"')], 1, "0 passed, 0 failed")
def empty_list(): expect([], 1, "0 passed, 0 failed")
def no_name_matches(): expect([GOOD], 1, "0 passed, 0 failed", "--only", "bad")
def missing_program(): script.check(runner([("m", 5, "exec /no/such/program")])[0] == 1, "a missing program must fail")
def deadline(): expect([GOOD, ("slow", 0.3, "sleep 30")], 1, "3 passed, 1 failed")
def deadline_kills_children(): expect([("slow", 0.3, "sleep 30 & wait")], 1, "0 passed, 1 failed")


def says_what_is_skipped_and_what_it_cost():
    text = runner([GOOD, ("s", 5, 'echo "  c: skipped: no GPU" >&2; echo "s: 1 passed, 0 failed, 2 skipped"')])[2]
    for piece in ("c: skipped: no GPU", "\n2 skipped\n", "processor", "most of them: "):
        script.check(piece in text, f"no \"{piece}\" in:\n{text}")


def shows_output_and_command():
    text = runner([("f", 5, 'echo out; echo err >&2; echo "f: 0 passed, 1 failed, 0 skipped"; exit 1')])[2]
    for piece in ("| out", "| err", "again: cd ", "FAILED f"):
        script.check(piece in text, f"no \"{piece}\" in:\n{text}")


script.cases("runner", [adds_up, counts_skipped, failed_case, failed_case_with_status_0, status_without_failure, crash, silence,
                        another_name, listed_again, name_of_another_way, begins_alike, nothing_ran, only_skipped, empty_list,
                        no_name_matches, missing_program, deadline,
                        deadline_kills_children, says_what_is_skipped_and_what_it_cost, shows_output_and_command])
