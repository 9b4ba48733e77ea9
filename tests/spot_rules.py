"""Spot machines replayed by the published rules alone: time goes from deadline to deadline.

spot_rules.py compare N PROGRAM    draws N models and traces, lets PROGRAM simulate each, and compares:
                                   integers, rates, dollars
spot_rules.py golden N             prints N short ones with what they must give: tests/data/spot-rules.txt
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile

BOOT, MEET, END = 45_000, 30_000, 40_000_000
NEVER = math.inf


class Replay:
    def __init__(self, lines, model):
        self.stages, self.steps_ms, self.local = model["stages"], model["step_ms"], model["local_ms"]
        by_kind = {"add": 0, "remove": 1}
        rows = [(int(ms), by_kind[kind], i, name) for i, (ms, kind, name) in enumerate(lines)]
        self.coming = sorted(rows)
        self.here = []                  # names, in the order of their add
        self.boots = {}                 # name: when it is ready
        self.grid = []                  # of each pipeline the names of its stages, None: lost
        self.twice = set()              # those that run two stages
        self.meets_at, self.meets_for, self.steps_at = NEVER, 0, NEVER
        self.slow = False
        self.steps = self.removals = self.level2 = self.rendezvous = 0
        self.first = self.last = None
        self.now = self.node_ms = 0

    def ready(self):
        return [name for name in self.here if name not in self.boots]

    def meet(self, ms):
        self.grid, self.twice, self.steps_at = [], set(), NEVER
        self.meets_for, self.meets_at = ms, self.now + ms
        self.rendezvous += 1

    def step(self):
        if self.first is None:
            self.first = self.now
        self.slow = len(self.twice) > 0
        ms = self.steps_ms[len(self.grid) - 1]
        self.steps_at = self.now + (3 * ms // 2 if self.slow else ms)

    def placed(self):
        return [name for row in self.grid for name in row if name]

    def add(self, name):
        self.here.append(name)
        self.boots[name] = self.now + BOOT

    def remove(self, name):
        self.removals += 1
        self.here.remove(name)
        if self.boots.pop(name, None) is not None:
            return
        if self.meets_at < NEVER:
            self.meets_at = self.now + self.meets_for
            return
        for row in self.grid:
            if name in row:
                self.lose(row, row.index(name))

    def lose(self, row, stage):
        name, before = row[stage], row[stage - 1]
        if name in self.twice or before is None or before in self.twice or before == name:
            self.level2 += 1
            self.meet(MEET)
            return
        row[stage] = None
        self.twice.add(before)
        if not self.slow:
            self.slow = True
            self.steps_at = self.now + 3 * (self.steps_at - self.now) // 2

    def is_ready(self, name):
        del self.boots[name]
        if not self.grid and self.meets_at == NEVER:
            self.meet(MEET)

    def met(self):
        self.meets_at = NEVER
        line, width = self.ready(), self.stages
        rows = min(len(line) // width, len(self.steps_ms))
        self.grid = [line[d * width:(d + 1) * width] for d in range(rows)]
        if rows:
            self.step()

    def stepped(self):
        self.steps, self.last = self.steps + 1, self.now
        a, x = len(self.placed()), len(self.twice)
        w = len(self.ready()) - a
        replace = x > 0 and w >= x
        rebalance = x > 0 and 2 * x * 20 > a
        grow = min((a + w) // self.stages, len(self.steps_ms)) > len(self.grid)
        if replace or rebalance or grow:
            self.meet(self.local)
        else:
            self.step()

    def happens(self):
        """The first of what is next: at one time an add, a removal, a ready node, a rendezvous, a step."""
        heads = [(self.meets_at, 3, 0, self.met, ()), (self.steps_at, 4, 0, self.stepped, ())]
        if self.coming:
            ms, kind, i, name = self.coming[0]
            heads.append((ms, kind, i, self.remove if kind else self.add, (name,)))
        for i, name in enumerate(self.here):
            if name in self.boots:
                heads.append((self.boots[name], 2, i, self.is_ready, (name,)))
        return min(heads, key=lambda head: head[:3])

    def play(self):
        while True:
            ms, kind, _, act, args = self.happens()
            if ms > END:
                break
            if kind < 2:
                self.coming.pop(0)
            self.node_ms += len(self.here) * (ms - self.now)
            self.now = ms
            act(*args)
        return self


def answer(lines, model):
    r = Replay(lines, model).play()
    rate = r.steps * model["batch"] / ((r.last - r.first) * 1e-3) if r.steps else 0
    usd = 0.91 * r.node_ms / r.now if r.now else 0
    on = model["on_demand"]
    there = model["batch"] / (on["step_ms"] * 1e-3) / (on["nodes"] * 3.06)
    return {"steps": r.steps, "removals": r.removals, "level2": r.level2, "rendezvous": r.rendezvous,
            "samples_per_s": rate, "usd_per_h": usd, "value_ratio": rate / usd / there if rate and usd else 0}


# ---- models and traces

def model_of(r):
    return {"name": "drawn", "stages": r.randint(1, 24), "batch": r.randint(1, 999),
            "local_ms": r.choice([0, 1, 10_000, 20_000, 30_000, 45_000]),
            "step_ms": [r.choice([r.randint(500, 9000), 5000, 15_000]) for _ in range(r.randint(1, 6))],
            "on_demand": {"nodes": r.randint(1, 40), "step_ms": r.randint(100, 9000)}}


def trace_of(r, model):
    """Machines come and go alone and in batches; `grain` makes equal times, also with what they cause."""
    grain = r.choice([1, 1, 5000, 15_000])
    want = r.randint(1, model["stages"] * (len(model["step_ms"]) + 1) + 3)
    lines, here, born = [], [], 0
    t = r.choice([0, 0, r.randint(1, 3_000_000)])
    span = r.choice([2_000_000, 20_000_000, 40_000_000, 43_000_000])
    while t <= span and len(lines) < 600:
        stamp = t // grain * grain
        for _ in range(r.choice([1, 1, 2, want])):
            if len(here) < want and r.random() < 0.7:
                here.append((f"n{born}", stamp))
                lines.append((stamp, "add", f"n{born}"))
                born += 1
        if here and r.random() < 0.6:
            for _ in range(r.choice([1, 1, 1, 2, 3, len(here)])):
                if here:
                    name, _ = here.pop(r.randrange(len(here)))
                    lines.append((stamp, "remove", name))
        t += r.choice([0, r.randint(1, 100_000), 45_000, 30_000, 75_000, r.randint(1, 2 * span // 80)])
    return lines or [(t, "add", "n0")]


def case_of(i):
    r = random.Random(1000 + i)
    model = model_of(r)
    lines = trace_of(r, model)
    if is_list(i):                  # which counts from the first start, and has a line for each machine
        lines = [(ms - lines[0][0], kind, name) for ms, kind, name in lines]
        lines = sorted(lines, key=lambda line: (line[0], line[1], int(line[2][1:])))
    return lines, model


def is_list(i):
    return i % 4 == 3


def machines_of(lines):
    """The same trace, by machine."""
    comes, goes = {}, {}
    for ms, kind, name in lines:
        (goes if kind == "remove" else comes)[name] = f"{ms // 1000}.{ms % 1000:03}"
    return ["name,start,stop\n"] + [f"{name},{at},{goes.get(name, '')}\n" for name, at in comes.items()]


def write(i, folder):
    lines, model = case_of(i)
    events = [f"{ms},{kind},{name}\n" for ms, kind, name in lines]
    with open(os.path.join(folder, f"trace{i}"), "w") as out:
        out.writelines(machines_of(lines) if is_list(i) else events)
    with open(os.path.join(folder, f"model{i}"), "w") as out:
        json.dump(model, out)


INTEGERS, RATES = ("steps", "removals", "level2", "rendezvous"), ("samples_per_s", "usd_per_h", "value_ratio")


def golden(n):
    i = 0
    while n:
        lines, model = case_of(i)
        a = answer(lines, model)
        i += 1
        if len(lines) > 60 or a["steps"] < 100 or (n % 2 and not a["level2"]):
            continue
        n -= 1
        print(json.dumps(model))
        print(*(",".join(map(str, line)) for line in lines))
        print(*(a[key] for key in INTEGERS), *(f"{a[key]:.15g}" for key in RATES))


def compare(n, program):
    total, wrong, worst = dict.fromkeys(INTEGERS, 0), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(n):
            write(i, folder)
            want = answer(*case_of(i))
            argv = [program, "simulate", "spot", "--trace", f"{folder}/trace{i}", "--model",
                    f"{folder}/model{i}", "--json"]
            is_ = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
            off = max(abs(is_[key] - want[key]) / (want[key] or 1) for key in RATES)
            worst = max(worst, off)
            for key in INTEGERS:
                total[key] += want[key]
            if any(is_[key] != want[key] for key in INTEGERS) or off > 1e-9:
                wrong += 1
                print(f"case {i}:", {key: (is_[key], want[key]) for key in INTEGERS + RATES})
    print(f"{n} models and traces: {wrong} differ; rates by {worst:.1e} at most; in all", total)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    if sys.argv[1] == "golden":
        golden(int(sys.argv[2]))
    else:
        compare(int(sys.argv[2]), sys.argv[3])
