#!/usr/bin/env python3
"""What `as-it-was` and `slurm` have to come to, from the rules in src/clustersim/slurm.h alone: usage is
summed from intervals at every question, a free place is looked for by trying every moment at which something
ends, a preemption by asking what would be without each running job.

slurm_replay.py JOBS.csv TYPE:N,...|SINFO.txt [K=X,...] prints a line a job: its id, when each begins, as it
was and by Slurm's rules (None: never), in seconds after the first submission, and how long it ran in vain
before it was preempted; then mean waits and makespans. Slow, for some hundred jobs."""
import csv
import math
import os
import sys

WEEK = 7 * 86400.0


def setting(text):
    s = {"age": 1000.0, "fairshare": 10000.0, "size": 1000.0, "partition": 1000.0, "qos": 0.0,
         "max-age": WEEK, "half-life": WEEK, "limit": 365 * 86400.0, "depth": 500.0,
         "backfill": "conservative", "small": False}
    for one in filter(None, text.split(",")):
        key, _, value = one.partition("=")
        s[key] = True if key == "small" else value if key == "backfill" else float(value)
    return s


class Job:
    def __init__(self, number, r, first):
        self.number, self.id = number, r["job_id"]
        self.user, self.account = r["user"], r["account"]
        self.partition, self.qos, self.type = r["partition"], r["qos"], r["type"]
        self.n, self.came = int(r["gpus"]), float(r["submit"]) - first
        self.took = float(r["duration"])
        self.waited = max(0.0, float(r["start"]) - float(r["submit"])) if r["start"] else 0.0
        self.held = float(r["end"]) - float(r["start"]) if r["end"] and r["start"] else self.took
        self.asked = float(r["limit"]) if r["limit"] else None
        self.stays = []                 # [from, to, limit, {place: devices}, partition]
        self.seen = False               # it has been in the queue
        self.lost = 0.0                 # of stays that were cut short

    def began(self):
        return self.stays[0][0] if self.stays else None


class Partition:
    def __init__(self, name="", tier=1, factor=1.0, most=math.inf, mode="OFF"):
        self.name, self.tier, self.factor, self.most, self.mode = name, tier, factor, most, mode


class Place:
    """Devices of a kind whose nodes are in the same partitions."""
    def __init__(self, name, gpu, of):
        self.name, self.gpu, self.of, self.n = name, gpu, of, 0


def seconds(text):
    if text == "infinite":
        return math.inf
    days, _, rest = text.rpartition("-")
    h, m, s = ([0.0, 0.0] + [float(x) for x in rest.split(":")])[-3:]
    return float(days or 0) * 86400 + h * 3600 + m * 60 + s


def cluster(text):
    """Places in order, partitions in order; None where the cluster has none."""
    if not os.path.exists(text):
        places = []
        for one in text.split(","):
            t, n = one.split(":")
            places.append(Place(t, t, None))
            places[-1].n = int(n)
        return sorted(places, key=lambda p: p.name), None
    widths = [96, 16, 64, 256, 256, 16, 24, 16, 24, 24]
    nodes, partitions = {}, {}
    for line in open(text):
        cells, at = [], 0
        for w in widths:
            cells.append(line[at:at + w].strip())
            at += w
        name, _, partition, gres, _, _, most, tier, factor, mode = cells
        partitions.setdefault(partition, Partition(partition, int(tier), float(factor), seconds(most), mode))
        nodes.setdefault(name, [gres.split(":"), []])[1].append(partition)
    rank = list(partitions)
    kinds = {}
    for gres, of in nodes.values():
        key = tuple(sorted(of, key=rank.index))
        kinds.setdefault(gres[1], {}).setdefault(key, 0)
        kinds[gres[1]][key] += int(gres[2])
    places = []
    for gpu, by in kinds.items():
        for of, n in by.items():
            places.append(Place(gpu + "@" + "+".join(of) if len(by) > 1 else gpu, gpu, of))
            places[-1].n = n
    return sorted(places, key=lambda p: p.name), partitions


def fair_share(jobs, s, now):
    """Factor of each (account, user) that has come."""
    used, shares = {}, {}
    for j in jobs:
        if not j.seen:
            continue
        used.setdefault((j.account, j.user), 0.0)
        for begin, end, *_ in j.stays:
            a, b = now - begin, now - min(now, end)
            used[j.account, j.user] += j.n * s["half-life"] / math.log(2) * (
                2 ** (-b / s["half-life"]) - 2 ** (-a / s["half-life"]))
    share = lambda name: s.get("share." + name, 1.0)
    accounts = {a for a, _ in used}
    of = {a: sum(u for (b, _), u in used.items() if a == b) for a in accounts}
    level_a = {a: math.inf if of[a] <= 0 else
               share(a) / sum(map(share, accounts)) / (of[a] / sum(of.values())) for a in accounts}

    def level(owner):
        a, u = owner
        if used[owner] <= 0:
            return level_a[a], math.inf
        siblings = [v for b, v in used if b == a]
        return level_a[a], share(u) / sum(map(share, siblings)) / (used[owner] / of[a])
    levels = {owner: level(owner) for owner in used}
    return {owner: (len(used) - sum(1 for o in used if close_above(levels[o], levels[owner]))) / len(used)
            for owner in used}


def close_above(x, y):
    """x is before y; what differs by rounding alone does not differ."""
    for a, b in zip(x, y):
        if a != b and not math.isclose(a, b, rel_tol=1e-12):
            return a > b
    return False


def part_of_partition(j, p, partitions, s):
    if partitions is None:
        most = max([1.0] + [v for k, v in s.items() if k.startswith("partition.")])
        return s.get("partition." + j.partition, 1.0) / most
    number = lambda q: s.get("partition." + q.name, q.factor)
    most = max([number(q) for q in partitions.values()] +
               [v for k, v in s.items() if k.startswith("partition.")])
    return min(1.0, number(p) / most) if most > 0 else 0.0


def priority(j, p, partitions, s, now, total, factor):
    size = j.n / total
    qos = max([0.0] + [v for k, v in s.items() if k.startswith("qos.")])
    return math.floor(
        s["age"] * min(1.0, (now - j.came) / s["max-age"]) + s["fairshare"] * factor[j.account, j.user] +
        s["size"] * (1 - size if s["small"] else size) +
        s["partition"] * part_of_partition(j, p, partitions, s) +
        s["qos"] * (s.get("qos." + j.qos, 0.0) / qos if qos > 0 else 0.0))


def earliest(held, places, need, limit, now):
    """When, and how many of each place. held: {place: [(from, to, devices)]}."""
    moments = {now} | {b for p in places for _, b, _ in held[p] if b > now}
    for t in sorted(moments):
        got = {}
        for p in places:
            inside = [t] + [a for a, _, _ in held[p] if t < a < t + limit]
            free = min(p.n - sum(d for a, b, d in held[p] if a <= m < b) for m in inside)
            if free > 0 and need > sum(got.values()):
                got[p] = min(free, need - sum(got.values()))
        if sum(got.values()) == need:
            return t, got
    return math.inf, {}


class Queue:
    def __init__(self, jobs, places, partitions, s):
        self.jobs, self.places, self.partitions, self.s = jobs, places, partitions, s
        self.waiting, self.running, self.again = [], [], []
        self.preempts = any(p.mode in ("REQUEUE", "CANCEL") for p in (partitions or {}).values())

    def ways(self, j):
        mine = [p for p in (self.partitions or {}).values() if p.name in j.partition.split(",")]
        large_enough = lambda p: any(sum(q.n for q in kind) >= j.n for kind in self.kinds(j, p))
        return [p for p in mine or [Partition()]
                if large_enough(p) and (j.asked is None or j.asked <= 0 or j.asked <= p.most)]

    def limit(self, j, p):
        if j.asked is not None and 0 < j.asked < math.inf:
            return j.asked
        return p.most if p.most < math.inf else self.s["limit"]

    def kinds(self, j, p):
        """Lists of places, by kind."""
        out = {}
        known = {q.gpu for q in self.places}
        for q in self.places:
            if (not j.type or q.gpu == j.type or j.type not in known) and (
                    not p.name or p.name in q.of):
                out.setdefault(q.gpu, []).append(q)
        for gpu in sorted(out):
            yield sorted(out[gpu], key=lambda q: (len(q.of or ()), q.name))

    def held(self, now, without=()):
        out = {p: [] for p in self.places}
        for j in self.running:
            if j in without:
                continue
            begin, _, limit, on, _ = j.stays[-1]
            for p, n in on.items():
                out[p].append((begin, max(begin + limit, now + 1), n))
        for p, from_, to, n in self.reserved:
            out[p].append((from_, to, n))
        return out

    def preempt(self, j, p, now, closed):
        for places in ([q for q in k if q not in closed] for k in self.kinds(j, p)):
            fits = lambda without: earliest(self.held(now, without), places, j.n, self.limit(j, p), now)
            turn = [k for k in self.running if k.stays[-1][4].tier < p.tier and
                    k.stays[-1][4].mode in ("REQUEUE", "CANCEL") and set(k.stays[-1][3]) & set(places)]
            turn.sort(key=lambda k: (k.stays[-1][4].tier, k.n, -k.number))
            for n in range(1, len(turn) + 1):
                if fits(turn[:n])[0] <= now:
                    break
            else:
                continue
            go = turn[:n]
            for k in list(go):
                if fits([x for x in go if x is not k])[0] <= now:
                    go.remove(k)
            on = fits(go)[1]
            for k in go:
                k.lost += now - k.stays[-1][0]
                k.stays[-1][1] = now
                self.running.remove(k)
                if k.stays[-1][4].mode == "REQUEUE":
                    self.again.append((now + 121, k))
            return on
        return None

    def look(self, now):
        factor = fair_share(self.jobs, self.s, now)
        total = sum(p.n for p in self.places)
        self.reserved = []
        order = [(-p.tier, -priority(j, p, self.partitions, self.s, now, total, factor), j.number, i, j, p)
                 for j in self.waiting for i, p in enumerate(self.ways(j))]
        looked, closed, kept = 0, set(), set()
        for *_, j, p in sorted(order, key=lambda e: e[:4]):
            if looked >= self.s["depth"]:
                break
            if j not in self.waiting:
                continue
            best = (math.inf, {}, [])
            for places in self.kinds(j, p):
                open_ = [q for q in places if q not in closed]
                t, on = earliest(self.held(now), open_, j.n, self.limit(j, p), now)
                if t < best[0]:
                    best = t, on, open_
            t, on, places = best
            if t > now and self.preempts:
                by_force = self.preempt(j, p, now, closed)
                if by_force is not None:
                    t, on = now, by_force
            if t <= now:
                j.stays.append([now, now + j.took, self.limit(j, p), on, p])
                self.running.append(j)
                self.waiting.remove(j)
                continue
            looked += 1
            if t == math.inf:
                continue
            if self.s["backfill"] == "none":
                closed |= {q for places in self.kinds(j, p) for q in places}
            elif self.s["backfill"] == "conservative" or not kept & set(places):
                self.reserved += [(q, t, t + self.limit(j, p), n) for q, n in on.items()]
            kept |= set(places)

    def run(self):
        ahead = sorted(self.jobs, key=lambda j: j.number)
        while ahead or self.running or self.again:
            now = min([j.came for j in ahead[:1]] + [j.stays[-1][1] for j in self.running] +
                      [t for t, _ in self.again])
            self.running = [j for j in self.running if j.stays[-1][1] > now]
            while ahead and ahead[0].came <= now:
                ahead[0].seen = True
                self.waiting.append(ahead.pop(0))
            self.waiting += [j for t, j in self.again if t <= now]
            self.again = [(t, j) for t, j in self.again if t > now]
            self.look(now)


def main():
    with open(sys.argv[1], newline="") as f:
        rows = list(csv.DictReader(f))
    first = min(float(r["submit"]) for r in rows)
    jobs = [Job(i, r, first) for i, r in enumerate(rows)]
    places, partitions = cluster(sys.argv[2])
    Queue(jobs, places, partitions, setting(sys.argv[3] if len(sys.argv) > 3 else "")).run()
    for j in jobs:
        print(j.id, j.came + j.waited, j.began(), j.lost)
    mean = lambda xs: sum(xs) / len(xs)
    print("waits", mean([j.waited for j in jobs]), mean([j.began() - j.came for j in jobs if j.stays]))
    print("makespan", max(j.came + j.waited + j.held for j in jobs),
          max(j.stays[-1][1] for j in jobs if j.stays))


if __name__ == "__main__":
    main()
