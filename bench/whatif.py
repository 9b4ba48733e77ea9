"""What is predicted of a change beside what it then took, for bench/whatif.sh: whatif.py FOLDER [--all]

FOLDER/MODEL/VARIANT/RATE[-again] has the recordings of a phase. Pairs differ in one thing. Prints a table of
kinds of changes, and with --all a line a pair before it.
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


main()
