#!/usr/bin/env python3
"""torch_step.py PROBLEM OURS THREADS STEPS [HOW] -- PyTorch trains what `heddle bench step --save PROBLEM --json >OURS` timed.

Same initial parameters (load_state_dict, strict), same rows in the same steps, same AdamW; prints one line of JSON: medians and
least times, the losses, and the largest relative difference of a step's loss to ours (`loss_diff`).

The peer at its best: eager, torch.compile and torch.compile(mode="max-autotune"), images in both layouts, the update
fused or compiled. Each is tried for a few steps and the fastest is timed; HOW names one of an earlier call and saves the trials.
HD_TORCH_TRIES lists the ways to try (default "eager compile autotune"), HD_TORCH_LIMIT_S bounds each trial with its compilation.
A way that cannot be had on this machine (no compiler, the limit) is named on stderr and in `failed`.

Norms over a batch: ours are taken per virtual node ("ghost" norms), so the plain module has other losses. The timed module is the
plain one; `loss_diff` is then of an untimed run of the same module in batches of batch/V rows, of CHECKED steps at most. Through twenty
norms and AdamW, where a gradient near nothing moves a weight as far as any, rounding grows from step to step: `self_diff` is how far that run is
from itself when only the order of its sums changes (channels last).
"""
import json, os, re, signal, statistics, sys, time

problem, ours_path, threads, steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
asked = sys.argv[5] if len(sys.argv) > 5 else None
os.environ["OMP_NUM_THREADS"] = str(threads)
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors import safe_open

WARMUP, TRIED, CHECKED = 3, 6, 6
torch.set_num_threads(threads)


class Mlp(nn.Module):
    def __init__(self, input, hidden, classes, act):
        super().__init__()
        assert act == "relu"
        width = [torch.Size(input).numel(), *hidden, classes]
        self.n = len(width) - 1
        for i in range(self.n):
            setattr(self, f"fc{i + 1}", nn.Linear(width[i], width[i + 1]))

    def forward(self, x):
        h = x.flatten(1)
        for i in range(1, self.n):
            h = F.relu(getattr(self, f"fc{i}")(h))
        return getattr(self, f"fc{self.n}")(h)


class Lenet(nn.Module):
    def __init__(self, height, width, classes, **kw):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        flat = 16 * ((height // 2 - 4) // 2) * ((width // 2 - 4) // 2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(flat, 120), nn.Linear(120, 84), nn.Linear(84, classes)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.conv2(F.max_pool2d(F.relu(self.conv1(x)), 2))), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(h)))))


class Attention(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(c, 3 * c), nn.Linear(c, c)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (a.view(n, t, self.heads, c // self.heads).transpose(1, 2) for a in self.c_attn(x).split(c, 2))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c))


class Feed(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(c), Attention(c, heads), nn.LayerNorm(c), Feed(c)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, context, vocab, dropout=0, **kw):
        super().__init__()
        assert not dropout
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.h, self.ln_f = nn.ModuleList(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, x):
        h = self.wte(x) + self.wpe.weight
        for block in self.h:
            h = block(h)
        return self.lm_head(self.ln_f(h)).flatten(0, 1)


class Basic(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        if stride > 1 or a != b:
            self.downsample = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))

    def forward(self, x):
        skip = self.downsample(x) if hasattr(self, "downsample") else x
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + skip)


class Resnet18(nn.Module):
    def __init__(self, stem, classes, channels=3, base=64, **kw):
        super().__init__()
        assert stem == "cifar"
        self.conv1, self.bn1 = nn.Conv2d(channels, base, 3, 1, 1, bias=False), nn.BatchNorm2d(base)
        for i in range(4):
            a, b = base << max(i - 1, 0), base << i
            setattr(self, f"layer{i + 1}", nn.Sequential(Basic(a, b, 1 + (i > 0)), Basic(b, b, 1)))
        self.fc = nn.Linear(8 * base, classes)

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer4(self.layer3(self.layer2(self.layer1(h)))).mean((2, 3)))


MODELS = {"builtin:mlp": Mlp, "builtin:lenet": Lenet, "builtin:gpt": Gpt, "builtin:resnet18": Resnet18}
TURNED = re.compile(r"h\.\d+\..*c_\w+\.weight")       # [in, out] by its public name; nn.Linear has [out, in]

with safe_open(problem, "pt") as f:
    job = json.loads(f.metadata()["job"])
    tensors = {k: f.get_tensor(k) for k in f.keys()}
rows = {k: tensors.pop(k) for k in list(tensors) if re.fullmatch(r"step\d+\.\w+", k)}
state = {k: t.T.contiguous() if TURNED.fullmatch(k) else t for k, t in tensors.items()}
optim = job["optim"]
if optim["kind"] != "adamw" or optim["clip"] or optim["schedule"]["kind"] != "constant" or optim["schedule"]["warmup"]:
    sys.exit("torch_step: this script knows adamw at a constant rate without clipping")


def batch(step, layout=None):
    x, y = rows[f"step{step}.x"], rows[f"step{step}.y"].long().flatten()
    x = x.long() if x.dtype == torch.int32 else x
    return x.to(memory_format=layout) if layout else x, y


def begin():
    torch.manual_seed(1)
    model = MODELS[job["model"]["use"]](**job["model"]["args"])
    model.load_state_dict(state, strict=True)
    return model


class Late(Exception):
    pass


def late(*_):
    raise Late()


def measure(how, n):
    """n timed steps in the way `how`: its words are the ways of the parts."""
    words = how.split(", ")
    layout = torch.channels_last if "channels last" in words else None
    model = begin().to(memory_format=layout) if layout else begin()
    run = torch.compile(model, mode="max-autotune") if "autotune" in words else torch.compile(model) if "compile" in words else model
    fused = "compiled update" not in words
    adamw = torch.optim.AdamW(model.parameters(), lr=optim["lr"], betas=optim["betas"], eps=optim["eps"],
                              weight_decay=optim["weight_decay"], fused=fused)
    update = adamw.step if fused else torch.compile(adamw.step)
    data = [batch(s, layout) for s in range(n + WARMUP)]
    times, losses = [], []
    for x, y in data:
        t0 = time.perf_counter()
        loss = F.cross_entropy(run(x), y)
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        update()
        losses.append(loss.item())
        times.append((time.perf_counter() - t0) * 1e3)
    return times[WARMUP:], losses


def tried(hows, least, failed):
    for how in hows:
        signal.alarm(int(os.environ.get("HD_TORCH_LIMIT_S", "300")))
        try:
            least[how] = min(measure(how, min(steps, TRIED))[0])
        except (Exception, Late) as e:
            failed[how] = type(e).__name__
            print(f"torch_step: {how}: {type(e).__name__}: {str(e)[:200]}", file=sys.stderr)
        signal.alarm(0)


def ghost_losses(n, layout):
    """The same module, one virtual node after the other: norms see batch/V rows, as ours do."""
    model, nvns, losses = begin().to(memory_format=layout), job["batch"]["virtual_nodes"], []
    adamw = torch.optim.AdamW(model.parameters(), lr=optim["lr"], betas=optim["betas"], eps=optim["eps"], weight_decay=optim["weight_decay"], fused=True)
    for s in range(n):
        x, y = batch(s, layout)
        loss = F.cross_entropy(torch.cat([model(part) for part in x.split(job["batch"]["global"] // nvns)]), y)
        adamw.zero_grad(set_to_none=True)
        loss.backward()
        adamw.step()
        losses.append(loss.item())
    return losses


signal.signal(signal.SIGALRM, late)
least, failed = {}, {}
if not asked:
    layouts = [""] + [", channels last"] * (rows["step0.x"].dim() == 4)
    ways = os.environ.get("HD_TORCH_TRIES", "eager compile autotune").split()
    tried([way + layout for way in ways for layout in layouts], least, failed)
    if any(way != "eager" for way in ways) and least:
        tried([min(least, key=least.get) + ", compiled update"], least, failed)
    if not least:
        sys.exit("torch_step: no way of training could be had: " + json.dumps(failed))
how = asked or min(least, key=least.get)
times, losses = measure(how, steps)
ours = json.load(open(ours_path))["losses"]
norms = any(isinstance(m, nn.BatchNorm2d) for m in begin().modules()) and job["model"]["bn"] == "ghost" and job["batch"]["virtual_nodes"] > 1
layouts = [] if asked and norms else [torch.contiguous_format, torch.channels_last] if norms else [None]
checked = [ghost_losses(min(CHECKED, len(losses)), layout) if norms else losses for layout in layouts]


def furthest(some, others):
    return max(abs(a - b) / abs(b) for a, b in zip(some, others))


diff, own = (furthest(ours, checked[0]) if checked else None), (furthest(*checked) if len(checked) > 1 else 0)
print(json.dumps({"peer": f"PyTorch {torch.__version__}", "how": how, "step_ms_median": statistics.median(times), "step_ms_min": min(times),
    "loss_first": losses[0], "loss_last": losses[-1], "loss_diff": diff, "self_diff": own, "checked": checked, "ghost": norms, "tried": least, "failed": failed}))
