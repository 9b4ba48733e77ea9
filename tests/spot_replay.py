"""A second reading of the rules in src/spot/replay.h: one heap of events, dictionaries, nothing shared.

spot_replay.py draw N FOLDER        writes N random traces and models, many of them with events at equal times
spot_replay.py ways                 prints the ways through losses that are played
spot_replay.py compare N FOLDER     plays them, and compares with what the program printed as oursCASE.WAY
"""
import heapq
import json
import random
import sys

ADD, REMOVE, NOTICE, READY, MET, STEPPED = range(6)
WAYS = ["shadow", "reroute:0", "reroute:5", "checkpoint:1", "checkpoint:4", "checkpoint:50"]


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


def play(trace, model, resilience="shadow"):
    events = load(trace, model.get("wanted", 10**9))
    heapq.heapify(events)
    number, stages, step_ms = len(events), model["stages"], model["step_ms"]
    order = [name for _, kind, _, name in sorted(events) if kind == ADD]
    came = {name: t for t, kind, _, name in events if kind == ADD}
    share = round(model.get("announced", 0) * 1_000_000)
    for t, kind, _, name in list(events):
        i = order.index(name)
        if kind == REMOVE and (i + 1) * share // 1_000_000 > i * share // 1_000_000:
            heapq.heappush(events, (max(came[name], t - model.get("lead_ms", 0)), NOTICE, i, (name, t)))
    added, ready, place, at, doubled = {}, set(), {}, {}, set()
    state, mark, length, begin, end, slow = "stands", 0, 0, 0, 0, False
    leaves, evacuated, given_up = set(), 0, 0
    way, _, every = resilience.partition(":")
    every, shadow, alone = int(every or 0), way == "shadow", way == "checkpoint"
    times = {"boot_ms": 45_000, "rendezvous_ms": 30_000, "save_ms": 10_000, "reload_ms": 30_000,
             "pause_ms": 0, "end_ms": 40_000_000, **model}
    since = again = saves = saving = lost = saved_at = 0           # since: steps after the last checkpoint
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
        nonlocal lost
        place.clear(), at.clear(), doubled.clear()
        lost = 0
        post(t + ms, MET, mark)

    def start(t):
        meet(t, times["rendezvous_ms"] + (times["reload_ms"] if not shadow and steps else 0))

    def step(t):
        nonlocal state, mark, end, slow, first
        first = t if first is None else first
        state, mark, slow = "steps", mark + 1, bool(doubled)
        ms = step_ms[pipelines - 1]
        end = t + (ms * (len(at) + lost) // len(at) if lost else int((1.5 if slow else 1) * ms))
        post(end, STEPPED, mark)

    def decide(t, saved):
        nonlocal evacuated
        active, waits, x = len(at), len(ready - leaves - set(at)), lost or len(doubled)
        if (not alone or saved) and (
                leaves & set(at) or x and waits >= x or x and 2 * x / active > 0.05 or
                min((active + waits) // stages, len(step_ms)) > pipelines):
            evacuated += len(leaves & set(at))
            if alone:
                start(t)
            else:
                meet(t, model["local_ms"])
        else:
            step(t)

    def lose(t, what):
        nonlocal mark, end, slow, lost, level2, steps, again, since
        d, p = at.pop(what)
        del place[d, p]
        before = place.get((d, (p - 1) % stages))
        if not shadow and not alone and any(key[1] == p for key in place):
            lost += 1
            if state == "steps":
                mark += 1
                end = t + (end - t) * (len(at) + 1) // len(at) + times["pause_ms"]
                post(end, STEPPED, mark)
        elif not shadow:
            level2, steps, again, since = level2 + 1, steps - since, again + since, 0
            start(t)
        elif before is None or before in doubled or what in doubled:
            level2 += 1
            start(t)
        else:
            doubled.add(before)
            if not slow:
                slow, mark = True, mark + 1
                end = t + int(1.5 * (end - t)) + times["pause_ms"]
                post(end, STEPPED, mark)

    def is_lost_at_once(t, what, ends):
        if what not in at:
            return False
        d, p = at[what]
        if shadow:
            kept = what not in doubled and (d, (p - 1) % stages) in place
        else:
            kept = not alone and sum(key[1] == p for key in place) > 1
        useable = ends - t - min(5000, (ends - t) // 10)
        move = 0 if kept else times["save_ms"] if alone else model["local_ms"]
        return useable < (end if state == "steps" else saved_at) - t + move

    while events:
        t, kind, _, what = heapq.heappop(events)
        if t > times["end_ms"]:
            break
        if kind in (MET, STEPPED) and what != mark or kind == READY and what not in added:
            continue
        paid += len(added) * (t - now)
        boot += (len(added) - len(ready)) * (t - now)
        rebuild += len(ready) * (t - now) * (state == "meets")
        saving += len(at) * (t - now) * (state == "saves")
        now = t
        if kind == ADD:
            number += 1
            added[what] = number
            post(t + times["boot_ms"], READY, what)
        elif kind == REMOVE:
            removals += 1
            added.pop(what)
            was_ready = what in ready
            ready.discard(what)
            if state == "meets" and was_ready and what not in leaves:
                mark += 1
                post(t + length, MET, mark)
            elif what in at:
                lose(t, what)
        elif kind == NOTICE:
            if what[0] in added:
                leaves.add(what[0])
                if is_lost_at_once(t, *what):
                    given_up += 1
                    lose(t, what[0])
        elif kind == READY:
            ready.add(what)
            if state == "stands" and what not in leaves:
                start(t)
        elif kind == MET:
            line = sorted(ready - leaves, key=added.get)
            pipelines = min(len(line) // stages, len(step_ms))
            for i, name in enumerate(line[:pipelines * stages]):
                at[name] = divmod(i, stages)
                place[divmod(i, stages)] = name
            if pipelines:
                step(t)
            else:
                state = "stands"
        elif state == "saves":
            saves, since = saves + 1, 0
            decide(t, True)
        else:
            steps, last, since = steps + 1, t, since + 1
            if every and (since >= every or alone and leaves & set(at)):
                state, mark, saved_at = "saves", mark + 1, t + times["save_ms"]
                post(saved_at, STEPPED, mark)
            else:
                decide(t, False)
    rate = steps * model["batch"] / ((last - first) / 1000) if steps else 0
    usd = 0.91 * paid / now if now else 0
    on = model["on_demand"]
    base = model["batch"] / (on["step_ms"] / 1000) * 3600 / (on["nodes"] * 3.06)
    return {"steps": steps, "removals": removals, "level2": level2, "rendezvous": rendezvous,
            "samples_per_s": rate, "usd_per_h": usd, "value_ratio": rate * 3600 / usd / base if steps else 0,
            "paid": paid, "boot": boot, "rebuild": rebuild, "saves": saves, "steps_again": again,
            "saving": saving, "evacuated": evacuated, "given_up": given_up}


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
        for key, most in ("boot_ms", 90_000), ("rendezvous_ms", 60_000), ("save_ms", 20_000), \
                ("reload_ms", 40_000), ("pause_ms", 3000), ("end_ms", 50_000_000):
            if r.random() < 0.4:
                model[key] = r.randint(1 if key == "end_ms" else 0, most) // grain * grain or 1
        if case % 2:
            model["announced"] = r.choice([0.25, 0.5, 1])
            model["lead_ms"] = r.choice([0, 2000, 30_000, 120_000, 150_000, r.randint(0, 150_000)])
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
    evacuated = given_up = 0
    for case in range(n):
        model = json.load(open(f"{folder}/model{case}"))
        for way in WAYS:
            ours = json.load(open(f"{folder}/ours{case}.{way}"))
            compare_one((case, way), ours, play(f"{folder}/trace{case}", model, way), way)
            evacuated, given_up = evacuated + ours["evacuated"], given_up + ours["given_up"]
    assert evacuated > n and given_up > n, (evacuated, given_up)


def compare_one(case, ours, played, way):
    for key in "steps", "removals", "level2", "rendezvous", "saves", "steps_again", \
            "evacuated", "given_up":
        assert ours[key] == played[key], (case, key, ours[key], played[key])
    for key in "samples_per_s", "usd_per_h", "value_ratio":
        assert abs(ours[key] - played[key]) <= 1e-9 * played[key], (case, key, ours[key], played[key])
    paid = ours["paid"]
    parts = [paid[key] for key in paid if key not in ("ms", "nano_usd")]
    assert len(parts) == 8 and sum(part["ms"] for part in parts) == paid["ms"] == played["paid"], case
    assert sum(part["nano_usd"] for part in parts) == paid["nano_usd"], case
    assert paid["nano_usd"] == paid["ms"] * 910_000_000 // 3_600_000, case
    assert paid["boot"]["ms"] == played["boot"] and paid["rebuild"]["ms"] == played["rebuild"], case
    assert paid["redundant"]["ms"] == played["saving"], case


def ways():
    print(*WAYS)


if __name__ == "__main__":
    {"draw": draw, "compare": compare, "ways": ways}[sys.argv[1]](*map(int, sys.argv[2:3]), *sys.argv[3:])
