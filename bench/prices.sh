#!/bin/bash
# What jobs cost under each policy: at fixed prices, on recorded spot prices of 2016 and on drawn histories;
# and the choice of a type over time against the best type for all. Prints the tables of
# docs/results/prices.md. Nothing is timed: the cluster is simulated. Needs HEDDLE_SHARED (data/gavel,
# data/prices).
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle}
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
: "${HEDDLE_SHARED:?the published rates and prices are in HEDDLE_SHARED}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
HEDDLE=$heddle WORK=$work python3 - <<'P'
import ast, bisect, collections, datetime, json, math, os, random, subprocess

heddle, work, shared = os.environ["HEDDLE"], os.environ["WORK"], os.environ["HEDDLE_SHARED"]
rates_path = shared + "/data/gavel/throughputs/simulation_throughputs.json"
raw = json.load(open(rates_path))
types = ["k80", "p100", "v100"]
rates = {t: {ast.literal_eval(k): row["null"] for k, row in raw[t].items()} for t in types}
fixed = {"v100": 0.74, "p100": 0.43, "k80": 0.135}
as_types = {"v100": "g2.8xlarge", "p100": "m4.10xlarge", "k80": "cr1.8xlarge"}


def run(args):
    out = subprocess.run([heddle, "sched"] + args, check=True, capture_output=True, text=True).stdout
    return json.loads(out) if "--json" in args else out


def jobs_of(generate):
    rows = [line.split("\t")
            for line in run(["gen", "--generate", generate, "--throughputs", rates_path]).splitlines()]
    return [((r[0], int(r[6])), float(r[5]), float(r[9]), float(r[8])) for r in rows]


def bound_fixed(jobs):
    def least(kind):
        return min(fixed[t] / 3600 * kind[1] / rates[t][kind] for t in types if rates[t][kind] > 0)
    return sum(steps * least(kind) for kind, steps, _, _ in jobs)


def price_at(history, t, when):
    """Dollars an hour of type `t` at that moment; before the first change what that says."""
    return history[t][1][max(0, bisect.bisect_right(history[t][0], when) - 1)]


def bound_over_time(jobs, history, start, end, due=20):
    """Each job by itself, all prices known in advance, on one type at a time, over by its deadline (its own,
    or `due` times its duration) or by `end`: no policy that misses no deadline is below it. Of worth v a step
    the job takes, at each moment, the type on which v times its rate is most above its price; what that says
    of the cost, v steps less what was gained, holds for every v, and is the optimum for the best."""
    changes = sorted({at for t in types for at in history[t][0]})
    total = 0.0
    for kind, steps, arrival, own in jobs:
        begin = start + arrival
        until = start + end
        if rates["v100"].get(kind, 0) > 0:
            until = min(until, begin + (own if own > 0 else due) * steps / rates["v100"][kind])
        between = slice(bisect.bisect_right(changes, begin), bisect.bisect_left(changes, until))
        edges = [begin] + changes[between] + [until]
        parts = collections.defaultdict(float)
        for a, b in zip(edges, edges[1:]):
            offer = tuple((rates[t][kind], price_at(history, t, a) / 3600 * kind[1])
                          for t in types if rates[t].get(kind, 0) > 0)
            parts[offer] += b - a

        low, high = 0.0, 2 * max(usd_s / rate for offer in parts for rate, usd_s in offer)
        for _ in range(20):
            v, done, gained = (low + high) / 2, 0.0, 0.0
            for offer, span in parts.items():
                gain, rate = max((v * rate - usd_s, rate) for rate, usd_s in offer)
                if gain > 0:
                    done += span * rate
                    gained += span * gain
            low, high = (v, high) if done < steps else (low, v)
        total += v * steps - gained
    return total


def alone(jobs, history, start):
    """Each job by itself, from its arrival on, always on the type whose step is cheapest at the moment;
    nothing is lost by moving."""
    total, changes = 0.0, sorted({at for t in types for at in history[t][0]})
    for kind, steps, arrival, _ in jobs:
        now = start + arrival
        while steps > 0:
            best, rate = math.inf, 0.0
            for t in types:
                if rates[t].get(kind, 0) > 0:
                    usd_s = price_at(history, t, now) / 3600 * kind[1]
                    if usd_s / rates[t][kind] < best:
                        best, rate = usd_s / rates[t][kind], rates[t][kind]
            k = bisect.bisect_right(changes, now)
            done = min(steps, (changes[k] - now) * rate if k < len(changes) else steps)
            total, steps, now = total + done * best, steps - done, now + done / rate
    return total


def merge(lines):
    """[(time, zone, price)] -> times and the cheapest zone's price; a zone costs before its first line what
    that says."""
    lines.sort()
    now = {}
    for at, zone, price in reversed(lines):
        now[zone] = price
    at, least = [], []
    for when, zone, price in lines:
        now[zone] = price
        at.append(when)
        least.append(min(now.values()))
    return at, least


def row(cells):
    print("| " + " | ".join(str(c) for c in cells) + " |")


def hours(answer):
    return f"{answer['avg_jct_s'] / 3600:.2f}"


def all_of(devices):
    return ",".join(f"{t}:{devices}" for t in types)


named = ",".join(f"{t}={n}" for t, n in as_types.items())


print("## Fixed prices")
row(["workload", "policy", "cost $", "over the bound", "mean JCT h", "deadlines missed"])
row(["---", "---", "--:", "--:", "--:", "--:"])
price = ",".join(f"{t}:{p}" for t, p in fixed.items())
for n, more, label in ((5, [], "60 jobs, 5:5:5"), (20, [], "60 jobs, 20:20:20"),
                       (5, ["slo"], "60 jobs with deadlines, 5:5:5, rounds of 60 s"),
                       (5, ["slo", "--round", "360"], "60 jobs with deadlines, 5:5:5, rounds of 360 s")):
    generate = "rate=0,seed=0,jobs=60" + (",slo" if more else "")
    bound = bound_fixed(jobs_of(generate))
    answers = run(["compare", "--json", "--generate", generate, "--throughputs", rates_path,
                   "--cluster", f"v100:{n},p100:{n},k80:{n}", "--price", price,
                   "--policy", "cost,sum,las,isolated,fifo", "--tune", "beta=0.25,phi=-1"] + more[1:])
    for a in answers:
        row([label, f"`{a['policy']}`", f"{a['cost']:.2f}", f"{a['cost'] / bound:.3f}", hours(a),
             a["deadlines_missed"] if a["deadlines"] else "-"])
    times = answers[1]["cost"] / answers[0]["cost"]
    print(f"<!-- {label}: bound {bound:.2f}, max-throughput costs {times:.3f} times as much -->")


patient = []


def with_patience(generate, devices, files, start, history, due, by):
    """`cost` and the same with so much patience, beside the bound that knows all prices up to the deadlines:
    `due` times the duration; 0: as published."""
    generate += "" if due else ",slo"
    bound, cells = bound_over_time(jobs_of(generate), history, start, math.inf, due), []
    for tune in ("beta=0.25,phi=-1", f"beta=0.25,phi=-1,patience={by}"):
        a = run(["simulate", "--json", "--policy", "cost", "--cluster", all_of(devices),
                 "--generate", generate, "--price-as", named, "--throughputs", rates_path,
                 "--prices", files, "--tune", tune]
                + (["--deadline-factor", str(due)] if due else []))
        cells += [f"{a['cost']:.2f}", f"{a['cost'] / bound:.2f}", a["deadlines_missed"],
                  f"{a['avg_jct_s'] / 3600:.0f}"]
    return [f"{bound:.2f}"] + cells


def spot(label, files, start, generate, devices, history):
    jobs = jobs_of(generate)
    common = ["--json", "--generate", generate, "--throughputs", rates_path, "--prices", files,
              "--deadline-factor", "20", "--tune", "beta=0.25,phi=-1"]
    answers = run(["compare", "--cluster", all_of(devices), "--policy", "cost,sum,las,isolated,fifo",
                   "--price-as", named] + common)
    end = max(a["makespan_s"] for a in answers)
    bound, by_itself = bound_over_time(jobs, history, start, end), alone(jobs, history, start)

    def say(a, name, over):
        row([label, name, f"{a['cost']:.2f}", f"{a['cost'] / answers[0]['cost']:.2f}",
             f"{a['cost'] / by_itself:.2f}", over, hours(a), a["deadlines_missed"]])
    for a in answers:
        say(a, f"`{a['policy']}`", f"{a['cost'] / bound:.2f}")
    for word, due, by in (("20 times", 20, 0.2), ("2 times", 2, 0.5), ("1.2, 2, 10 times", 0, 0.5)):
        patient.append([label, word, by] + with_patience(generate, devices, files, start, history, due, by))
    for t in types:
        a = run(["simulate", "--cluster", f"{t}:{3 * devices}", "--policy", "cost",
                 "--price-as", f"{t}={as_types[t]}"] + common)
        say(a, f"`cost`, all on {as_types[t]}", "")


print("\n## Prices that move")
row(["prices", "policy", "cost $", "times `cost`", "times alone", "times the bound", "mean JCT h",
     "deadlines missed of all"])
row(["---", "---", "--:", "--:", "--:", "--:", "--:", "--:"])
lines = collections.defaultdict(list)
for line in open(shared + "/data/prices/ec2-2016.tsv"):
    zone, name, _, usd, when = line.rstrip().split("\t")
    lines[name].append((datetime.datetime.fromisoformat(when).timestamp(), zone, float(usd)))
start = min(at for rows in lines.values() for at, _, _ in rows)
history = {t: merge(lines[as_types[t]]) for t in types}
for rate, devices, label in ((1, 20, "recorded, 1 job an hour"), (4, 40, "recorded, 4 jobs an hour")):
    spot(label, shared + "/data/prices/ec2-2016.tsv", start, f"rate={rate},seed=0,jobs=300", devices, history)

for seed in (1, 2, 3):
    rng = random.Random(seed)
    path, made = f"{work}/drawn-{seed}.csv", {}
    with open(path, "w") as f:
        f.write("time,zone,type,price\n")
        for t in types:
            level, rows = 0.0, []
            for hour in range(24 * 60):
                level = 0.97 * level + rng.gauss(0, 0.12)
                usd = fixed[t] * math.exp(level) * (rng.uniform(3, 10) if rng.random() < 0.01 else 1)
                rows.append((hour * 3600.0, "z", float(f"{usd:.6f}")))
                f.write(f"{hour * 3600},z,{as_types[t]},{usd:.6f}\n")
            made[t] = merge(rows)
    spot(f"drawn, seed {seed}, 1 job an hour", path, 0.0, f"rate=1,seed={seed},jobs=300", 20, made)

print("\n## With patience")
head = ["times the bound", "missed", "mean JCT h"]
row(["prices", "due", "patience", "bound $", "`cost` $"] + head + ["with patience $"] + head)
row(["---", "---"] + ["--:"] * 10)
for cells in patient:
    row(cells)
P
