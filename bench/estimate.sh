#!/bin/bash
# What guessing costs: policies that pack, with all pairs known, with a fifth of the cells measured
# (--estimate q=0.2), and without pairs. The published experiment: 12 devices of three types, mean completion
# time; and a makespan. Prints the table of docs/results/estimate.md. Nothing is timed.
set -eu
cd "$(dirname "$0")/.."
heddle=${HEDDLE_BIN:-build/release/heddle} gavel=${HEDDLE_SHARED:?names the folder with data/gavel}/data/gavel
rates=$gavel/throughputs/simulation_throughputs.json
[ -x "$heddle" ] || { echo "no program at $heddle; ./dev build makes it" >&2; exit 2; }
HEDDLE=$heddle RATES=$rates python3 - "${SEEDS:-5}" <<'P'
import json, os, subprocess, sys

seeds = range(int(sys.argv[1]))
loads = (("0.6 jobs an hour", "rate=0.6", 80), ("1 job an hour", "rate=1", 80),
         ("60 jobs at once", "rate=0", 60))
rows = (("las-packed", "avg_jct_s"), ("ftf-packed", "avg_jct_s"), ("sum-packed", "avg_jct_s"),
        ("makespan-packed", "makespan_s"))


def run(generate, policy, seed, estimate):
    args = [os.environ["HEDDLE"], "sched", "compare", "--json", "--generate", generate,
            "--throughputs", os.environ["RATES"], "--cluster", "v100:4,p100:4,k80:4",
            "--policy", policy, "--seed", str(seed)] + (["--estimate", estimate] if estimate else [])
    return json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)[0]


def mean(values):
    return sum(values) / len(values)


print("| jobs | policy | measure | all pairs known | 16 of 26 references | % | 8 of 26 references | % "
      "| no pairs | % |")
print("|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
known, error, off = {16: [], 8: []}, {16: [], 8: []}, {16: [], 8: []}
for label, rate, jobs in loads:
    for policy, measure in rows:
        if (measure == "makespan_s") != (rate == "rate=0"):
            continue
        oracle, alone, guessed = 0.0, 0.0, {16: 0.0, 8: 0.0}
        for seed in seeds:
            generate = f"{rate},seed={seed},jobs={jobs}"
            oracle += run(generate, policy, seed, "")[measure] / len(seeds) / 3600
            alone += run(generate, policy.replace("-packed", ""), seed, "")[measure] / len(seeds) / 3600
            for r in guessed:
                a = run(generate, policy, seed, f"q=0.2,r={r}")
                guessed[r] += a[measure] / len(seeds) / 3600
                known[r].append(a["estimate"]["measured"] / a["estimate"]["pairs"])
                error[r].append(a["estimate"]["error"])
        columns = [(guessed[r], f"{100 * (guessed[r] / oracle - 1):+.1f}") for r in guessed]
        columns.append((alone, f"{100 * (alone / oracle - 1):+.1f}"))
        word = "makespan h" if rate == "rate=0" else "mean JCT h"
        print(f"| {label} | `{policy}` | {word} | {oracle:.2f} | "
              + " | ".join(f"{hours:.2f} | {off}" for hours, off in columns) + " |")
for r in known:
    print(f"<!-- {r} references: {100 * mean(known[r]):.0f} % of the pairs measured before; "
          f"guesses off by {100 * mean(error[r]):.1f} % -->")
P
