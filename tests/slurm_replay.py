#!/usr/bin/env python3
"""What `as-it-was` and `slurm` have to come to, from the rules in src/clustersim/slurm.h alone: usage is
summed from intervals at every question, a free place is looked for by trying every moment at which something
ends.

slurm_replay.py JOBS.csv TYPE:N,... [K=X,...] prints a line a job: its id, when each begins, as it was and by
Slurm's rules, in seconds after the first submission; then mean waits and makespans. Slow, for some hundred
jobs."""
import csv
import math
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
        self.limit = float(r["limit"]) if r["limit"] not in ("", "inf") else math.inf
        self.began = self.on = None


def fair_share(jobs, s, now):
    """Factor of each (account, user) that has come."""
    used, shares = {}, {}
    for j in jobs:
        if j.came > now:
            continue
        used.setdefault((j.account, j.user), 0.0)
        if j.began is not None and j.began <= now:
            a, b = now - j.began, now - min(now, j.began + j.took)
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


def priorities(jobs, waiting, s, now, total):
    factor = fair_share(jobs, s, now)
    of = lambda kind, name, otherwise: s.get(f"{kind}.{name}", otherwise)
    most = lambda kind, otherwise: max([otherwise] + [v for k, v in s.items() if k.startswith(kind + ".")])
    out = {}
    for j in waiting:
        size = j.n / total
        qos = most("qos", 0.0)
        out[j] = math.floor(
            s["age"] * min(1.0, (now - j.came) / s["max-age"]) + s["fairshare"] * factor[j.account, j.user] +
            s["size"] * (1 - size if s["small"] else size) +
            s["partition"] * of("partition", j.partition, 1.0) / most("partition", 1.0) +
            s["qos"] * (of("qos", j.qos, 0.0) / qos if qos > 0 else 0.0))
    return out


def earliest(n, held, j, limit, now):
    """held: (from, to, devices) of one type with n of them."""
    for t in sorted({now} | {b for _, b, _ in held if b > now}):
        moments = [t] + [a for a, _, _ in held if t < a < t + limit]
        if all(sum(d for a, b, d in held if a <= m < b) + j.n <= n for m in moments):
            return t
    return math.inf


def slurm(jobs, types, s):
    waiting, running = [], []
    ahead = sorted(jobs, key=lambda j: j.number)
    total = sum(types.values())
    limit = lambda j: j.limit if 0 < j.limit < math.inf else s["limit"]
    while ahead or running:
        now = min([j.came for j in ahead[:1]] + [j.began + j.took for j in running])
        running = [j for j in running if j.began + j.took > now]
        while ahead and ahead[0].came <= now:
            waiting.append(ahead.pop(0))
        held = {t: [(j.began, max(j.began + limit(j), now + 1), j.n) for j in running if j.on == t]
                for t in types}
        rank = priorities(jobs, waiting, s, now, total)
        looked, closed, reserved = 0, set(), set()
        for j in sorted(waiting, key=lambda j: (-rank[j], j.number)):
            if looked >= s["depth"]:
                break
            can = [t for t in sorted(types) if (not j.type or t == j.type or j.type not in types)]
            at = {t: earliest(types[t], held[t], j, limit(j), now) for t in can if t not in closed}
            best = min(at, key=lambda t: (at[t], t), default=None)
            if best is not None and at[best] <= now:
                j.began, j.on = now, best
                held[best].append((now, now + limit(j), j.n))
                running.append(j)
                waiting.remove(j)
                continue
            looked += 1
            if best is None or at[best] == math.inf:
                continue
            if s["backfill"] == "none":
                closed |= set(can)
            elif s["backfill"] == "conservative" or best not in reserved:
                reserved.add(best)
                held[best].append((at[best], at[best] + limit(j), j.n))


def main():
    with open(sys.argv[1], newline="") as f:
        rows = list(csv.DictReader(f))
    first = min(float(r["submit"]) for r in rows)
    jobs = [Job(i, r, first) for i, r in enumerate(rows)]
    types = {t: int(n) for t, n in (one.split(":") for one in sys.argv[2].split(","))}
    slurm(jobs, types, setting(sys.argv[3] if len(sys.argv) > 3 else ""))
    for j in jobs:
        print(j.id, j.came + j.waited, j.began)
    mean = lambda xs: sum(xs) / len(xs)
    print("waits", mean([j.waited for j in jobs]), mean([j.began - j.came for j in jobs]))
    print("makespan", max(j.came + j.waited + j.held for j in jobs), max(j.began + j.took for j in jobs))


if __name__ == "__main__":
    main()
