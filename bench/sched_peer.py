#!/usr/bin/env python3
"""The published cluster simulator's rules in plain Python, for single jobs: what bench/sched.sh times
against.

Written from the rules (docs/scheduling.md, fidelity gavel), not from anybody's code: dictionaries by job and
type, one turn after the other. Policies: `isolated`, and `max_min_fairness_perf` as the published scheduler
solves it: a program in the words of cvxpy, built again and handed to ECOS at every reset. Prints the average
completion time, the makespan and the seconds it took.

    sched_peer.py TRACE RATES.json v100:8,p100:8,k80:8 [POLICY [SEED]]
"""

import ast
import json
import math
import random
import sys
import time

ROUND, MIN_RESET = 360.0, 1920.0


def read_trace(path):
    jobs = []
    for line in open(path):
        f = line.rstrip("\n").split("\t")
        jobs.append(
            {"kind": (f[0], int(f[6])), "steps": float(f[5]), "scale": int(f[6]), "arrival": float(f[9])}
        )
    return jobs


def read_rates(path, types):
    raw = json.load(open(path))
    return {t: {ast.literal_eval(kind): row["null"] for kind, row in raw[t].items()} for t in types}


def isolated(active, cluster, jobs, rate):
    shares = {}
    for i in active:
        x = {t: n / len(active) / jobs[i]["scale"] for t, n in cluster.items()}
        total = sum(x.values())
        shares[i] = {t: v / max(1.0, total) if rate[i][t] > 0 else 0.0 for t, v in x.items()}
    return shares


def max_min(active, cluster, jobs, rate):
    """The least normalised share, at its most: sum over types of X T s / P, with equal weights."""
    import cvxpy
    import numpy

    types, devices = sorted(cluster), sum(cluster.values())
    table = numpy.array([[rate[i][t] for t in types] for i in active])
    scales = numpy.array([[float(jobs[i]["scale"])] * len(types) for i in active])
    proportional = table @ numpy.array([cluster[t] / devices for t in types])
    x = cvxpy.Variable(table.shape)
    worth = cvxpy.sum(cvxpy.multiply(table * scales / proportional[:, None], x), axis=1)
    program = cvxpy.Problem(
        cvxpy.Maximize(cvxpy.min(worth)),
        [
            x >= 0,
            cvxpy.sum(cvxpy.multiply(scales, x), axis=0) <= [cluster[t] for t in types],
            cvxpy.sum(x, axis=1) <= 1,
        ],
    )
    program.solve(solver="ECOS")
    return {
        i: {t: min(1.0, max(0.0, float(x.value[k, n]))) for n, t in enumerate(types)}
        for k, i in enumerate(active)
    }


# shares, and whether the order of types is drawn in each round
POLICIES = {"isolated": (isolated, True), "max_min_fairness_perf": (max_min, False)}


def split_steps(steps, scale):
    part = steps // scale
    parts = [part] * (scale - 1)
    parts.append(steps - part * (scale - 1))
    return parts


def simulate(jobs, rates, cluster, policy, seed):
    allocate, drawn = POLICIES[policy]
    types = sorted(cluster)
    rng = random.Random(seed + 5)
    devices, first = {}, 0
    for t in types:
        devices[t] = list(range(first, first + cluster[t]))
        first += cluster[t]
    rate = {i: {t: rates[t].get(job["kind"], 0.0) for t in types} for i, job in enumerate(jobs)}
    queue, active, shares, done = list(range(len(jobs))), [], {}, {}
    left = {i: job["steps"] for i, job in enumerate(jobs)}
    t_run, deficit, given, failures = {}, {}, {t: 0.0 for t in types}, {}
    now, last_reset, end, stale = jobs[0]["arrival"], 0.0, 0.0, False
    running, before = [], {}
    while queue or active:
        if not queue and not running:
            last_reset = 0.0
        if running:
            start, end = end, max(r["finish"] for r in running)
            now = end
        elif queue:
            now = jobs[queue[0]]["arrival"]
        for r in sorted(running, key=lambda r: (-r["finish"], r["job"])):
            i, seconds = r["job"], r["finish"] - start
            parts = split_steps(r["steps"], jobs[i]["scale"])
            if seconds <= 0 or min(parts) <= 0:
                stale = True
                failures[i] = failures.get(i, 0) + 1
                if failures[i] == 5:
                    active.remove(i)
                continue
            failures[i] = 0
            t_run[i][r["type"]] += seconds
            given[r["type"]] += seconds
            left[i] -= sum(parts)
            if left[i] <= 0:
                done[i] = r["finish"] - jobs[i]["arrival"]
                active.remove(i)
                stale = True
        while queue and jobs[queue[0]]["arrival"] <= now:
            i = queue.pop(0)
            active.append(i)
            t_run[i] = {t: ROUND / 2 for t in types}
            deficit[i] = {t: 0.0 for t in types}
            stale = True
        if stale and (now - last_reset >= MIN_RESET or last_reset == 0):
            for i in active:
                for t in types:
                    x = shares.get(i, {}).get(t, 0.0)
                    deficit[i][t] += x * (now - last_reset) - (t_run[i][t] - ROUND / 2)
                    t_run[i][t] = ROUND / 2
            given = {t: len(active) * ROUND / 2 for t in types}
            shares = allocate(active, cluster, jobs, rate) if active else {}
            last_reset, stale = now, False
        order = [t for t in ("v100", "p100", "k80") if t in cluster]
        if drawn:
            rng.shuffle(order)
        picked, chosen = set(), {t: [] for t in types}
        for t in order:
            free = cluster[t]
            rows = []
            for i in active:
                x = shares.get(i, {}).get(t, 0.0)
                priority = 0.0
                if i in shares and x > 0 and rate[i][t] > 0:
                    fraction = t_run[i][t] / given[t] if given[t] > 0 else 0.0
                    priority = x / fraction if fraction > 0 else x * 1e9
                rows.append((priority, deficit[i][t], x, i))
            rows.sort(key=lambda r: (-r[0], -r[1], -r[2]))
            for priority, _, _, i in rows:
                if i in picked or rate[i][t] <= 0 or jobs[i]["scale"] > free:
                    continue
                picked.add(i)
                free -= jobs[i]["scale"]
                chosen[t].append(i)
        running, placed = [], {}
        for t in order:
            taken = set()
            for scale in sorted({jobs[i]["scale"] for i in chosen[t]}, reverse=True):
                same = [i for i in chosen[t] if jobs[i]["scale"] == scale]
                for keeps in (True, False):
                    for i in same:
                        if i not in shares or i in placed:
                            continue
                        if keeps:
                            where = before.get(i)
                            if not where or where[0] != t or any(d in taken for d in where[1]):
                                continue
                            got = where[1]
                        else:
                            got = [d for d in devices[t] if d not in taken][:scale]
                        taken.update(got)
                        placed[i] = (t, got)
                        steps = min(math.trunc(rate[i][t] * ROUND), left[i])
                        running.append(
                            {"job": i, "type": t, "steps": steps, "finish": now + steps / rate[i][t]}
                        )
        before = placed
    return sum(done.values()) / len(done), now


def main():
    cluster = {name: int(n) for name, n in (part.split(":") for part in sys.argv[3].split(","))}
    jobs = read_trace(sys.argv[1])
    rates = read_rates(sys.argv[2], cluster)
    begin = time.process_time()
    policy, seed = (sys.argv[4:] + ["isolated", "0"][len(sys.argv) - 4:])[:2]
    average, makespan = simulate(jobs, rates, cluster, policy, int(seed))
    print(f"{average!r} {makespan!r} {time.process_time() - begin:.3f}")


if __name__ == "__main__":
    main()
