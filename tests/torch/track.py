#!/usr/bin/env python3
"""track.py PROBLEM OURS TOLERANCE -- does PyTorch, from the same parameters and rows, lose what we lost, step
by step?

PROBLEM and OURS are of `heddle bench step --save PROBLEM --json >OURS`, plain SGD. Norms are those of the
whole batch. Prints both losses and their relative difference a step, beside how far PyTorch is from itself
when images lie with channels last; exits 1 if one step is off by more than TOLERANCE."""

import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench"))
sys.dont_write_bytecode = True
import torch
import torch.nn.functional as F
from torch_models import Problem

problem, ours, tolerance = Problem(sys.argv[1]), json.load(open(sys.argv[2]))["losses"], float(sys.argv[3])
optim = problem.job["optim"]
if (
    optim["kind"] != "sgd"
    or optim["clip"]
    or optim["weight_decay"]
    or optim["schedule"]["kind"] != "constant"
    or optim["schedule"]["warmup"]
):
    sys.exit("track: this script knows sgd at a constant rate without clipping or decay")


def train(layout):
    model = problem.begin().to(memory_format=layout)
    sgd = torch.optim.SGD(model.parameters(), lr=optim["lr"])
    losses = []
    for step in range(len(ours)):
        x, y = problem.batch(step, layout)
        loss = F.cross_entropy(model(x), y)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def off(some, others):
    return [abs(a - b) / abs(b) for a, b in zip(some, others)]


theirs = train(torch.contiguous_format)
ours_off, own_off = off(ours, theirs), off(train(torch.channels_last), theirs)
for step, (a, b, d, e) in enumerate(zip(ours, theirs, ours_off, own_off)):
    print(f"step {step}: ours {a:.7f}, PyTorch {b:.7f}, off by {d:.1e} (PyTorch from itself {e:.1e})")
sys.exit(max(ours_off) > tolerance)
