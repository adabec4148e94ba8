"""Commands whose results are kept: what b200.py and sm120.py share."""
import json
import os
import platform
import subprocess
import time

SECONDS = 3600                                        # of one command


def run(results, section, command, **about):
    """Runs it, keeps what it said, prints a line."""
    begin = time.time()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                              check=False)
        status, output, errors = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        status, output, errors = "timeout", (late.stdout or b"").decode(errors="replace"), "ended after %d s" % SECONDS
    entry = dict(about, command=[os.path.basename(command[0])] + command[1:], status=status,
                 seconds=round(time.time() - begin, 1))
    if status != 0:
        entry["said"] = (output + errors)[-4000:]
    results.setdefault(section, []).append(entry)
    words = " ".join(entry["command"])[:60]
    print("%-8s %-60s %s, %.0f s" % (section, words, "done" if status == 0 else "status %s" % status, entry["seconds"]),
          flush=True)
    return entry, output


def objects(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def machine(made_by, small, blockscale):
    """Results, with what the machine is."""
    results = {"made_by": made_by, "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
               "host": platform.platform(), "small": small,
               "simulated": "cudasim" in os.environ.get("BLOCKSCALE_LIBCUDA", "")}
    entry, output = run(results, "info", [blockscale, "info", "--json"])
    if entry["status"] == 0:
        entry["output"] = json.loads(output)
    try:
        run(results, "info", ["nvidia-smi", "-q", "-d", "CLOCK,POWER,ECC"])
    except FileNotFoundError:
        results.setdefault("info", []).append({"command": ["nvidia-smi"], "status": "not found"})
    return results


def keep(results, out):
    """Writes them; the commands that ended with another status than 0."""
    with open(out, "w", encoding="utf-8") as file:
        json.dump(results, file, indent=1)
        file.write("\n")
    ran = [e for section in results.values() if isinstance(section, list) for e in section]
    wrong = [e for e in ran if e["status"] not in (0, "not found")]
    print("%s: %d commands, %d with another status than 0" % (out, len(ran), len(wrong)))
    return wrong
