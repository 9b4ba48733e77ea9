"""What is predicted of a change beside what it then took, for bench/whatif.sh:

    whatif.py FOLDER [--all | --plans]

FOLDER/MODEL/VARIANT/RATE[-again] has the recordings of a phase. Pairs differ in one thing. Prints a table of
kinds of changes, and with --all a line a pair before it. With --plans FOLDER/PLAN-TURN are runs, and the
table has a line a pair of plans.
"""
import json
import os
import subprocess
import sys

HEDDLE, STEPS = os.environ["HEDDLE_BIN"], os.environ.get("STEPS", "15")
DEVICES = {"base": 1.0, "fast": 2.0, "slow": 0.5}
ORDERS = {"base": "tic+", "fifo": "fifo", "random": "random", "tac": "tac"}
kept = sys.argv[1]


def ask(phase, *change):
    out = subprocess.run([HEDDLE, "trace", "whatif", os.path.join(kept, phase), "--steps", STEPS, "--json",
                          "-q", *change], stdout=subprocess.PIPE, text=True, check=True).stdout
    got = json.loads(out)
    n = (got["last"] - got["first"] + 1) * 1e6
    return got["recorded_ns"] / n, got["whatif_ns"] / n, got["replay_error"]


def phases():
    for model in sorted(os.listdir(kept)):
        for variant in sorted(os.listdir(os.path.join(kept, model))):
            for rate in sorted(os.listdir(os.path.join(kept, model, variant))):
                yield model, variant, rate


def change(a, b):
    """The kind of the change from one phase to another, and the words for it; None: not one thing alone."""
    if a[0] != b[0] or a == b:
        return None
    again = [x[2].endswith("-again") for x in (a, b)]
    if again[0] != again[1]:
        return ("unchanged", ["--bandwidth", "1"]) if a[:2] == b[:2] and \
            a[2].split("-")[0] == b[2].split("-")[0] else None
    if a[1] == b[1]:
        return "bandwidth", ["--bandwidth", "%g" % (float(b[2]) / float(a[2]))] if not again[0] else None
    if a[2] == b[2] and not again[0] and a[1] in DEVICES and b[1] in DEVICES:
        return "devices", ["--compute", "%g" % (DEVICES[b[1]] / DEVICES[a[1]])]
    if a[2] == b[2] and not again[0] and a[1] in ORDERS and b[1] in ORDERS:
        return "order", ["--order", ORDERS[b[1]]]
    return None


def plans():
    """Of the middle run of each plan for each other: what is said, beside what that one's middle run took."""
    runs = sorted(os.listdir(kept))
    took = {run: ask(run, "--plan", plan_of(run))[0] for run in runs}
    names = sorted({run.rsplit("-", 1)[0] for run in runs})
    turns = {name: sorted((run for run in runs if run.rsplit("-", 1)[0] == name), key=took.get)
             for name in names}
    middle = {name: turns[name][(len(turns[name]) - 1) // 2] for name in names}
    print("\n| plan | to | took, ms | said, ms | it took, ms | error |\n|---|---|--:|--:|--:|--:|")
    errors, equal = [], []
    for a in names:
        equal += [took[x] / took[y] - 1 for i, x in enumerate(turns[a]) for y in turns[a][:i]]
        for b in names:
            if a == b:
                continue
            it, said = took[middle[b]], ask(middle[a], "--plan", plan_of(middle[b]))[1]
            errors.append(said / it - 1)
            print("| %s | %s | %.1f | %.1f | %.1f | %+.1f %% |" % (a, b, took[middle[a]], said, it,
                                                               100 * errors[-1]))
    n = len(errors) or 1
    print("\n%d predictions: off by %.1f %% on average (%+.1f %% with signs), %+.1f %% at worst; "
          "equal runs differ by %.1f %%" % (
              len(errors), 100 * sum(map(abs, errors)) / n, 100 * sum(errors) / n,
              100 * max(errors, key=abs, default=0), 100 * sum(map(abs, equal)) / max(1, len(equal))))


def plan_of(run):
    folder = os.path.join(kept, run, "plan")
    return os.path.join(folder, max(x for x in os.listdir(folder) if x.endswith(".plan")))


def main():
    took, kinds, replay = {}, {}, []
    for phase in phases():
        name = "/".join(phase)
        took[phase], _, error = ask(name, "--bandwidth", "1")
        replay.append(abs(error))
        print("%-24s %8.1f ms, replayed %+.2f %%" % (name, took[phase], error * 100), file=sys.stderr)
    for a in took:
        for b in took:
            kind = change(a, b)
            if not kind or not kind[1]:
                continue
            _, said, _ = ask("/".join(a), *kind[1])
            error = said / took[b] - 1
            key = kind[0] if kind[0] == "unchanged" else "%s to %s" % (kind[0], kind[1][1]) if \
                kind[0] == "order" else "%s x %s" % (kind[0], kind[1][1])
            kinds.setdefault(key, []).append(error)
            if "--all" in sys.argv:
                print("| %s | %s | %s | %.1f | %.1f | %.1f | %+.1f %% |" % (
                    "/".join(a), "/".join(b), key, took[a], said, took[b], error * 100))
    print("\n| change | pairs | mean error | mean of its size | worst |\n|---|--:|--:|--:|--:|")
    both = [(k, v) for k, v in sorted(kinds.items())]
    both.append(("all changes", [e for k, v in both for e in v if k != "unchanged"]))
    for key, errors in both:
        if errors:
            print("| %s | %d | %+.1f %% | %.1f %% | %+.1f %% |" % (
                key, len(errors), sum(errors) / len(errors) * 100,
                sum(map(abs, errors)) / len(errors) * 100, max(errors, key=abs) * 100))
    print("\nreplayed unchanged: off by %.2f %% on average, %.2f %% at most" % (
        sum(replay) / len(replay) * 100, max(replay) * 100))


plans() if "--plans" in sys.argv else main()
