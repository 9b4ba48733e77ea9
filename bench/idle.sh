#!/bin/bash
# idle.sh -- what it costs that workers could come and go while none does: a run of one worker with all the
# machinery of an elastic run (two threads that talk, seals, a coordinator) against the plain loop of the same
# job, and a plain run with a flight recorder against one without. Prints a table of docs/results/idle.md:
#
#	bench/idle.sh [JOB...]          # tenth one five (steps of about 0.1, 1 and 5 ms on one device)
#	HD_BENCH_SIDES="plain2 one2 two" bench/idle.sh resnet18         # a job of bench/jobs
#
# Each run is done twice, long and short; what a step takes is the difference by the steps between, so that
# starts and ends count for nothing. Processor time and context switches are of all processes of the run,
# coordinator included, as the system counts them: on a busy machine they are the honest figures. Sides take
# turns, and each round begins with another one. `of plain`: the median over rounds of the ratio to the
# round's own plain side, in brackets the second least and second greatest (of less than 4 rounds, the
# least and the greatest).
#
# On a busy machine `chrt -r 5 bench/idle.sh` makes times by the clock say something, too; a nice value does
# not where the kernel groups sessions: workers begin sessions of their own, plain runs do not.
#
#	HD_BENCH_ROUNDS  rounds (default 7)
#	HD_BENCH_SECONDS how long the long run of a side is, about (default 2)
#	HD_BENCH_SIDES   names of the table `sides` below (default: off plain one)
#	HD_BENCH_CALLS   1: system calls a step are counted, too, where strace is (one more run each)
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
heddle=$(realpath "${HEDDLE_BIN:-build/release/heddle}")
[ -x "$heddle" ] || { echo "bench: $heddle is missing; run ./dev build first" >&2; exit 2; }
command -v python3 >/dev/null || { echo "bench: python3 counts here, and is not there" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "$(date -u +%Y-%m-%d), $("$heddle" version | sed -n 1p), $(with_load)"
echo
cat >"$work/idle.py" <<'END'
import json, os, re, shutil, subprocess, sys
heddle, names = sys.argv[1], sys.argv[2:] or ["tenth", "one", "five"]
env = os.environ.get
rounds, seconds = int(env("HD_BENCH_ROUNDS", 7)), float(env("HD_BENCH_SECONDS", 2))
# hidden layers, samples a step, milliseconds of a step on one device, about
jobs = {"tenth": ("[64, 32]", 48, 0.1), "one": ("[256, 192]", 192, 1.0), "five": ("[512, 512]", 192, 5.0)}
sides = {
    "off": "--devices 1 -s trace.flight_slots=0", "plain": "--devices 1", "one": "--workers 1 --devices 1",
    "off2": "--devices 2 -s trace.flight_slots=0", "plain2": "--devices 2",
    "one2": "--workers 1 --devices 2", "two": "--workers 2 --devices 1",
}
about = {
    "off": "one device, no recorder", "plain": "one device", "one": "one worker of one device",
    "off2": "two devices, no recorder", "plain2": "two devices", "one2": "one worker of two devices",
    "two": "two workers of one device",
}
others = {"lenet": 3.0, "resnet18": 800.0, "gpt-byte": 700.0}      # bench/jobs: about so many milliseconds
chosen = env("HD_BENCH_SIDES", "off plain one").split()
YAML = """job: {name: %s, seed: 3, steps: %d}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: %s, classes: 4}}
data: {kind: synthetic, count: 1000}
batch: {global: %d, virtual_nodes: 12}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps}
eval: {every: 0}
trace: {digest: 1000000}
"""

def once(name, side, steps, before=()):
    job = "job.yaml" if name in jobs else "%s/%s.yaml" % (env("HD_BENCH_JOBS"), name)
    if name in jobs:
        with open(job, "w") as f:
            f.write(YAML % (name, steps, *jobs[name][:2]))
    shutil.rmtree("out", ignore_errors=True)
    argv = [*before, heddle, "run", job, "--out", "out", "-q", "--steps", str(steps), "-s", "eval.every=0",
        *sides[side].split()]
    child = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit("bench: %s: %s" % (" ".join(argv), said.decode()))
    t = [json.loads(line)["t"] for line in open("out/metrics.ndjson")]
    half = len(t) // 4                # the first quarter is not looked at
    return ((t[-1] - t[half]) / (len(t) - 1 - half) * 1e3, used.ru_utime + used.ru_stime,
        used.ru_nvcsw + used.ru_nivcsw)

def calls(name, side):
    n = []
    for steps in (100, 400):
        once(name, side, steps, ("strace", "-f", "-c", "-o", "calls"))
        n.append(int(re.search(r"^100\.00 .*?(\d+)\s+(?:\d+\s+)?total$", open("calls").read(), re.M)[1]))
    return "%.1f" % ((n[1] - n[0]) / 300)

def middle(v):
    return sorted(v)[(len(v) - 1) // 2] if len(v) % 2 else sum(sorted(v)[len(v) // 2 - 1:len(v) // 2 + 1]) / 2

def ratio(a, b):
    r, k = sorted(x / y for x, y in zip(a, b)), 1 if len(a) > 3 else 0
    return "%.4f (%.4f to %.4f)" % (middle(r), r[k], r[-1 - k])

counts = env("HD_BENCH_CALLS") == "1" and shutil.which("strace")
print("| job | side | step ms | of plain | processor us a step | of plain | context switches a step |"
    + (" system calls a step |" if counts else ""))
print("|---|---|--:|--:|--:|--:|--:|" + ("--:|" if counts else ""), flush=True)
for name in names:
    ms = jobs[name][2] if name in jobs else others[name]
    long = max(10, int(seconds * 1e3 / ms))
    short = max(2, long // 8)
    seen = {side: [] for side in chosen}
    for r in range(rounds):
        for i in range(len(chosen)):
            side = chosen[(r + i) % len(chosen)]
            few, many = once(name, side, short), once(name, side, long)
            seen[side].append((many[0], *((m - f) / (long - short) for m, f in zip(many[1:], few[1:]))))
    plain = "plain" if "plain" in seen else "plain2" if "plain2" in seen else chosen[0]
    of = list(zip(*seen[plain]))
    for side in chosen:
        ms, cpu, switches = zip(*seen[side])
        print("| %s, %d steps | %s | %.4f | %s | %.1f | %s | %.2f |%s" % (name, long, about[side], middle(ms),
            ratio(ms, of[0]), middle(cpu) * 1e6, ratio(cpu, of[1]), middle(switches),
            " %s |" % calls(name, side) if counts else ""), flush=True)
END
export HD_BENCH_JOBS=$PWD/bench/jobs
cd "$work"
python3 idle.py "$heddle" "$@"
