"""A second reading of the rules in src/spot/replay.h: one heap of events, dictionaries, nothing shared.

spot_replay.py draw N FOLDER        writes N random traces and models, many of them with events at equal times
spot_replay.py compare N FOLDER     plays them, and compares with what the program printed as oursCASE
"""
import heapq
import json
import random
import sys

ADD, REMOVE, READY, MET, STEPPED = range(5)
END = 40_000_000


def load(path, wanted):
    rows = [line.split(",") for line in open(path).read().split()]
    events = [(int(t), ADD if what == "add" else REMOVE, i, name) for i, (t, what, name) in enumerate(rows)]
    taken, kept = set(), []
    for event in sorted(events):
        name = event[3]
        if event[1] == ADD and len(taken) < wanted:
            taken.add(name)
        elif name not in taken:
            continue
        elif event[1] == REMOVE:
            taken.remove(name)
        kept.append(event)
    return kept


def play(trace, model):
    events = load(trace, model.get("wanted", 10**9))
    heapq.heapify(events)
    number, stages, step_ms = len(events), model["stages"], model["step_ms"]
    added, ready, place, at, doubled = {}, set(), {}, {}, set()
    state, mark, length, begin, end, slow = "stands", 0, 0, 0, 0, False
    steps = removals = level2 = rendezvous = 0
    first = last = None
    now = paid = boot = rebuild = pipelines = 0

    def post(t, kind, what):
        nonlocal number
        number += 1
        heapq.heappush(events, (t, kind, 10**9 + number, what))

    def meet(t, ms):
        nonlocal state, mark, length, rendezvous
        state, length, mark, rendezvous = "meets", ms, mark + 1, rendezvous + 1
        place.clear(), at.clear(), doubled.clear()
        post(t + ms, MET, mark)

    def step(t):
        nonlocal state, mark, end, slow, first
        first = t if first is None else first
        state, mark, slow = "steps", mark + 1, bool(doubled)
        end = t + int((1.5 if slow else 1) * step_ms[pipelines - 1])
        post(end, STEPPED, mark)

    while events:
        t, kind, _, what = heapq.heappop(events)
        if t > END:
            break
        if kind in (MET, STEPPED) and what != mark or kind == READY and what not in added:
            continue
        paid += len(added) * (t - now)
        boot += (len(added) - len(ready)) * (t - now)
        rebuild += len(ready) * (t - now) * (state == "meets")
        now = t
        if kind == ADD:
            number += 1
            added[what] = number
            post(t + 45_000, READY, what)
        elif kind == REMOVE:
            removals += 1
            added.pop(what)
            was_ready = what in ready
            ready.discard(what)
            if state == "meets" and was_ready:
                mark += 1
                post(t + length, MET, mark)
            elif what in at:
                d, p = at.pop(what)
                del place[d, p]
                before = place.get((d, (p - 1) % stages))
                if before is None or before in doubled or what in doubled:
                    level2 += 1
                    meet(t, 30_000)
                else:
                    doubled.add(before)
                    if not slow:
                        slow, mark = True, mark + 1
                        end = t + int(1.5 * (end - t))
                        post(end, STEPPED, mark)
        elif kind == READY:
            ready.add(what)
            if state == "stands":
                meet(t, 30_000)
        elif kind == MET:
            line = sorted(ready, key=added.get)
            pipelines = min(len(line) // stages, len(step_ms))
            for i, name in enumerate(line[:pipelines * stages]):
                at[name] = divmod(i, stages)
                place[divmod(i, stages)] = name
            if pipelines:
                step(t)
            else:
                state = "stands"
        else:
            steps, last = steps + 1, t
            active, waits, x = len(at), len(ready) - len(at), len(doubled)
            if x and waits >= x or x and 2 * x / active > 0.05 or \
                    min((active + waits) // stages, len(step_ms)) > pipelines:
                meet(t, model["local_ms"])
            else:
                step(t)
    rate = steps * model["batch"] / ((last - first) / 1000) if steps else 0
    usd = 0.91 * paid / now if now else 0
    on = model["on_demand"]
    base = model["batch"] / (on["step_ms"] / 1000) * 3600 / (on["nodes"] * 3.06)
    return {"steps": steps, "removals": removals, "level2": level2, "rendezvous": rendezvous,
            "samples_per_s": rate, "usd_per_h": usd, "value_ratio": rate * 3600 / usd / base if steps else 0,
            "paid": paid, "boot": boot, "rebuild": rebuild}


def draw(n, folder):
    for case in range(n):
        r = random.Random(case)
        grain = r.choice([1, 1000, 15_000])
        stages, limit = r.randint(1, 5), r.choice([1, 2, 3, 4, 5])
        step = r.choice([5000, 15_000, 1450, 33_333])
        model = {"name": "case", "stages": stages, "batch": r.randint(1, 500),
                 "local_ms": r.choice([0, 5000, 20_000, 30_000]),
                 "step_ms": [max(1450, step - 700 * d) for d in range(limit)],
                 "on_demand": {"nodes": r.randint(1, 30), "step_ms": r.randint(1, 5000)}}
        if r.random() < 0.5:
            model["wanted"] = r.randint(1, 24)
        lines, there, t = [], [], 0
        span = r.choice([3_000_000, 38_000_000, 45_000_000])
        for name in range(r.randint(1, 120)):
            t = min(t + r.choice([0, 0, r.randint(0, 2 * span // 120)]), span) // grain * grain
            lines.append((t, "add", f"m{name}"))
            if r.random() < 0.8:
                lines.append((t + r.choice([0, 45_000, 75_000, r.randint(0, span // 3)]) // grain * grain,
                              "remove", f"m{name}"))
        with open(f"{folder}/trace{case}", "w") as out:
            out.writelines(f"{t},{what},{name}\n" for t, what, name in sorted(lines, key=lambda x: x[0]))
        json.dump(model, open(f"{folder}/model{case}", "w"))


def compare(n, folder):
    for case in range(n):
        ours = json.load(open(f"{folder}/ours{case}"))
        played = play(f"{folder}/trace{case}", json.load(open(f"{folder}/model{case}")))
        for key in "steps", "removals", "level2", "rendezvous":
            assert ours[key] == played[key], (case, key, ours[key], played[key])
        for key in "samples_per_s", "usd_per_h", "value_ratio":
            assert abs(ours[key] - played[key]) <= 1e-9 * played[key], (case, key, ours[key], played[key])
        paid = ours["paid"]
        parts = [paid[key] for key in paid if key not in ("ms", "nano_usd")]
        assert len(parts) == 8 and sum(part["ms"] for part in parts) == paid["ms"] == played["paid"], case
        assert sum(part["nano_usd"] for part in parts) == paid["nano_usd"], case
        assert paid["nano_usd"] == paid["ms"] * 910_000_000 // 3_600_000, case
        assert paid["boot"]["ms"] == played["boot"] and paid["rebuild"]["ms"] == played["rebuild"], case


if __name__ == "__main__":
    {"draw": draw, "compare": compare}[sys.argv[1]](int(sys.argv[2]), sys.argv[3])
