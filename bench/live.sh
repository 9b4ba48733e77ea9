#!/bin/bash
# 12 real jobs on 2 types of devices, one of each: when each was over, live and by the simulator, under the
# same policy and rounds; and whether every job ended with the bits of its undisturbed run. Prints the table
# of docs/results/live.md.
#
#	bench/live.sh [POLICY [ROUND]]       fifo, 30 s
#
# First, with a scheduler of their own, two kinds of jobs run on each type: that gives their rates (steps/s)
# and what a start and a preemption cost. Last the simulator is compared with itself, all rates of one kind 2
# % higher or lower: below that distance no measured figures could bring the two. The simulator gets these
# figures and the instants of the live submissions, and nothing else of the live run. Both devices together
# have 0.9 of a core, so that two cores have room for coordinators and scheduler. Where control groups of
# version 1 are the means, those of the devices, and one that scheduler and coordinators are put into, have
# the greatest weight: what else runs on the machine has what is left. HD_LIVE_SECONDS (32): how long a job
# is, alone on the fast type; HD_LIVE_EVERY (8): between two submissions; HD_LIVE_KEEP: a folder that both
# logs of decisions are copied to.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-$PWD/build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
command -v python3 >/dev/null || { echo "python3 asks here, and is not there" >&2; exit 2; }
work=$(mktemp -d)
cleanup()
{
	for seat in "$work"/*/devices/* "$work"/*/runs/*/seat; do
		[ -s "$seat" ] && read -r _ _ holder _ <"$seat" &&
			[ "$(readlink "/proc/$holder/exe")" = "$(readlink -f "$heddle")" ] &&
				kill -9 "$holder"
	done 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT
HEDDLE=$(realpath "$heddle") python3 - "$work" "${1:-fifo}" "${2:-30}" <<'END'
import glob, http.client, json, os, socket, subprocess, sys, time
work, policy, round_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
heddle, length = os.environ["HEDDLE"], float(os.environ.get("HD_LIVE_SECONDS", 32))
every = float(os.environ.get("HD_LIVE_EVERY", 8))
os.chdir(work)
GROUP = "/sys/fs/cgroup/cpu/live-%d" % os.getpid()
YAML = """job: {name: %s, seed: 0, steps: 100000}
model: {use: "builtin:mlp", args: {input: [1, 16, 16], hidden: [%s], classes: 4}}
data: {kind: synthetic, count: 1024}
batch: {global: 256, virtual_nodes: 8}
optim: {kind: adamw, lr: 1e-3, schedule: {kind: constant, warmup: 0}}
checkpoint: {every: 1000000 steps, keep: 2}
eval: {every: 0}
trace: {digest: 1000}
"""
text = {"A": YAML % ("A", "256, 256"), "B": YAML % ("B", "640, 256")}

class Unix(http.client.HTTPConnection):
    def __init__(self, dir):
        super().__init__("localhost")
        self.dir = dir
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.dir + "/heddle.sock")

class Scheduler:
    def __init__(self, dir, policy, *more):
        self.dir = dir
        self.child = subprocess.Popen(
            [heddle, "serve", "--dir", dir, "--pool", "fast:1:0.6,slow:1:0.3", "--policy", policy, *more],
            stdout=open(dir + ".out", "w"), stderr=open(dir + ".err", "w"))
        for _ in range(400):
            try:
                self.ask("/v1/status")
                break
            except OSError:
                time.sleep(0.05)
        for path in glob.glob("/sys/fs/cgroup/cpu/heddle-*/cpu.shares"):
            if os.path.getmtime(os.path.dirname(path)) > time.time() - 60: open(path, "w").write("262144")
        if os.path.exists("/sys/fs/cgroup/cpu/cgroup.procs"):
            os.makedirs(GROUP, exist_ok=True)
            open(GROUP + "/cpu.shares", "w").write("262144")
            open(GROUP + "/cgroup.procs", "w").write(str(self.child.pid))
    def ask(self, target, body=None):
        c = Unix(self.dir)
        c.request("GET" if body is None else "POST", target, None if body is None else json.dumps(body),
            {} if body is None else {"Content-Type": "application/json"})
        r = c.getresponse()
        data = r.read()
        c.close()
        if r.status != 200: sys.exit("%s: %s" % (target, data.decode()))
        return json.loads(data)
    def submit(self, kind, steps, seed, rates):
        keys = ["job.steps=%d" % steps, "job.seed=%d" % seed]
        return self.ask("/v1/jobs", {"job": text[kind], "folder": work, "set": keys, "rates": rates})["id"]
    def job(self, id): return self.ask("/v1/jobs/%d" % id)
    def reach(self, id, state, limit=600):
        until = time.time() + limit
        while time.time() < until:
            job = self.job(id)
            if job["state"] == state: return job
            time.sleep(0.05)
        sys.exit("job %d is not %s: %s" % (id, state, job))
    def at(self, id, kind, nth=0):
        events = self.ask("/v1/events/past?job=%d&limit=1000" % id)["events"]
        return [e["at_s"] for e in events if e["kind"] == kind][nth]
    def computed(self, id):                      # steps, and seconds from the first record to the last
        path = glob.glob("%s/runs/%d-*/metrics.ndjson" % (self.dir, id))[0]
        records = [json.loads(l) for l in open(path) if '"step"' in l and '"t"' in l]
        return records[-1]["step"] - records[0]["step"], records[-1]["t"] - records[0]["t"]
    def end(self):
        self.child.terminate()
        self.child.wait()

# ---- what a job does alone on each type, and what it costs to start, to leave, to start again ----
c = Scheduler("C", "fifo", "--round", "3")
guess, rate, over = {"A": 500, "B": 250}, {}, []
for kind in "AB":
    pair = [(t, c.submit(kind, guess[kind] * f, 1, {o: 0}))
            for t, o, f in (("slow", "fast", 6), ("fast", "slow", 12))]
    for t, id in pair:
        job = c.reach(id, "done")
        n, took = c.computed(id)
        rate[kind, t] = n / took
        over.append(job["ended_s"] - c.at(id, "start") - took)
start = sum(over) / len(over)
id = c.submit("A", guess["A"] * 10, 2, {"slow": 0})
c.reach(id, "running")
time.sleep(3)
c.ask("/v1/devices/fast-0", {"usable": False})
c.reach(id, "queued", 60)
c.ask("/v1/devices/fast-0", {"usable": True})
job = c.reach(id, "done")
preempt = c.at(id, "left") - c.at(id, "leave")
away = c.at(id, "start", 1) - c.at(id, "left")
restart = job["ended_s"] - c.at(id, "start") - job["steps"] / rate["A", "fast"] - start - preempt - away
c.end()
print("steps/s: " + ", ".join(
    "%s %.1f fast, %.1f slow" % (k, rate[k, "fast"], rate[k, "slow"]) for k in "AB"))
print("a start costs %s s: %.2f s; a preemption %.2f s, the start after it %.2f s"
    % (", ".join("%.2f" % o for o in over), start, preempt, restart))
sys.stdout.flush()
start = max(0.01, (start + restart) / 2)
costs = "%.3f,%.3f,%.3f,%.3f" % (start, start / 2, start + preempt, preempt)

# ---- live ----
d = Scheduler("D", policy, "--round", "%g" % round_s, "--switching", costs)
jobs = []
for i in range(12):
    kind = "AB"[i % 2]
    steps = int(rate[kind, "fast"] * length * (0.6 + 0.2 * (i % 5)))
    rates = {t: rate[kind, t] for t in ("fast", "slow")}
    jobs.append({"kind": kind, "steps": steps, "seed": i, "id": d.submit(kind, steps, i, rates)})
    time.sleep(every)
for j in jobs:
    j.update({k: v for k, v in d.reach(j["id"], "done").items() if k in ("submitted_s", "ended_s", "digest")})
d.end()

# ---- the same by the simulator ----
origin = jobs[0]["submitted_s"]
TRACE = "%s (batch size 512)\tx\tx\t-n\t0\t%d\t1\t1\t-1\t%.6f\n"
with open("jobs.trace", "w") as f:
    for j in jobs:
        f.write(TRACE % (j["kind"], j["steps"], j["submitted_s"] - origin))
def simulated(name, a=1.0, b=1.0):           # when each job is over, kind A `a` times as fast as measured
    faster = {"A": a, "B": b}
    json.dump({t: {"('%s (batch size 512)', 1)" % k: {"null": rate[k, t] * faster[k]} for k in "AB"}
               for t in ("fast", "slow")}, open("rates.json", "w"))
    subprocess.run([heddle, "sched", "simulate", "-q", "--trace", "jobs.trace", "--throughputs", "rates.json",
        "--cluster", "fast:1,slow:1", "--policy", policy, "--switching", costs,
        "--round", "%g" % round_s, "--min-reset", "%g" % min(30, round_s / 2),
        "--rows", "rows.csv", "--log", name], check=True, stdout=subprocess.DEVNULL)
    head, *rows = [l.rstrip("\n").split(",") for l in open("rows.csv")]
    return [float(row[head.index("jct_s")]) for row in rows]

def apart(some, others):                     # in percent: on average, at worst
    offs = [100 * abs(x - y) / y for x, y in zip(some, others)]
    return sum(offs) / len(offs), max(offs)

sims = simulated("sim.ndjson")
keep = os.environ.get("HD_LIVE_KEEP")
if keep:
    os.makedirs(keep, exist_ok=True)
    subprocess.run(["cp", "-r", "D/decisions.ndjson", "sim.ndjson", "jobs.trace", "D.err", keep])

# ---- side by side ----
print("\n| job | kind | steps | live s | simulated s | off % |\n|--:|---|--:|--:|--:|--:|")
lives = [j["ended_s"] - j["submitted_s"] for j in jobs]
for j, live, sim in zip(jobs, lives, sims):
    off = 100 * (live - sim) / sim
    print("| %d | %s | %d | %.2f | %.2f | %+.1f |" % (j["seed"], j["kind"], j["steps"], live, sim, off))
print("\n%.1f %% apart on average, %.1f %% at worst; mean completion %.2f s live, %.2f s simulated"
    % (*apart(lives, sims), sum(lives) / 12, sum(sims) / 12))
selves = [apart(simulated("other.ndjson", a, b), sims)
          for a, b in ((0.98, 1), (1.02, 1), (1, 0.98), (1, 1.02))]
print("the simulator from itself, one kind 2 %% faster or slower: %.1f %% on average, %.1f %% at worst"
    % (sum(s[0] for s in selves) / 4, max(s[1] for s in selves)))
sys.stdout.flush()

# ---- the bits ----
def undisturbed(j):
    name = "%d.yaml" % j["seed"]
    open(name, "w").write(text[j["kind"]])
    return subprocess.Popen([heddle, "run", name, "--out", "alone%d" % j["seed"], "--devices", "1", "-q",
        "-s", "job.steps=%d" % j["steps"], "-s", "job.seed=%d" % j["seed"]],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

equal = 0
for at in range(0, 12, 2):
    alone = [undisturbed(j) for j in jobs[at:at + 2]]
    for run, j in zip(alone, jobs[at:at + 2]):
        run.wait()
        digest = subprocess.run([heddle, "ckpt", "digest", "alone%d" % j["seed"]],
            capture_output=True, text=True).stdout.strip()
        equal += digest == j["digest"]
print("digests: %d of 12 equal to the undisturbed run" % equal)
if os.path.exists(GROUP): os.rmdir(GROUP)
sys.exit(equal != 12)
END
