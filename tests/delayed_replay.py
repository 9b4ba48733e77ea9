#!/usr/bin/env python3
"""delayed_replay.py PROBLEM RUN UPDATE NSTAGES V STEPS

Replays a run of a job with delayed updates (optim.update) from its version map alone, in numpy's f32, and
compares all that the run's newest checkpoint holds, bit for bit: parameters, their earlier versions, slots.

PROBLEM: `heddle bench step JOB --save`, initial parameters and the rows of each step. The model is
builtin:mlp of layers of width 2 with a loss of mse and one output, a stage of the job a layer, and a virtual
node of one row: then a sum has two terms, or is the tree over virtual nodes, and its order is known. Written
from the paper (Narayanan et al., SOSP 2019) and docs/pipelines.md; it shares no line with the program.

Exit code: 0 equal, 1 different."""
import json
import pathlib
import struct
import sys

import numpy as np

f32 = np.float32


def load(path):
    data = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    meta = head.pop("__metadata__", {})
    tensors = {}
    for name, t in head.items():
        first, end = t["data_offsets"]
        if t["dtype"] == "F32":
            tensors[name] = np.frombuffer(data[8 + n + first:8 + n + end], f32).reshape(t["shape"])
    return tensors, meta


def dot(a, b):
    """Of two terms as one product and one fused multiply-add; numpy's long double has room for it."""
    return f32(np.longdouble(a[1]) * np.longdouble(b[1]) + np.longdouble(f32(a[0] * b[0])))


def gradient(p, layers, x, y):
    """Of the loss of one row, (yhat - y)^2, by hand."""
    h = [x]
    for k in range(1, layers + 1):
        w, b = p[f"fc{k}.weight"], p[f"fc{k}.bias"]
        z = np.array([dot(row, h[-1]) for row in w], f32) + b
        h.append(z if k == layers else np.maximum(z, f32(0)))
    d = f32(2) * (h[layers] - y)
    g = {}
    for k in range(layers, 0, -1):
        w = p[f"fc{k}.weight"]
        g[f"fc{k}.weight"] = np.outer(d, h[k - 1]).astype(f32)
        g[f"fc{k}.bias"] = d
        if k == 1:
            break
        back = d[0] * w[0] if len(d) == 1 else np.array([dot(d, w[:, i]) for i in range(2)], f32)
        d = np.where(h[k - 1] > 0, back, f32(0)).astype(f32)
    return g


def tree(leaves):
    """The canonical tree: neighbours are added, an odd one out goes up as it is."""
    while len(leaves) > 1:
        leaves = [leaves[i] + leaves[i + 1] if i + 1 < len(leaves) else leaves[i]
                  for i in range(0, len(leaves), 2)]
    return leaves[0]


def delay(update, stages, stage, vns):
    ahead = {"flush": 0, "2bw": 1, "stash": -(-(stages - 1 - stage) // vns), "vsync": -(-(stages - 1) // vns)}
    return ahead[update]


def main():
    problem, run, update, stages, vns, steps = sys.argv[1:7]
    stages, vns, steps = int(stages), int(vns), int(steps)
    tensors, meta = load(problem)
    job = json.loads(meta["job"])["optim"]
    names = sorted(n for n in tensors if n.startswith("fc"))
    layers = len(names) // 2
    late = {n: delay(update, stages, int(n[2]) - 1, vns) for n in names}
    version = [{n: tensors[n] for n in names}]
    slot = {n: np.zeros_like(tensors[n]) for n in names}
    lr, mu = f32(job["lr"]), f32(job["momentum"])
    for t in range(steps):
        read = {n: version[max(0, t - late[n])][n] for n in names}
        x, y = tensors[f"step{t}.x"], tensors[f"step{t}.y"]
        leaf = [gradient(read, layers, x[v], y[v]) for v in range(len(x))]
        new = {}
        for n in names:
            zeros = [np.zeros_like(tensors[n])] * (vns - len(leaf))
            g = tree([one[n] for one in leaf] + zeros) * f32(1 / len(x))
            slot[n] = mu * slot[n] + g
            new[n] = version[t][n] - lr * (slot[n] if job["kind"] == "momentum" else g)
        version.append(new)
    folder = max(pathlib.Path(run, "ckpt").glob("step-*"))
    model, _ = load(folder / "model.safetensors")
    rest, _ = load(folder / "optim.safetensors") if (folder / "optim.safetensors").exists() else ({}, {})
    want = {n: version[steps][n] for n in names}
    for n in names:
        want.update({f"{n}@-{k}": version[max(0, steps - k)][n] for k in range(1, late[n] + 1)})
        if job["kind"] == "momentum":
            want[f"{n}.m"] = slot[n]
    have = {**model, **rest}
    wrong = [n for n in sorted({*want, *have})
             if n not in want or n not in have or want[n].tobytes() != have[n].tobytes()]
    for n in wrong:
        print(f"{n}: replay {want.get(n)}, run {have.get(n)}")
    print(f"{update}: {len(want) - len(wrong)} of {len(want)} tensors equal after {steps} steps")
    return 1 if wrong else 0


sys.exit(main())
