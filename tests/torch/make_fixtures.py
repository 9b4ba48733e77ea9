#!/usr/bin/env python3
"""make_fixtures.py -- what PyTorch computes, as files for src/exec/torch_test.c.

For each built-in model: a job file, initial parameters, a data set, the gradient of the
first step and the losses of ten AdamW steps, all in float32 on the CPU by PyTorch's own
modules. Run where PyTorch is installed:  python3 make_fixtures.py [FOLDER]
The files committed beside this script were made by PyTorch 2.13.0.
"""
import math, os, sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

STEPS, BATCH, COUNT = 10, 24, 48


class Mlp(nn.Module):
    yaml = "model: {use: builtin:mlp, args: {input: [20], hidden: [33, 17], classes: 5}}"

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(20, 33), nn.Linear(33, 17), nn.Linear(17, 5)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))

    @staticmethod
    def data(rng):
        return rng.standard_normal((COUNT, 20)).astype(np.float32), rng.integers(0, 5, COUNT).astype(np.int32)


class Lenet(nn.Module):
    yaml = "model: {use: builtin:lenet, args: {height: 16, width: 16, classes: 7}}"

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 120), nn.Linear(120, 84), nn.Linear(84, 7)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.conv1(x)), 2)
        h = F.max_pool2d(F.relu(self.conv2(h)), 2)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(h.flatten(1))))))

    @staticmethod
    def data(rng):
        return rng.standard_normal((COUNT, 1, 16, 16)).astype(np.float32), rng.integers(0, 7, COUNT).astype(np.int32)


class Gpt(nn.Module):
    L, C, H, T, V = 2, 32, 2, 16, 64
    yaml = "model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 16, vocab: 64}}"

    def __init__(self):
        super().__init__()
        C = self.C
        self.p = {}
        self.p["wte.weight"], self.p["wpe.weight"] = self.normal(self.V, C), self.normal(self.T, C)
        for i in range(self.L):
            for name in ("ln_1", "ln_2"):
                self.norm(f"h.{i}.{name}")
            for name, a, b in (("attn.c_attn", C, 3 * C), ("attn.c_proj", C, C), ("mlp.c_fc", C, 4 * C), ("mlp.c_proj", 4 * C, C)):
                self.p[f"h.{i}.{name}.weight"] = self.normal(a, b)
                self.p[f"h.{i}.{name}.bias"] = self.normal(b)
        self.norm("ln_f")
        for name, p in self.p.items():
            self.register_parameter(name.replace(".", "/"), p)

    @staticmethod
    def normal(*shape):
        return nn.Parameter(torch.randn(*shape) * 0.1)

    def norm(self, name):
        self.p[name + ".weight"] = nn.Parameter(1 + torch.randn(self.C) * 0.1)
        self.p[name + ".bias"] = self.normal(self.C)

    def linear(self, h, name):
        return h @ self.p[name + ".weight"] + self.p[name + ".bias"]

    def ln(self, h, name):
        return F.layer_norm(h, (self.C,), self.p[name + ".weight"], self.p[name + ".bias"], 1e-5)

    def attend(self, qkv):
        n, t, _ = qkv.shape
        q, k, v = (a.view(n, t, self.H, self.C // self.H).transpose(1, 2) for a in qkv.split(self.C, 2))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, self.C)

    def forward(self, x):
        h = self.p["wte.weight"][x.long()] + self.p["wpe.weight"]
        for i in range(self.L):
            h = h + self.linear(self.attend(self.linear(self.ln(h, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")), f"h.{i}.attn.c_proj")
            a = F.gelu(self.linear(self.ln(h, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
            h = h + self.linear(a, f"h.{i}.mlp.c_proj")
        return self.ln(h, "ln_f") @ self.p["wte.weight"].T

    @classmethod
    def data(cls, rng):
        x = rng.integers(0, cls.V, (COUNT, cls.T)).astype(np.int32)
        return x, ((x * 5 + 3) % cls.V).astype(np.int32)


def names(model):
    return {n.replace("/", "."): p for n, p in model.named_parameters()}


def make(name, cls, folder):
    out = os.path.join(folder, name)
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(17)
    torch.set_num_threads(1)
    model, (x, y) = cls(), cls.data(np.random.default_rng(17))
    np.save(os.path.join(out, "x.npy"), x)
    np.save(os.path.join(out, "y.npy"), y)
    params = names(model)
    save_file({n: p.detach().clone().contiguous() for n, p in params.items()}, os.path.join(out, "params.safetensors"))
    with open(os.path.join(out, "job.yaml"), "w") as f:
        f.write(f"job: {{steps: {STEPS}}}\n{cls.yaml}\n"
                "data: {kind: npy, order: sequential, split: {train: 1.0, valid: 0.0}}\n"
                f"batch: {{global: {BATCH}, virtual_nodes: 5}}\n"
                "optim: {kind: adamw, lr: 1e-2, weight_decay: 0.05, clip: 1.0, schedule: {kind: constant, warmup: 0}}\n")
    optim = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.05)
    expect, losses = {}, []
    for step in range(STEPS):
        at = step * BATCH % COUNT
        bx, by = torch.from_numpy(x[at:at + BATCH]), torch.from_numpy(y[at:at + BATCH]).long()
        logits = model(bx)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), by.reshape(-1))
        optim.zero_grad()
        loss.backward()
        if step == 0:
            expect = {"grad." + n: p.grad.detach().clone().contiguous() for n, p in params.items()}
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        losses.append(loss.item())
    expect["loss"] = torch.tensor(losses, dtype=torch.float64)
    save_file(expect, os.path.join(out, "expect.safetensors"))
    print(name, " ".join(f"{v:.6f}" for v in losses))


if __name__ == "__main__":
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
    for name, cls in (("mlp", Mlp), ("lenet", Lenet), ("gpt", Gpt)):
        make(name, cls, target)
