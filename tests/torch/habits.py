#!/usr/bin/env python3
"""habits.py -- how people train in PyTorch, as files for src/engine/habits_test.c: groups of parameters,
schedules, averages.

One small net and one data set; for each case a job file and what PyTorch's own optimizers and schedulers make
of it in 50 steps: the rate of each step, each loss, all parameters at the end. In float32 on the CPU.
Run where PyTorch is installed:  python3 habits.py [FOLDER]
The files committed beside this script were made by PyTorch 2.13.0.
"""

import os, sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.optim.lr_scheduler import LambdaLR, OneCycleLR, PolynomialLR, ReduceLROnPlateau

STEPS, BATCH, COUNT = 50, 16, 48

MODEL = """model: {use: builtin:mlp, args: {input: [12], hidden: [9, 7], classes: 4}}
data: {kind: npy, order: sequential, split: {train: 1.0, valid: 0.0}}
batch: {global: 16, virtual_nodes: 4}
"""


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(12, 9), nn.Linear(9, 7), nn.Linear(7, 4)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def of(model, *names):
    return [p for n, p in model.named_parameters() if n in names]


def no_decay(model):
    return [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]


def grouped(model, lr):
    for p in of(model, "fc1.weight"):
        p.requires_grad = False
    return [
        {"params": of(model, "fc2.weight", "fc3.weight"), "weight_decay": 0.1},
        {"params": of(model, "fc1.bias", "fc2.bias"), "lr": lr / 4, "weight_decay": 0.0},
        {"params": of(model, "fc3.bias"), "lr": 2e-3, "weight_decay": 0.3},
    ]


GROUPS = (
    "groups: [{params: [fc3.bias], lr: 2e-3, decay: 0.3}, {params: [fc1.weight], freeze: true}, "
    '{params: ["*.bias"], lr_scale: 0.25, decay: 0}]'
)

# name: what the job's optim says, the optimizer, its schedule; decay of the means, each so many updates
CASES = {
    "no_decay": (
        "{kind: adamw, lr: 5e-3, eps: 1e-3, weight_decay: 0.1, no_decay: norms-and-biases, clip: 1.0, "
        "schedule: {kind: constant, warmup: 0}}",
        lambda m: torch.optim.AdamW(no_decay(m), lr=5e-3, eps=1e-3),
        None,
    ),
    "groups_adamw": (
        "{kind: adamw, lr: 5e-3, eps: 1e-3, weight_decay: 0.1, clip: 1.0, "
        + GROUPS
        + ", schedule: {kind: linear, warmup: 0, floor: 0}}",
        lambda m: torch.optim.AdamW(grouped(m, 5e-3), lr=5e-3, eps=1e-3),
        lambda o: LambdaLR(o, lambda s: 1 - s / STEPS),
    ),
    "groups_momentum": (
        "{kind: momentum, lr: 2e-2, weight_decay: 0.1, clip: 1.0, "
        + GROUPS
        + ", schedule: {kind: constant, warmup: 0}}",
        lambda m: torch.optim.SGD(grouped(m, 2e-2), lr=2e-2, momentum=0.9),
        None,
    ),
    "groups_adagrad": (
        "{kind: adagrad, lr: 1e-2, eps: 1e-3, weight_decay: 0.1, clip: 1.0, "
        + GROUPS
        + ", schedule: {kind: constant, warmup: 0}}",
        lambda m: torch.optim.Adagrad(grouped(m, 1e-2), lr=1e-2, eps=1e-3),
        None,
    ),
    "one_cycle": (
        "{kind: adamw, lr: 1e-2, eps: 1e-3, weight_decay: 0, clip: 1.0, schedule: {kind: one-cycle}}",
        lambda m: torch.optim.AdamW(m.parameters(), lr=1e-2, eps=1e-3, weight_decay=0),
        lambda o: OneCycleLR(o, max_lr=1e-2, total_steps=STEPS, cycle_momentum=False),
    ),
    "one_cycle_short": (
        "{kind: momentum, lr: 2e-2, clip: 1.0, "
        "schedule: {kind: one-cycle, warmup: 5, start: 0.1, end: 0.01}}",
        lambda m: torch.optim.SGD(m.parameters(), lr=2e-2, momentum=0.9),
        lambda o: OneCycleLR(
            o,
            max_lr=2e-2,
            total_steps=STEPS,
            pct_start=0.1,
            div_factor=10,
            final_div_factor=10,
            cycle_momentum=False,
        ),
    ),
    "polynomial": (
        "{kind: momentum, lr: 2e-2, clip: 1.0, "
        "schedule: {kind: polynomial, warmup: 0, power: 0.9, floor: 0}}",
        lambda m: torch.optim.SGD(m.parameters(), lr=2e-2, momentum=0.9),
        lambda o: PolynomialLR(o, total_iters=STEPS, power=0.9),
    ),
    "plateau": (
        "{kind: sgd, lr: 0.3, clip: 0, schedule: {kind: plateau, warmup: 0, metric: loss, every: 3, "
        "patience: 2, threshold: 0.03, factor: 0.3, floor: 0.01}}",
        lambda m: torch.optim.SGD(m.parameters(), lr=0.3),
        lambda o: ReduceLROnPlateau(o, factor=0.3, patience=2, threshold=0.03, min_lr=0.003, eps=0),
    ),
    "ema": (
        "{kind: adamw, lr: 5e-3, eps: 1e-3, weight_decay: 0.1, clip: 1.0, ema: {decay: 0.9}, "
        "schedule: {kind: constant, warmup: 0}}",
        lambda m: torch.optim.AdamW(m.parameters(), lr=5e-3, eps=1e-3, weight_decay=0.1),
        None,
        (0.9, 1),
    ),
    "ema_every": (
        "{kind: momentum, lr: 2e-2, clip: 1.0, ema: {decay: 0.25, every: 7}, "
        "schedule: {kind: constant, warmup: 0}}",
        lambda m: torch.optim.SGD(m.parameters(), lr=2e-2, momentum=0.9),
        None,
        (0.25, 7),
    ),
}


def make(name, folder, x, y, begin):
    optim_text, optimizer, schedule, (decay, every) = (*CASES[name], (0, 0))[:4]
    model = Mlp()
    model.load_state_dict(begin)
    optim = optimizer(model)
    scheduler = schedule(optim) if schedule else None
    means = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay)) if every else None
    rates, losses = [], []
    for step in range(STEPS):
        at = step * BATCH % COUNT
        loss = F.cross_entropy(model(x[at : at + BATCH]), y[at : at + BATCH])
        optim.zero_grad()
        loss.backward()
        if "clip: 0" not in optim_text:
            nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
        rates.append(optim.param_groups[0]["lr"])
        optim.step()
        if means and (step + 1) % every == 0:
            means.update_parameters(model)
        losses.append(loss.item())
        if isinstance(scheduler, ReduceLROnPlateau):
            if (step + 1) % 3 == 0:
                scheduler.step(sum(losses[-3:]) / 3)
        elif scheduler:
            scheduler.step()
    with open(os.path.join(folder, name + ".yaml"), "w") as f:
        f.write(f"job: {{steps: {STEPS}}}\n{MODEL}optim:\n  {optim_text}\n")
    # numbers of 8 bytes first: they lie at multiples of 8
    out = {
        "rate": torch.tensor(rates, dtype=torch.float64),
        "loss": torch.tensor(losses, dtype=torch.float64),
    }
    out.update({n: p.detach().clone() for n, p in model.named_parameters()})
    if means:
        out.update({n + ".ema": p.detach().clone() for n, p in means.module.named_parameters()})
    save(out, os.path.join(folder, name + ".safetensors"))
    print(name, f"{losses[0]:.6f} -> {losses[-1]:.6f}")


def save(tensors, path):
    """As the format says: a header of JSON, then the bytes."""
    import json, struct

    kinds = {torch.float32: "F32", torch.float64: "F64"}
    at, head, body = 0, {}, b""
    for name, t in tensors.items():
        b = t.contiguous().numpy().tobytes()
        head[name] = {
            "dtype": kinds[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [at, at + len(b)],
        }
        at, body = at + len(b), body + b
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + body)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "fixtures", "habits")
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(26)
    torch.set_num_threads(1)
    rng = np.random.default_rng(26)
    x = rng.standard_normal((COUNT, 12)).astype(np.float32)
    y = rng.integers(0, 4, COUNT).astype(np.int32)
    np.save(os.path.join(folder, "x.npy"), x)
    np.save(os.path.join(folder, "y.npy"), y)
    begin = Mlp().state_dict()
    save(begin, os.path.join(folder, "begin.safetensors"))
    for name in CASES:
        make(name, folder, torch.from_numpy(x), torch.from_numpy(y).long(), begin)
