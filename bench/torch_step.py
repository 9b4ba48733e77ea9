#!/usr/bin/env python3
"""torch_step.py NAME THREADS STEPS -- PyTorch's time for the step of bench/jobs/NAME.yaml, as JSON.

The peer at its best settings on this machine: newest CPU wheel, oneDNN, fused AdamW, eager
and torch.compile both tried, images in both layouts (the fastest is reported), threads set in the environment and in
the program. Same shapes, batch, optimizer and precision; the data are random of equal size,
so losses of the two sides agree in their beginning at most.
"""
import json, os, statistics, sys, time

name, threads, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.environ["OMP_NUM_THREADS"] = str(threads)
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(threads)
torch.manual_seed(1)


class Lenet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.f1, self.f2, self.f3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.c2(F.max_pool2d(F.relu(self.c1(x)), 2))), 2).flatten(1)
        return self.f3(F.relu(self.f2(F.relu(self.f1(h)))))


class Block(nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.h = h
        self.l1, self.l2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.proj, self.fc, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c), nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (a.view(n, t, self.h, c // self.h).transpose(1, 2) for a in self.qkv(self.l1(x)).split(c, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c)
        x = x + self.proj(a)
        return x + self.out(F.gelu(self.fc(self.l2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers=6, c=384, h=6, t=256, v=256):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(v, c), nn.Embedding(t, c)
        self.blocks, self.ln = nn.ModuleList(Block(c, h) for _ in range(layers)), nn.LayerNorm(c)

    def forward(self, x):
        h = self.wte(x) + self.wpe.weight
        for b in self.blocks:
            h = b(h)
        return (self.ln(h) @ self.wte.weight.T).flatten(0, 1)


class Residual(nn.Module):
    def __init__(self, inp, out, stride):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(inp, out, 3, stride, 1, bias=False), nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.n1, self.n2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.skip = nn.Sequential(nn.Conv2d(inp, out, 1, stride, bias=False), nn.BatchNorm2d(out)) if inp != out else nn.Identity()

    def forward(self, x):
        return F.relu(self.n2(self.c2(F.relu(self.n1(self.c1(x))))) + self.skip(x))


class Resnet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
        self.blocks = nn.Sequential(*(Residual(a, b, 1 + (a != b)) for a, b in zip(widths, widths[1:])))
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


def images(n, *shape):
    return torch.randn(n, *shape), torch.randint(0, 10, (n,))


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)),
            lambda: images(256, 1, 28, 28)),
    "lenet": (Lenet, lambda: images(64, 1, 28, 28)),
    "resnet18": (Resnet18, lambda: images(64, 3, 32, 32)),
    "gpt-byte": (Gpt, lambda: (torch.randint(0, 256, (8, 256)), torch.randint(0, 256, (8 * 256,)))),
    "gpt-50k": (lambda: Gpt(v=50257), lambda: (torch.randint(0, 50257, (8, 256)), torch.randint(0, 50257, (8 * 256,)))),
}


def measure(compiled, channels_last=False):
    model = MODELS[name][0]()
    x, y = MODELS[name][1]()
    if channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    run = torch.compile(model) if compiled else model
    optim = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    times, losses = [], []
    for _ in range(steps + 3):
        t0 = time.perf_counter()
        loss = F.cross_entropy(run(x), y)
        optim.zero_grad(set_to_none=True)
        loss.backward()
        optim.step()
        losses.append(loss.item())
        times.append((time.perf_counter() - t0) * 1e3)
    return statistics.median(times[3:]), losses[0], losses[-1]


images4 = MODELS[name][1]()[0].dim() == 4
best = {"eager": measure(False)}
if images4:
    best["eager, channels last"] = measure(False, True)
if os.environ.get("HD_TORCH_COMPILE", "1") == "1":
    try:
        best["compile"] = measure(True)
        if images4:
            best["compile, channels last"] = measure(True, True)
    except Exception as e:      # no compiler on this machine: the eager figure stands, and says so
        print(f"torch.compile: {type(e).__name__}", file=sys.stderr)
how = min(best, key=lambda k: best[k][0])
print(json.dumps({"peer": f"PyTorch {torch.__version__}", "how": how, "step_ms_median": best[how][0], "loss_first": best[how][1], "loss_last": best[how][2]}))
