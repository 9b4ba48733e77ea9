"""What part of a step recording is, by counting: for bench/trace.sh.

	trace_share.py HEDDLE EVENTS JOB.yaml...

EVENTS is the table of trace_event.c, "| event | ns without | ns |". Of each job two short runs, of N and of
2 N steps: the events of the second less those of the first, by kind, are those of N steps, and but for
waits their number does not vary from run to run. Each counts with all that it takes, its looks at the clock
too, though a run without a recorder looks at one as well; and each load of rows with a wait that was none.
A third run, as long as the job says, has the median step, and the processor time of the thread behind the
recorder as a part of its time. A row above what is wanted says so.
"""
import collections
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import time

WANTED = {"flight": 0.2, "full": 1.0}              # percent of a step
LISTS = 2                                          # of a step, whose first instructions take a look more
# of an event in Chrome's form: its row of EVENTS
ROW = {"read": "an instruction and its look", "forward": "an instruction and its look",
       "backward": "an instruction and its look", "sum": "an instruction and its look",
       "update": "an instruction and its look", "wait": "a wait that was none",
       "look": "a look at the clock", "step": "begin and end of a step", "rows": "rows that were read",
       "C": "a count of waits"}


def costs(path):
    with open(path) as f:
        rows = [line.strip("| \n").split(" | ") for line in f if line.startswith("|")]
    return {row[0]: float(row[2]) for row in rows if len(row) == 3 and re.fullmatch(r"-?[0-9.]+", row[2])}


def behind_ns(pid):
    """Processor time of the thread behind the recorder; None: there is none (yet)."""
    for path in glob.glob("/proc/%d/task/*/comm" % pid):
        try:
            with open(path) as f:
                if "recorder" not in f.read():
                    continue
            with open(os.path.dirname(path) + "/schedstat") as f:
                return int(f.read().split()[0])
        except OSError:
            pass
    return None


def run(heddle, job, steps, side):
    """Seconds a step, counts of events, part of the time that the thread behind had a processor. Steps 0: as
    many as the job says."""
    out = "share"
    subprocess.run(["rm", "-rf", out], check=True)
    words = [heddle, "run", job, "--out", out, "--devices", "1", "-q"]
    words += ["-s", "job.steps=%d" % steps] if steps else []
    process = subprocess.Popen(words + (["--trace"] if side == "full" else []), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    first = last = None
    while process.poll() is None:
        ns = behind_ns(process.pid)
        if ns is not None:
            last = (time.time(), ns)
            first = first or last
        time.sleep(0.02)
    if process.returncode:
        sys.exit("bench: %s ended with %d" % (job, process.returncode))
    share = (last[1] - first[1]) / 1e9 / (last[0] - first[0]) if last and last[0] > first[0] else 0
    with open(out + "/metrics.ndjson") as f:
        step_s = statistics.median(json.loads(line)["step_ms"] for line in f) / 1e3
    subprocess.run([heddle, "trace", "merge", out, "-o", "share.json", "-q"], check=True,
                   stdout=subprocess.DEVNULL)
    with open("share.json") as f:
        events = json.load(f)["traceEvents"]
    n = collections.Counter()
    for e in events:
        if e["ph"] == "C" and e["name"] == "processor wait":
            n["C"] += 1
        elif e.get("name") == "step_begin":
            n["step"] += 1
            n["look"] += LISTS
        elif e.get("cat") == "read" and e["name"] != "LD":
            n["rows"] += 1
        elif e["ph"] in "Xi" and e.get("cat") in ROW:
            n[e["cat"]] += 1
            n["wait"] += e["cat"] == "read"
    return step_s, n, share


def main():
    heddle, table, jobs = sys.argv[1], costs(sys.argv[2]), sys.argv[3:]
    print("| job | recorder | step ms | events a step | ns a step | of it | thread behind | both | wanted |")
    print("|---|---|--:|--:|--:|--:|--:|--:|---|")
    for job in jobs:
        for side, wanted in WANTED.items():
            n = int(os.environ.get("HD_BENCH_COUNTED", "40"))
            _, less, _ = run(heddle, job, n, side)
            _, more, _ = run(heddle, job, 2 * n, side)
            step_s, _, behind = run(heddle, job, 0, side)
            a_step = {k: (more[k] - less[k]) / n for k in more}
            ns = sum(count * table[ROW[k]] for k, count in a_step.items())
            recorded = sum(count for k, count in a_step.items() if k != "look")
            part, behind = 100 * ns / 1e9 / step_s, 100 * behind
            verdict = "kept" if part + behind <= wanted else "**%g %% missed**" % wanted
            print("| %s | %s | %.3f | %.1f | %.0f | %.4f %% | %.4f %% | %.4f %% | %s |" % (
                job.split(".")[0], side, step_s * 1e3, recorded, ns, part, behind, part + behind,
                verdict), flush=True)


main()
