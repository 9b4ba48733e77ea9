#!/usr/bin/env python3
"""The recurrence of PipeDream's program, written down as it is published: what bench/partition.sh compares
with.

    partition_plain.py GRAPH.txt --machines N[,M...] --bandwidth B[,B...] [--activations R] [--straight]
                       [--fewer]
                       [--memory BYTES] [--compress-branches] [--skip]

Prints {"predicted_s": ..., "states": ...} of the variant `code`. Plain Python, lists and sets, no library; it
shares nothing with heddle's sources. Like the program it tries every split, and on the outermost level
computes only what begins at the first cut. --skip leaves out a split whose first part is no faster than the
best so far: a line that the published recurrence has not."""

import argparse
import json
import math


def read_graph(path):
    """Node: [description, microseconds, bytes out, bytes of weights]; edges in the order of the file."""
    nodes, edges = {}, []
    for line in open(path):
        parts = line.rstrip("\n").split(" -- ")
        if line.startswith("\t"):
            edge = (parts[0].strip(), parts[1].strip())
            if edge not in edges:
                edges.append(edge)
        elif line.strip():
            value = dict(field.split("=", 1) for field in parts[2].split(", "))
            ms = lambda name: round(float(value[name]) * 1000)
            size = value["activation_size"]
            out = sum(int(float(x)) for x in size.strip("[]").split(";")) if size.strip("[]") else 0
            nodes[parts[0]] = [
                parts[1],
                ms("forward_compute_time") + ms("backward_compute_time"),
                out,
                int(float(value["parameter_size"])),
            ]
    return nodes, edges


def neighbours(nodes, edges):
    after, before = {n: [] for n in nodes}, {n: [] for n in nodes}
    for a, b in edges:
        after[a].append(b)
        before[b].append(a)
    return after, before


def compress(nodes, edges):
    """Chains behind a fork become one node, named after their first."""
    after, before = neighbours(nodes, edges)
    into = {}
    for u in nodes:
        for x in after[u] if len(after[u]) > 1 else []:
            if len(before[x]) != 1:
                continue
            chain = [x]
            while len(after[chain[-1]]) == 1 and len(before[after[chain[-1]][0]]) == 1:
                chain.append(after[chain[-1]][0])
            if len(chain) > 1:
                nodes[x] = [
                    nodes[x][0],
                    sum(nodes[c][1] for c in chain),
                    nodes[chain[-1]][2],
                    sum(nodes[c][3] for c in chain),
                ]
                into.update((c, x) for c in chain[1:])
    moved = []
    for a, b in edges:
        edge = (into.get(a, a), into.get(b, b))
        if edge[0] != edge[1] and edge not in moved:
            moved.append(edge)
    return {n: v for n, v in nodes.items() if n not in into}, moved


def drop(nodes, edges, gone):
    return {n: v for n, v in nodes.items() if n not in gone}, [
        e for e in edges if e[0] not in gone and e[1] not in gone
    ]


def without_ends(nodes, edges):
    after, before = neighbours(nodes, edges)
    nodes, edges = drop(nodes, edges, {n for n in nodes if not before[n] and nodes[n][0].startswith("Input")})
    after, before = neighbours(nodes, edges)
    return drop(nodes, edges, {n for n in nodes if not after[n] and nodes[n][0].startswith("__getitem__")})


def reach(order, step):
    """For every node all that `step` leads to; `order` begins where it leads."""
    seen = {}
    for n in order:
        seen[n] = set(step[n]).union(*(seen[m] for m in step[n]))
    return seen


def topological(nodes, after, before):
    left = {n: len(before[n]) for n in nodes}
    order = [n for n in nodes if not left[n]]
    for n in order:
        for x in after[n]:
            left[x] -= 1
            if not left[x]:
                order.append(x)
    return order


def cuts_of(nodes, edges):
    """Antichains in a linear order: sums of times, weights and activations of all that has run, bytes out,
    and the cuts before each."""
    names = list(nodes)
    at = {n: i for i, n in enumerate(names)}
    named_after, named_before = neighbours(nodes, edges)
    after = {at[n]: [at[x] for x in named_after[n]] for n in names}
    before = {at[n]: [at[x] for x in named_before[n]] for n in names}
    order = topological(after, after, before)
    ancestors, descendants = reach(order, before), reach(order[::-1], after)
    value = [nodes[n] for n in names]

    def augmented(cut):
        live = set(cut)
        for a in cut:
            for q in ancestors[a]:
                if any(o != a and o not in ancestors[a] for o in after[q]):
                    live.add(q)
        return sorted(live)

    first = (min(n for n in after if not before[n]),)
    found, children, queue = {first: 0}, [[]], [first]
    aug = []
    for cut in queue:
        live = augmented(cut)
        aug.append(live)
        members = set(live)
        for u in live:
            for x in after[u]:
                if x in cut or descendants[x] & members:
                    continue
                new = (members - {u}) | {x}
                new = tuple(sorted(m for m in new if not descendants[m] & new))
                if new not in found:
                    found[new] = len(queue)
                    queue.append(new)
                    children.append([])
                if found[new] not in children[found[cut]]:
                    children[found[cut]].append(found[new])

    post, seen, stack = [], {0}, [(0, iter(children[0]))]
    while stack:
        state, rest = stack[-1]
        for child in rest:
            if child not in seen:
                seen.add(child)
                stack.append((child, iter(children[child])))
                break
        else:
            post.append(state)
            stack.pop()
    linear = post[::-1]
    place = {s: j for j, s in enumerate(linear)}
    before_cut = {s: [] for s in linear}
    for s in linear:
        for child in children[s]:
            before_cut[child].append(s)
    strict = reach(linear, before_cut)
    sums = []
    for s in linear:
        ran = set(aug[s]).union(*(ancestors[n] for n in aug[s]))
        sums.append([sum(value[n][f] for n in ran) for f in (1, 3, 2)] + [sum(value[n][2] for n in aug[s])])
    return sums, [{place[p] for p in strict[s]} for s in linear]


def solve_level(sums, before, T, M, bandwidth, below, outermost, o):
    """A[i][j][x]: the slowest stage of cuts i .. j on x components, at best; None below i."""
    n = len(sums)
    weights, acts, out = [s[1] for s in sums], [s[2] for s in sums], [s[3] for s in sums]
    upto = lambda column, i: column[i - 1] if i else 0
    fits = (
        lambda first, last, x, y: o.memory is None
        or math.ceil((M - x) / y) * (acts[last] - upto(acts, first) + weights[last] - upto(weights, first))
        <= o.memory
    )
    A = [None] * n
    for i in range(1 if outermost else n):
        row = A[i] = [None] * n
        hidden = before[i - 1] if i else ()
        for j in range(i, n):
            here = row[j] = [math.inf] * (M + 1)
            w = weights[j] - upto(weights, i)
            splits = [k for k in sorted(before[j]) if k >= i and k not in hidden]
            for x in range(1, M + 1):
                best = math.inf
                if (x == 1 or not o.straight) and fits(i, j, x, x):
                    best = (T[i][j] + 4 * (x - 1) * w / (bandwidth * x) / below) / x
                if o.fewer and x >= 2 and j > i and here[x - 1] < best:
                    best = here[x - 1]
                for m in range(1, 2 if o.straight else x):
                    if m >= x:
                        break
                    for k in splits:
                        left = row[k][x - m]
                        if (o.skip and left >= best) or not fits(k + 1, j, x, m):
                            continue
                        last = (T[k + 1][j] + 4 * (m - 1) * (weights[j] - weights[k]) / (bandwidth * m)) / m
                        if o.activations is not None:
                            last = max(last, 2 * out[k] / (bandwidth * m) / o.activations)
                            if j < n - 1:
                                last = max(last, 2 * out[j] / (bandwidth * m) / o.activations)
                        best = min(best, max(left, last))
                here[x] = best
    return A


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("graph")
    parser.add_argument("--machines", type=lambda s: [int(x) for x in s.split(",")], required=True)
    parser.add_argument("--bandwidth", type=lambda s: [float(x) for x in s.split(",")], required=True)
    parser.add_argument("--activations", type=float)
    parser.add_argument("--memory", type=float)
    for flag in ("--straight", "--fewer", "--compress-branches", "--skip"):
        parser.add_argument(flag, action="store_true")
    o = parser.parse_args()
    nodes, edges = read_graph(o.graph)
    if o.compress_branches:
        nodes, edges = compress(nodes, edges)
    sums, before = cuts_of(*without_ends(nodes, edges))
    n, below = len(sums), 1
    T = [
        [None if j < i else (sums[j][0] - (sums[i - 1][0] if i else 0)) / 1e6 for j in range(n)]
        for i in range(n)
    ]
    for level, (M, bandwidth) in enumerate(zip(o.machines, o.bandwidth)):
        A = solve_level(sums, before, T, M, bandwidth, below, level == len(o.machines) - 1, o)
        T = (
            [[None if j < i else A[i][j][M] for j in range(n)] for i in range(n)]
            if A[-1] is not None
            else [[c[M] for c in A[0]]]
        )
        below = M
    print(json.dumps({"predicted_s": T[0][n - 1], "states": n}))


main()
