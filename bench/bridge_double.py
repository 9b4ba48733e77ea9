#!/usr/bin/env python3
"""bridge_double.py -- whose rounding is it? Ten losses of ours and of PyTorch against PyTorch in float64.

Where ten steps of training make much of rounding, two programs cannot agree, and neither is wrong. So beside
both stands PyTorch itself, its first weights moved by one unit in the last place, with eight seeds (the
largest). A T5 with larger weights than in bridge.py, by SGD; resnet50 from random weights and from weights
with which residual branches are small. HEDDLE_BIN and Python as for bridge.py."""

import copy, sys, tempfile
import bridge  # first: this folder has a tokenize.py, which is not Python's
import numpy as np
import torch

SEEDS = 8


def sgd(module, lr, loss_of):
    optim, losses = torch.optim.SGD(module.parameters(), lr=lr), []
    for step in range(bridge.STEPS):
        optim.zero_grad()
        loss = loss_of(module, step)
        loss.backward()
        optim.step()
        losses.append(loss.item())
    return losses


def moved(module, seed):
    module = copy.deepcopy(module)
    torch.manual_seed(seed)
    with torch.no_grad():
        for p in module.parameters():
            p.copy_(torch.nextafter(p, p + torch.randn_like(p).sign()))
    return module


def row(label, got, module, lr, loss_of):
    exact = sgd(copy.deepcopy(module).double(), lr, loss_of)
    off = lambda losses: max(abs(a - b) / abs(b) for a, b in zip(losses, exact, strict=True))
    theirs = sgd(copy.deepcopy(module), lr, loss_of)
    shifted = [off(sgd(moved(module, seed), lr, loss_of)) for seed in range(SEEDS)]
    print(f"| {label} | {off(got):.1e} | {off(theirs):.1e} | {max(shifted):.1e} |", flush=True)


def steady(lr):
    return f"{{kind: sgd, lr: {lr}, {bridge.STEADY}"


def t5():
    kind, base, options, _ = bridge.ARCHITECTURES["t5"]
    for option, more in options.items():
        with tempfile.TemporaryDirectory() as folder:
            _, module = bridge.build(kind, base | more)
            torch.manual_seed(6)
            with torch.no_grad():
                for p in module.parameters():
                    p.add_(torch.randn_like(p) * 0.2)
            module.save_pretrained(f"{folder}/theirs")
            x, y = bridge.data_of(base | more)
            x.save(folder)
            np.save(f"{folder}/y.npy", y)
            given = [f"{folder}/theirs", *bridge.guesses(kind)]
            bridge.call("model", "import", *given, "-o", f"{folder}/ours")
            got = bridge.run(folder, "out", bridge.STEPS, steady(0.05))

        def loss_of(module, step):
            rows = [(step * 8 + i) % bridge.ROWS for i in range(8)]
            logits = bridge.asked(module, x[rows])
            labels = torch.from_numpy(y[rows]).long().reshape(-1)
            return torch.nn.functional.cross_entropy(
                logits.reshape(-1, logits.shape[-1]), labels, ignore_index=-1
            )

        row(f"t5, {option}", got, module, 0.05, loss_of)


def resnet(name, side, lr, branch):
    """`branch`: the weights of the last norm of each residual branch; None: 1, as they are made."""
    from safetensors.torch import save_file
    rng = np.random.default_rng(3)
    x = rng.standard_normal((8, 3, side, side)).astype(np.float32)
    y = rng.integers(0, 10, 8).astype(np.int32)
    torch.manual_seed(4)
    module = getattr(bridge.torchvision.models, name)(num_classes=10).train()
    with torch.no_grad():
        for label, p in module.named_parameters():
            if branch is not None and label.endswith("bn3.weight"):
                p.fill_(branch)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", x)
        np.save(f"{folder}/y.npy", y)
        save_file(module.state_dict(), f"{folder}/theirs.safetensors")
        sizes = ["-s", f"height={side}", "-s", f"width={side}", "-s", "classes=10"]
        source = [f"{folder}/theirs.safetensors", "--model", name]
        bridge.call("model", "import", *source, *sizes, "-o", f"{folder}/ours")
        got = bridge.run(folder, "out", bridge.STEPS, steady(lr), 1)

    def loss_of(module, step):
        images = torch.from_numpy(x).to(next(module.parameters()).dtype)
        return torch.nn.functional.cross_entropy(module(images), torch.from_numpy(y).long())

    made = "as made" if branch is None else f"branches of {branch}"
    row(f"{name}, {side} x {side}, lr {lr}, {made}", got, module, lr, loss_of)


print("| ten losses, SGD | ours | PyTorch | PyTorch, moved by a unit |\n|---|--:|--:|--:|")
t5()
resnet("resnet50", 32, 0.05, None)
resnet("resnet50", 32, 1e-4, None)
resnet("resnet50", 64, 3e-4, 0.1)
