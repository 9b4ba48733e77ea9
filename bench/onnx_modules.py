#!/usr/bin/env python3
"""onnx_modules.py [--keep FOLDER] [--list] [NAME...]: are modules of PyTorch, exported, trained as there?

Each module is written by both exporters of PyTorch, with a batch that is traced and with one that is free, in
several opsets. Heddle (HEDDLE_BIN, default build/release/heddle) imports the file and takes one step of SGD
with rate 1 on a batch: the parameters before less those after are the gradients. They, and the logits,
are compared with PyTorch's in f64, each to 1e-5 of the largest number of its tensor, and of all gradients.
What the importer refuses must name the node. A file says nothing of `padding_idx`, the row of a table that
PyTorch gives no gradient: it learns here, and is not compared. Prints the table of
docs/results/onnx-modules.md; exit 1: something was neither equal nor refused. --keep: files stay in FOLDER,
and are taken from there next time."""

import sys

sys.path.pop(0)  # tokenize.py beside this file is not Python's
import argparse, itertools, os, pathlib, platform, shutil, subprocess, tempfile, time, warnings
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.numpy import load_file

warnings.simplefilter("ignore")
ROWS, TOLERANCE = 6, 1e-5
# the file's name, how it is exported, opset, is the batch free
VARIANTS = [
    ("script-13", {"dynamo": False}, 13, True),
    ("script-17", {"dynamo": False}, 17, False),
    ("script-20", {"dynamo": False}, 20, True),
    ("export-18", {"dynamo": True}, 18, False),
    ("export-22", {"dynamo": True, "optimize": False}, 22, True),
]
CASES = {}


def case(name, *shape, ids=0, rows=ROWS):
    """A module of samples of that shape; ids: of so many tokens. Its maker returns it."""

    def add(make):
        CASES[name] = (make, shape, ids, rows)
        return make

    return add


class Of(nn.Module):
    """A function, and modules that it gets by name."""

    def __init__(self, run, **parts):
        super().__init__()
        self.run = run
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x):
        return self.run(self, x)


class Whole(nn.Module):
    """The body between parameters of its own, so that gradients pass it, and logits."""

    def __init__(self, body, shape, ids):
        super().__init__()
        self.body = body
        if not ids:
            self.gain, self.shift = nn.Parameter(torch.rand(shape) + 0.5), nn.Parameter(
                torch.randn(shape) * 0.1
            )

    def forward(self, x):
        if hasattr(self, "gain"):
            x = x * self.gain + self.shift
        return self.body(x).flatten(1)


def simple(name, shape, run, **parts):
    """parts: makers"""
    case(name, *shape)(lambda: Of(run, **{k: make() for k, make in parts.items()}))


# ---- activations
for word in (
    "ReLU GELU SiLU Mish Hardswish Hardsigmoid Hardtanh ELU SELU CELU LeakyReLU PReLU ReLU6 Softplus "
    "Softsign Softshrink Hardshrink Tanhshrink LogSigmoid Sigmoid Tanh GLU RReLU Threshold"
).split():
    make = {"Threshold": lambda: nn.Threshold(0.1, 0.2), "GLU": lambda: nn.GLU(1)}.get(
        word, getattr(nn, word)
    )
    simple(f"act {word}", (6, 5), lambda m, x: m.act(x), act=make)
simple("act gelu tanh", (6, 5), lambda m, x: F.gelu(x, approximate="tanh"))
simple("act softmax, log_softmax", (6, 5), lambda m, x: F.softmax(x, 1) + F.log_softmax(x, -1))

# ---- functions of a number
for word in (
    "sin cos tan asin acos atan sinh cosh asinh acosh atanh exp log sqrt rsqrt erf floor ceil round sign "
    "square reciprocal log1p expm1 exp2 log2 log10 trunc frac"
).split():
    below = word in ("asin", "acos", "atanh")
    above = word in ("acosh", "log", "sqrt", "rsqrt", "log2", "log10", "log1p", "reciprocal")
    simple(
        f"fn {word}",
        (6, 5),
        lambda m, x, fn=getattr(torch, word), below=below, above=above, word=word: fn(
            torch.tanh(x) * 0.9 if below else 1.1 + x * x if above else x * (0.5 if word == "tan" else 1.7)
        )
        * (x if word == "sign" else torch.linspace(0.5, 1, 5)),
    )
simple("fn pow, clamp, abs", (6, 5), lambda m, x: (x.abs() + 0.1) ** 1.7 + x**3 + x.clamp(-0.5, 0.7))
simple("fn fmod, remainder", (6, 5), lambda m, x: torch.fmod(x, 0.7) + torch.remainder(x, 0.6))
simple("fn minimum, maximum", (6, 5), lambda m, x: torch.minimum(x, x.flip(1)) * torch.maximum(x, x.square()))
simple(
    "fn atan2, hypot", (6, 5), lambda m, x: torch.atan2(x[:, :3], x[:, 3:]) + torch.hypot(x[:, :3], x[:, 3:])
)

# ---- convolutions
simple(
    "conv1d",
    (3, 11),
    lambda m, x: m.b(F.relu(m.a(x))),
    a=lambda: nn.Conv1d(3, 4, 3, padding=1),
    b=lambda: nn.Conv1d(4, 2, 3, stride=2),
)
simple(
    "conv1d dilated causal",
    (3, 12),
    lambda m, x: m.b(torch.tanh(m.a(F.pad(x, (4, 0))))),
    a=lambda: nn.Conv1d(3, 4, 3, dilation=2),
    b=lambda: nn.Conv1d(4, 4, 1, groups=2),
)
simple("conv1d same", (3, 11), lambda m, x: m.a(x), a=lambda: nn.Conv1d(3, 4, 4, padding="same"))
simple(
    "conv2d groups, dilation",
    (4, 9, 8),
    lambda m, x: m.b(F.relu(m.a(x))),
    a=lambda: nn.Conv2d(4, 8, 3, groups=4, padding=1),
    b=lambda: nn.Conv2d(8, 2, 3, dilation=2),
)
simple(
    "conv2d reflect",
    (2, 7, 8),
    lambda m, x: m.a(x),
    a=lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect"),
)
simple(
    "conv2d circular",
    (2, 7, 8),
    lambda m, x: m.a(x),
    a=lambda: nn.Conv2d(2, 3, 3, padding=1, padding_mode="circular"),
)
simple(
    "conv3d",
    (2, 5, 6, 7),
    lambda m, x: m.b(F.relu(m.a(x))),
    a=lambda: nn.Conv3d(2, 4, 3, padding=1),
    b=lambda: nn.Conv3d(4, 2, (2, 3, 3), stride=2, groups=2),
)
simple("convtranspose1d", (3, 7), lambda m, x: m.a(x), a=lambda: nn.ConvTranspose1d(3, 4, 4, 2, 1))
simple(
    "convtranspose2d",
    (3, 5, 6),
    lambda m, x: m.b(F.relu(m.a(x))),
    a=lambda: nn.ConvTranspose2d(3, 4, 4, 2, 1),
    b=lambda: nn.ConvTranspose2d(4, 2, 3, 2, 1, output_padding=1),
)
simple(
    "convtranspose2d groups",
    (4, 5, 6),
    lambda m, x: m.a(x),
    a=lambda: nn.ConvTranspose2d(4, 6, 3, 2, groups=2, dilation=2),
)
simple("convtranspose3d", (2, 3, 4, 3), lambda m, x: m.a(x), a=lambda: nn.ConvTranspose3d(2, 3, 3, 2, 1))
simple("unfold", (2, 6, 6), lambda m, x: F.unfold(x, 3))
simple("fold", (8, 9), lambda m, x: F.fold(x, (4, 4), 2))

# ---- pools
simple("maxpool1d, avgpool1d", (3, 12), lambda m, x: F.max_pool1d(x, 3, 2, 1) + F.avg_pool1d(x, 3, 2, 1))
simple("maxpool2d, avgpool2d", (3, 8, 9), lambda m, x: F.max_pool2d(x, 3, 2, 1) + F.avg_pool2d(x, 3, 2, 1))
simple(
    "pools of ceil_mode",
    (3, 8, 9),
    lambda m, x: F.max_pool2d(x, 3, 2, ceil_mode=True) + F.avg_pool2d(x, 3, 2, ceil_mode=True),
)
simple("avgpool2d without pads", (3, 8, 9), lambda m, x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False))
simple("maxpool2d dilated", (3, 9, 9), lambda m, x: F.max_pool2d(x, 3, 2, dilation=2))
simple("maxpool3d, avgpool3d", (2, 6, 6, 5), lambda m, x: F.max_pool3d(x, 2) + F.avg_pool3d(x, 2))
simple(
    "adaptive pools, global",
    (3, 6, 5),
    lambda m, x: F.adaptive_avg_pool2d(x, 1) + F.adaptive_max_pool2d(x, 1),
)
simple("adaptive avgpool2d", (3, 6, 8), lambda m, x: F.adaptive_avg_pool2d(x, (3, 2)))
simple("adaptive avgpool2d uneven", (3, 7, 8), lambda m, x: F.adaptive_avg_pool2d(x, (3, 3)))
simple("adaptive maxpool2d", (3, 6, 8), lambda m, x: F.adaptive_max_pool2d(x, (3, 2)))
simple(
    "adaptive avgpool1d, 3d",
    (3, 4, 4, 6),
    lambda m, x: F.adaptive_avg_pool3d(x, (2, 2, 3)).flatten(2) * F.adaptive_avg_pool1d(x.flatten(2), 12),
)
simple("lppool2d", (3, 8, 8), lambda m, x: F.lp_pool2d(x.abs() + 0.1, 2, 3, 2))

# ---- norms
simple(
    "batchnorm1d",
    (7,),
    lambda m, x: m.c(m.n(m.a(x))),
    a=lambda: nn.Linear(7, 6),
    n=lambda: nn.BatchNorm1d(6),
    c=lambda: nn.Linear(6, 4),
)
simple("batchnorm1d of sequences", (4, 6), lambda m, x: m.n(x).square(), n=lambda: nn.BatchNorm1d(4))
simple(
    "batchnorm2d",
    (3, 6, 6),
    lambda m, x: F.relu(m.n(m.a(x))),
    a=lambda: nn.Conv2d(3, 4, 3),
    n=lambda: nn.BatchNorm2d(4),
)
simple("batchnorm3d", (3, 4, 4, 4), lambda m, x: m.n(x).square(), n=lambda: nn.BatchNorm3d(3))
simple(
    "layernorm", (5, 8), lambda m, x: m.b(m.a(x)), a=lambda: nn.LayerNorm(8), b=lambda: nn.LayerNorm((5, 8))
)
simple("layernorm plain", (5, 8), lambda m, x: F.layer_norm(x, (8,)).square())
simple("groupnorm", (6, 5, 4), lambda m, x: m.n(x).square(), n=lambda: nn.GroupNorm(3, 6))
simple("instancenorm2d", (3, 5, 6), lambda m, x: m.n(x).square(), n=lambda: nn.InstanceNorm2d(3, affine=True))
simple("instancenorm1d plain", (3, 9), lambda m, x: m.n(x).square(), n=lambda: nn.InstanceNorm1d(3))
simple("rmsnorm", (5, 8), lambda m, x: m.n(x).square(), n=lambda: nn.RMSNorm(8, eps=1e-6))
simple(
    "localresponsenorm", (7, 4, 4), lambda m, x: m.n(x), n=lambda: nn.LocalResponseNorm(5, 1e-1, 0.75, 1.0)
)
simple(
    "normalize, weight of norm 1",
    (8,),
    lambda m, x: F.normalize(x, dim=1) @ F.normalize(m.a.weight, dim=1).T,
    a=lambda: nn.Linear(8, 5),
)
simple("cosine_similarity", (4, 8), lambda m, x: F.cosine_similarity(x, x.flip(1), 2))
simple(
    "weight_norm", (8,), lambda m, x: m.a(x), a=lambda: nn.utils.parametrizations.weight_norm(nn.Linear(8, 5))
)

# ---- resizing and images
for mode, kw in (
    ("nearest", {"scale_factor": 2}),
    ("bilinear", {"scale_factor": 2, "align_corners": False}),
    ("bilinear", {"scale_factor": 2, "align_corners": True}),
    ("bilinear", {"size": (7, 9), "align_corners": False}),
    ("nearest", {"size": (7, 3)}),
    ("nearest-exact", {"size": (7, 9)}),
    ("bicubic", {"scale_factor": 2, "align_corners": False}),
    ("bilinear", {"size": (3, 2), "align_corners": False, "antialias": True}),
):
    words = ", ".join([mode] + [f"{k} {v}" for k, v in kw.items() if v is not False])
    simple(
        f"interpolate {words}", (2, 5, 6), lambda m, x, mode=mode, kw=kw: F.interpolate(x, mode=mode, **kw)
    )
simple(
    "interpolate linear, trilinear",
    (2, 4, 3, 5),
    lambda m, x: F.interpolate(x, scale_factor=2, mode="trilinear").flatten(1)
    + F.interpolate(x.flatten(2), scale_factor=8, mode="linear").flatten(1),
)
simple(
    "interpolate like another",
    (2, 4, 6),
    lambda m, x: F.interpolate(F.max_pool2d(x, 2), size=x.shape[-2:], mode="nearest") + x,
)
simple(
    "pixel_shuffle, unshuffle",
    (4, 4, 6),
    lambda m, x: F.pixel_shuffle(x, 2).flatten(1) * F.pixel_unshuffle(x, 2).flatten(1),
)
simple(
    "channel_shuffle",
    (6, 3, 2),
    lambda m, x: F.channel_shuffle(x, 3) * torch.linspace(0, 1, 6)[:, None, None],
)
for mode in ("constant", "reflect", "replicate", "circular"):
    simple(f"pad {mode}", (2, 5, 6), lambda m, x, mode=mode: F.pad(x, (1, 2, 2, 1), mode=mode).square())
simple("pad negative", (2, 5, 6), lambda m, x: F.pad(x, (-1, 2, 0, -2)))
simple(
    "grid_sample",
    (2, 5, 6),
    lambda m, x: F.grid_sample(
        x,
        F.affine_grid(m.a(x.mean((2, 3))).view(-1, 2, 3), (x.shape[0], 2, 4, 4), False),
        align_corners=False,
    ),
    a=lambda: nn.Linear(2, 6),
)


# ---- recurrent
def recurrent(name, make, shape=(5, 4), first=True):
    def run(m, x):
        y, h = m.cell(x if first else x.transpose(0, 1))
        h = torch.cat(h, -1) if isinstance(h, tuple) else h
        y = y if first else y.transpose(0, 1)
        return torch.cat([y.flatten(1), h.transpose(0, 1).flatten(1)], 1)

    simple(name, shape, run, cell=make)


recurrent("lstm", lambda: nn.LSTM(4, 6, batch_first=True))
recurrent("lstm of two layers", lambda: nn.LSTM(4, 6, 2, batch_first=True))
recurrent("lstm both ways", lambda: nn.LSTM(4, 6, batch_first=True, bidirectional=True))
recurrent("lstm both ways, two layers", lambda: nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True))
recurrent("lstm time first, no bias", lambda: nn.LSTM(4, 6, bias=False), first=False)
recurrent("lstm projected", lambda: nn.LSTM(4, 6, batch_first=True, proj_size=3))
recurrent("gru", lambda: nn.GRU(4, 6, batch_first=True))
recurrent("gru both ways, two layers", lambda: nn.GRU(4, 5, 2, batch_first=True, bidirectional=True))
recurrent("rnn tanh", lambda: nn.RNN(4, 6, batch_first=True))
recurrent(
    "rnn relu both ways", lambda: nn.RNN(4, 6, 2, batch_first=True, bidirectional=True, nonlinearity="relu")
)


class State(nn.Module):
    def __init__(self, cell, n):
        super().__init__()
        self.cell, self.h, self.c = cell, nn.Parameter(torch.randn(1, 1, n)), nn.Linear(4, n)

    def forward(self, x):
        h = self.h.repeat(1, x.shape[0], 1)
        return self.cell(x, (h, self.c(x[:, 0])[None]) if isinstance(self.cell, nn.LSTM) else h)[0]


case("lstm from a state", 5, 4)(lambda: State(nn.LSTM(4, 6, batch_first=True), 6))
case("gru from a state", 5, 4)(lambda: State(nn.GRU(4, 6, batch_first=True), 6))
case("rnn from a state", 5, 4)(lambda: State(nn.RNN(4, 6, batch_first=True), 6))


class Cells(nn.Module):
    """Cells called by hand, step by step."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        h = x.new_zeros(x.shape[0], 6)
        c = x.new_zeros(x.shape[0], 6)
        for t in range(x.shape[1]):
            if isinstance(self.cell, nn.LSTMCell):
                h, c = self.cell(x[:, t], (h, c))
            else:
                h = self.cell(x[:, t], h)
        return h


for word in ("LSTMCell", "GRUCell", "RNNCell"):
    case(f"cell {word}", 4, 4)(lambda word=word: Cells(getattr(nn, word)(4, 6)))

# ---- products
for equation, n in (
    ("bik,bjk->bij", 2),
    ("bij,kj->bik", 1),
    ("bij->bji", 0),
    ("bij->bj", 0),
    ("bii->bi", 0),
    ("bhi,bhj->bij", 2),
    ("...j,jk->...k", 1),
    ("bi,bj->bij", 3),
    ("b i j, b j k -> b i k", 2),
):
    square = (5, 5)

    def product(m, x, equation=equation, n=n):
        if n == 3:
            return torch.einsum(equation, x[:, 0], x[:, 1])
        return (
            torch.einsum(equation, x) if n == 0 else torch.einsum(equation, x, m.w if n == 1 else x.square())
        )

    case(f"einsum {equation}", *square)(
        lambda product=product: Of(product, w=nn.Parameter(torch.randn(5, 5)))
    )
case("einsum of three", 4, 5)(
    lambda: Of(
        lambda m, x: torch.einsum("bij,jk,kl->bil", x, m.u, m.v),
        u=nn.Parameter(torch.randn(5, 3)),
        v=nn.Parameter(torch.randn(3, 6)),
    )
)
simple("bilinear", (2, 4), lambda m, x: m.a(x[:, 0], x[:, 1]), a=lambda: nn.Bilinear(4, 4, 3))
simple(
    "matmul broadcast",
    (3, 4),
    lambda m, x: (m.w @ x.transpose(1, 2)).flatten(1) + (x @ x.transpose(1, 2)).mean((1, 2))[:, None],
    w=lambda: nn.Parameter(torch.randn(5, 4)),
)
simple(
    "baddbmm, outer",
    (3, 4),
    lambda m, x: torch.baddbmm(x @ x.transpose(1, 2), x, x.transpose(1, 2), beta=0.5, alpha=0.3),
)
simple("cdist", (4, 3), lambda m, x: torch.cdist(x, x + 1))

# ---- shape and index
simple(
    "stack, chunk, split",
    (6, 4),
    lambda m, x: torch.stack([*x.chunk(3, 1)], 1).flatten(1)
    * torch.cat(x.split([1, 2, 3], 1)[::-1], 1).flatten(1),
)
simple("repeat, expand, tile", (1, 4), lambda m, x: x.repeat(1, 3, 2) + x.expand(-1, 3, -1).tile(1, 1, 2))
simple("repeat_interleave", (3, 4), lambda m, x: x.repeat_interleave(2, 1) * torch.linspace(0, 1, 6)[:, None])
simple("roll, flip", (4, 5), lambda m, x: torch.roll(x, (1, -2), (1, 2)) * x.flip(2))
simple("slices with steps", (6, 7), lambda m, x: x[:, ::2, 1:6:2] * x[:, 1::2, -3:])
simple(
    "index by constants", (6, 5), lambda m, x: x[:, [0, 3, 3]] + x.index_select(1, torch.tensor([1, 2, 4]))
)
simple("index by several", (4, 5, 3), lambda m, x: x[:, torch.tensor([0, 1, 3]), torch.tensor([1, 4, 2])])
simple(
    "gather",
    (6, 5),
    lambda m, x: x.gather(1, torch.arange(10).reshape(1, 2, 5).remainder(6).expand(x.shape[0], -1, -1)),
)
simple("take_along the best", (6, 5), lambda m, x: x.gather(1, x.argmax(1, keepdim=True)))
simple(
    "masked_fill, where",
    (4, 4),
    lambda m, x: x.masked_fill(torch.ones(4, 4).tril() == 0, -1.0) + torch.where(x > 0, x, x.square()),
)
simple("tril, triu", (4, 4), lambda m, x: x.tril() + x.triu(1) * 2)
simple("cumsum, cumprod", (4, 5), lambda m, x: x.cumsum(1) + x.cumsum(2))
simple("cumprod", (4, 5), lambda m, x: x.cumprod(2))
simple("topk", (4, 7), lambda m, x: x.topk(3)[0])
simple("topk smallest, of an axis", (6, 4), lambda m, x: x.topk(2, 1, largest=False)[0])
simple("topk, its indices", (4, 7), lambda m, x: x.square().gather(2, x.topk(3, -1)[1]))
simple("sort", (4, 7), lambda m, x: x.sort(-1, descending=True)[0] * torch.linspace(0, 1, 7))
simple("max over an axis", (4, 7), lambda m, x: x.max(2)[0] + x.min(2).values + x.amax(2))
simple("mean, std, var", (4, 7), lambda m, x: torch.cat([x.mean(2), x.std(2), x.var(2, unbiased=False)], 1))
simple(
    "norm, logsumexp, prod",
    (4, 7),
    lambda m, x: torch.cat([x.norm(dim=2), x.logsumexp(2), x.prod(2), x.norm(1, 2)], 1),
)
simple(
    "scatter",
    (4, 6),
    lambda m, x: torch.zeros_like(x).scatter(
        2, torch.tensor([5, 0, 3]).expand(x.shape[0], 4, 3), x[:, :, :3]
    ),
)
simple(
    "scatter_add",
    (4, 6),
    lambda m, x: torch.zeros_like(x).scatter_add(
        2, torch.tensor([5, 0, 5]).expand(x.shape[0], 4, 3), x[:, :, :3]
    ),
)


def assign(m, x):
    y = x.clone()
    y[:, 1:3, 2] = x[:, :2, 0] * 2
    return y


simple("assignment to a slice", (4, 6), assign)


def put(m, x):
    return x.index_put((torch.arange(x.shape[0])[:, None], torch.tensor([0, 2])), x[:, 1:3])


simple("index_put", (4, 6), put)
simple("index_add", (4, 6), lambda m, x: x.index_add(1, torch.tensor([0, 2, 2]), x[:, :3]))
simple("one_hot of argmax", (4, 6), lambda m, x: F.one_hot(x.argmax(2), 6).float() * x)
simple(
    "movedim, swap, view",
    (4, 3, 2),
    lambda m, x: x.movedim(1, 3).reshape(x.size(0), -1, 2) * torch.arange(12.0)[:, None],
)
simple("diagonal, trace", (4, 4), lambda m, x: torch.diagonal(x, dim1=1, dim2=2))
simple(
    "meshgrid, arange",
    (4, 4),
    lambda m, x: x * torch.stack(torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")).sum(0),
)
simple(
    "bucket of comparisons", (4, 6), lambda m, x: x * ((x > 0) & (x < 1)).float() + x * (~(x > 0) | (x == 1))
)

# ---- tables
case("embedding", 5, ids=11)(
    lambda: Of(lambda m, x: m.fc(m.e(x)), e=nn.Embedding(11, 6, padding_idx=0), fc=nn.Linear(6, 3))
)
case("embedding mean", 5, ids=11)(
    lambda: Of(lambda m, x: m.fc(m.e(x).mean(1)), e=nn.Embedding(11, 6), fc=nn.Linear(6, 3))
)
case("embeddingbag", 5, ids=11)(
    lambda: Of(lambda m, x: m.fc(m.e(x)), e=nn.EmbeddingBag(11, 6, mode="mean"), fc=nn.Linear(6, 3))
)
case("embedding and mask", 5, ids=11)(
    lambda: Of(
        lambda m, x: ((m.e(x) * (x != 0).unsqueeze(-1)).sum(1) / (x != 0).sum(1, keepdim=True).clamp(min=1)),
        e=nn.Embedding(11, 6),
    )
)


# ---- attention
class Heads(nn.Module):
    def __init__(self, width=12, heads=3, causal=False, bias=None, rope=False, kv=None):
        super().__init__()
        self.heads, self.causal, self.rope, self.kv = heads, causal, rope, kv or heads
        self.d = width // heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(width, width),
            nn.Linear(width, self.kv * self.d),
            nn.Linear(width, self.kv * self.d),
            nn.Linear(width, width),
        )
        if bias:
            self.table = nn.Parameter(torch.randn(2 * bias - 1, heads))

    def turn(self, x):
        half = x.shape[-1] // 2
        rate = 10000 ** (-torch.arange(half).float() / half)
        angle = torch.arange(x.shape[-2]).float()[:, None] * rate
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)

    def forward(self, x):
        n, t, c = x.shape
        q = self.q(x).view(n, t, self.heads, self.d).transpose(1, 2)
        k, v = (p(x).view(n, t, self.kv, self.d).transpose(1, 2) for p in (self.k, self.v))
        if self.rope:
            q, k = self.turn(q), self.turn(k)
        if self.kv != self.heads:
            k, v = (z.repeat_interleave(self.heads // self.kv, 1) for z in (k, v))
        if hasattr(self, "table"):
            far = torch.arange(t)[:, None] - torch.arange(t)[None] + t - 1
            s = q @ k.transpose(-2, -1) / self.d**0.5 + self.table[far].permute(2, 0, 1)
            y = s.softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.o(y.transpose(1, 2).reshape(n, t, c))


case("attention", 5, 12)(lambda: Heads())
case("attention causal", 5, 12)(lambda: Heads(causal=True))
case("attention of relative bias", 5, 12)(lambda: Heads(bias=5))
case("attention rotary, grouped", 5, 12)(lambda: Heads(rope=True, causal=True, kv=1))
simple(
    "multiheadattention",
    (5, 12),
    lambda m, x: m.a(x, x, x, need_weights=False)[0],
    a=lambda: nn.MultiheadAttention(12, 3, batch_first=True),
)
simple(
    "multiheadattention, weights",
    (5, 12),
    lambda m, x: m.a(x, x, x)[1],
    a=lambda: nn.MultiheadAttention(12, 3, batch_first=True),
)
simple(
    "transformerencoderlayer",
    (5, 12),
    lambda m, x: m.a(x),
    a=lambda: nn.TransformerEncoderLayer(12, 3, 24, 0, batch_first=True),
)
simple(
    "transformerencoder, gelu, norm first",
    (5, 12),
    lambda m, x: m.a(x),
    a=lambda: nn.TransformerEncoder(
        nn.TransformerEncoderLayer(12, 2, 16, 0, "gelu", batch_first=True, norm_first=True),
        2,
        enable_nested_tensor=False,
    ),
)
simple(
    "transformerdecoderlayer",
    (5, 12),
    lambda m, x: m.a(x, x.flip(1)),
    a=lambda: nn.TransformerDecoderLayer(12, 3, 24, 0, batch_first=True),
)
simple(
    "transformer",
    (5, 12),
    lambda m, x: m.a(x, x),
    a=lambda: nn.Transformer(12, 3, 1, 1, 24, 0, batch_first=True),
)


# ---- whole models, small
class Squeeze(nn.Module):
    def __init__(self, c, act):
        super().__init__()
        self.a, self.b, self.act = nn.Conv2d(c, 2, 1), nn.Conv2d(2, c, 1), act

    def forward(self, x):
        return x * self.act(self.b(F.relu(self.a(F.adaptive_avg_pool2d(x, 1)))))


def bn(a, b, k=3, s=1, g=1, act=nn.ReLU6):
    return nn.Sequential(nn.Conv2d(a, b, k, s, k // 2, groups=g, bias=False), nn.BatchNorm2d(b), act())


def head(c, n=5):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(1), nn.Linear(c, n))


class Residual(nn.Module):
    def __init__(self, inner, skip=None):
        super().__init__()
        self.inner, self.skip = inner, skip or nn.Identity()

    def forward(self, x):
        return self.skip(x) + self.inner(x)


image = (3, 12, 12)
case("model resnet", *image)(
    lambda: nn.Sequential(
        bn(3, 4),
        nn.MaxPool2d(3, 2, 1),
        Residual(
            nn.Sequential(bn(4, 8, 3, 2), nn.Conv2d(8, 8, 3, 1, 1), nn.BatchNorm2d(8)), nn.Conv2d(4, 8, 1, 2)
        ),
        nn.ReLU(),
        head(8),
    )
)
case("model resnext", *image)(
    lambda: nn.Sequential(
        bn(3, 8), Residual(nn.Sequential(bn(8, 8, 1), bn(8, 8, 3, 1, 4), nn.Conv2d(8, 8, 1))), head(8)
    )
)
case("model mobilenet v2", *image)(
    lambda: nn.Sequential(
        bn(3, 4, 3, 2),
        Residual(
            nn.Sequential(bn(4, 8, 1), bn(8, 8, 3, 1, 8), nn.Conv2d(8, 4, 1, bias=False), nn.BatchNorm2d(4))
        ),
        head(4),
    )
)
case("model mobilenet v3", *image)(
    lambda: nn.Sequential(
        bn(3, 4, 3, 2, act=nn.Hardswish),
        bn(4, 8, 1, act=nn.Hardswish),
        bn(8, 8, 5, 1, 8, act=nn.Hardswish),
        Squeeze(8, nn.Hardsigmoid()),
        head(8),
    )
)
case("model efficientnet", *image)(
    lambda: nn.Sequential(
        bn(3, 4, 3, 2, act=nn.SiLU), bn(4, 8, 3, 1, 4, act=nn.SiLU), Squeeze(8, nn.Sigmoid()), head(8)
    )
)


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (
            nn.Sequential(nn.BatchNorm2d(i), nn.ReLU(), nn.Conv2d(i, 4, 3, padding=1)) for i in (3, 7, 11)
        )
        self.head = nn.Sequential(nn.AvgPool2d(2), head(15))

    def forward(self, x):
        for part in (self.a, self.b, self.c):
            x = torch.cat([x, part(x)], 1)
        return self.head(x)


case("model densenet", *image)(Dense)
case("model vgg", *image)(
    lambda: nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(True),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(4, 6, 3, padding=1),
        nn.ReLU(True),
        nn.MaxPool2d(2, 2),
        nn.AdaptiveAvgPool2d((3, 3)),
        nn.Flatten(),
        nn.Linear(54, 10),
        nn.ReLU(True),
        nn.Dropout(0.0),
        nn.Linear(10, 5),
    )
)


class Fire(nn.Module):
    def __init__(self):
        super().__init__()
        self.s, self.a, self.b, self.c = (
            nn.Conv2d(3, 3, 1),
            nn.Conv2d(3, 4, 1),
            nn.Conv2d(3, 4, 3, padding=1),
            nn.Conv2d(8, 5, 1),
        )

    def forward(self, x):
        x = F.relu(self.s(x))
        return F.adaptive_avg_pool2d(
            F.relu(self.c(F.max_pool2d(torch.cat([self.a(x), self.b(x)], 1), 3, 2, ceil_mode=True))), (1, 1)
        )


case("model squeezenet", *image)(Fire)


class Shuffle(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.b, self.head = bn(3, 8), nn.Sequential(bn(4, 4, 1), bn(4, 4, 3, 1, 4)), head(8)

    def forward(self, x):
        a, b = self.stem(x).chunk(2, 1)
        x = torch.cat([a, self.b(b)], 1)
        n, c, h, w = x.shape
        return self.head(x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w))


case("model shufflenet v2", *image)(Shuffle)


class Unet(nn.Module):
    def __init__(self, up):
        super().__init__()
        self.a, self.b, self.up, self.c, self.d = (
            bn(3, 4, act=nn.ReLU),
            bn(4, 8, act=nn.ReLU),
            up,
            bn(12 if isinstance(up, nn.Upsample) else 8, 4, act=nn.ReLU),
            nn.Conv2d(4, 2, 1),
        )

    def forward(self, x):
        a = self.a(x)
        return self.d(self.c(torch.cat([a, self.up(self.b(F.max_pool2d(a, 2)))], 1)))


case("model u-net, transposed", *image)(lambda: Unet(nn.ConvTranspose2d(8, 4, 2, 2)))
case("model u-net, upsample", *image)(
    lambda: Unet(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True))
)


class Fpn(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.la, self.lb, self.o = (
            nn.Conv2d(3, 4, 3, 2, 1),
            nn.Conv2d(4, 6, 3, 2, 1),
            nn.Conv2d(4, 3, 1),
            nn.Conv2d(6, 3, 1),
            nn.Conv2d(3, 2, 3, padding=1),
        )

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.b(a))
        return self.o(self.la(a) + F.interpolate(self.lb(b), size=a.shape[-2:], mode="nearest"))


case("model fpn", *image)(Fpn)


class Aspp(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Conv2d(3, 2, 3, padding=d, dilation=d) for d in (1, 2, 3))
        self.pool, self.o = nn.Conv2d(3, 2, 1), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        p = F.interpolate(
            self.pool(F.adaptive_avg_pool2d(x, 1)), size=x.shape[-2:], mode="bilinear", align_corners=False
        )
        return self.o(torch.cat([part(x) for part in self.parts] + [p], 1))


case("model deeplab aspp", *image)(Aspp)
case("model dcgan generator", 6)(
    lambda: nn.Sequential(
        nn.Unflatten(1, (6, 1, 1)),
        nn.ConvTranspose2d(6, 8, 3, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(True),
        nn.ConvTranspose2d(8, 2, 4, 2, 1, bias=False),
        nn.Tanh(),
    )
)


class Next(nn.Module):
    def __init__(self, c=4):
        super().__init__()
        self.stem, self.dw, self.n, self.a, self.b, self.g, self.head = (
            nn.Conv2d(3, c, 2, 2),
            nn.Conv2d(c, c, 7, padding=3, groups=c),
            nn.LayerNorm(c, eps=1e-6),
            nn.Linear(c, 4 * c),
            nn.Linear(4 * c, c),
            nn.Parameter(torch.ones(c) * 0.5),
            nn.Linear(c, 5),
        )

    def forward(self, x):
        x = self.stem(x)
        y = self.b(F.gelu(self.a(self.n(self.dw(x).permute(0, 2, 3, 1)))))
        return self.head((x + (self.g * y).permute(0, 3, 1, 2)).mean((-2, -1)))


case("model convnext", *image)(Next)


class Vit(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.patch, self.cls, self.pos = (
            nn.Conv2d(3, c, 4, 4),
            nn.Parameter(torch.randn(1, 1, c)),
            nn.Parameter(torch.randn(1, 10, c)),
        )
        self.block = nn.TransformerEncoderLayer(c, 3, 24, 0, "gelu", batch_first=True, norm_first=True)
        self.n, self.head = nn.LayerNorm(c), nn.Linear(c, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        return self.head(self.n(self.block(x))[:, 0])


case("model vit", *image)(Vit)


class Swin(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.patch, self.att, self.n, self.head = (
            nn.Conv2d(3, c, 3, 3),
            Heads(c, 3),
            nn.LayerNorm(c),
            nn.Linear(c, 5),
        )

    def forward(self, x):
        x = self.patch(x).permute(0, 2, 3, 1)
        n, h, w, c = x.shape
        y = (
            torch.roll(x, (-1, -1), (1, 2))
            .view(n, h // 2, 2, w // 2, 2, c)
            .permute(0, 1, 3, 2, 4, 5)
            .reshape(-1, 4, c)
        )
        y = self.att(self.n(y)).view(n, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return self.head((x + torch.roll(y, (1, 1), (1, 2))).mean((1, 2)))


case("model swin", *image)(Swin)


class Mixer(nn.Module):
    def __init__(self, c=6, t=9):
        super().__init__()
        self.patch, self.n1, self.n2 = nn.Conv2d(3, c, 4, 4), nn.LayerNorm(c), nn.LayerNorm(c)
        self.t, self.c, self.head = (
            nn.Sequential(nn.Linear(t, 8), nn.GELU(), nn.Linear(8, t)),
            nn.Sequential(nn.Linear(c, 8), nn.GELU(), nn.Linear(8, c)),
            nn.Linear(c, 5),
        )

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = x + self.t(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return self.head((x + self.c(self.n2(x))).mean(1))


case("model mlp-mixer", *image)(Mixer)


class Gpt(nn.Module):
    def __init__(self, v=11, c=12, t=6):
        super().__init__()
        self.e, self.p, self.a, self.n1, self.n2, self.nf = (
            nn.Embedding(v, c),
            nn.Embedding(t, c),
            Heads(c, 3, True),
            nn.LayerNorm(c),
            nn.LayerNorm(c),
            nn.LayerNorm(c),
        )
        self.m, self.head = nn.Sequential(nn.Linear(c, 24), nn.GELU("tanh"), nn.Linear(24, c)), nn.Linear(
            c, v, bias=False
        )

    def forward(self, x):
        h = self.e(x) + self.p(torch.arange(x.shape[1]))
        h = h + self.a(self.n1(h))
        return self.head(self.nf(h + self.m(self.n2(h))))[:, -1]


case("model gpt", 6, ids=11)(Gpt)


class Llama(nn.Module):
    def __init__(self, v=11, c=12):
        super().__init__()
        self.e, self.a, self.n1, self.n2, self.nf = (
            nn.Embedding(v, c),
            Heads(c, 3, True, rope=True, kv=1),
            nn.RMSNorm(c, 1e-5),
            nn.RMSNorm(c, 1e-5),
            nn.RMSNorm(c, 1e-5),
        )
        self.g, self.u, self.d, self.head = (
            nn.Linear(c, 16, bias=False),
            nn.Linear(c, 16, bias=False),
            nn.Linear(16, c, bias=False),
            nn.Linear(c, v, bias=False),
        )

    def forward(self, x):
        h = self.e(x)
        h = h + self.a(self.n1(h))
        y = self.n2(h)
        return self.head(self.nf(h + self.d(F.silu(self.g(y)) * self.u(y))))[:, -1]


case("model llama", 6, ids=11)(Llama)


class Bert(nn.Module):
    def __init__(self, v=11, c=12, t=6):
        super().__init__()
        self.e, self.p, self.n, self.att, self.pool, self.head = (
            nn.Embedding(v, c, padding_idx=0),
            nn.Embedding(t, c),
            nn.LayerNorm(c, 1e-12),
            nn.MultiheadAttention(c, 3, batch_first=True),
            nn.Linear(c, c),
            nn.Linear(c, 4),
        )

    def forward(self, x):
        h = self.n(self.e(x) + self.p.weight)
        h = h + self.att(h, h, h, key_padding_mask=(x == 0), need_weights=False)[0]
        return self.head(torch.tanh(self.pool(h[:, 0])))


case("model bert with a mask", 6, ids=11)(Bert)


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.c, self.fc = (
            nn.Embedding(11, 6),
            nn.ModuleList(nn.Conv1d(6, 4, k) for k in (2, 3)),
            nn.Linear(8, 3),
        )

    def forward(self, x):
        x = self.e(x).transpose(1, 2)
        return self.fc(torch.cat([F.relu(c(x)).max(2)[0] for c in self.c], 1))


case("model textcnn", 6, ids=11)(Text)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.r, self.fc = (
            nn.Embedding(11, 6),
            nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True),
            nn.Linear(10, 4),
        )

    def forward(self, x):
        return self.fc(self.r(self.e(x))[0])


case("model bi-lstm tagger", 6, ids=11)(lambda: Of(lambda m, x: m.t(x).mean(1), t=Tagger()))


class Wave(nn.Module):
    def __init__(self, c=4):
        super().__init__()
        self.i, self.f, self.g, self.r, self.o = (
            nn.Conv1d(2, c, 1),
            nn.ModuleList(nn.Conv1d(c, c, 2, dilation=d) for d in (1, 2)),
            nn.ModuleList(nn.Conv1d(c, c, 2, dilation=d) for d in (1, 2)),
            nn.ModuleList(nn.Conv1d(c, c, 1) for d in (1, 2)),
            nn.Conv1d(c, 2, 1),
        )

    def forward(self, x):
        x, out = self.i(x), 0
        for d, f, g, r in zip((1, 2), self.f, self.g, self.r):
            y = F.pad(x, (d, 0))
            y = r(torch.tanh(f(y)) * torch.sigmoid(g(y)))
            x, out = x + y, out + y
        return self.o(F.relu(out))


case("model wavenet", 2, 10)(Wave)


class Crnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.r, self.fc = (
            bn(1, 4, act=nn.ReLU),
            nn.GRU(16, 5, batch_first=True, bidirectional=True),
            nn.Linear(10, 4),
        )

    def forward(self, x):
        x = F.max_pool2d(self.c(x), 2)
        return self.fc(self.r(x.permute(0, 3, 1, 2).flatten(2))[0])[:, -1]


case("model crnn", 1, 8, 10)(Crnn)
case("model video cnn", 2, 4, 8, 8)(
    lambda: nn.Sequential(
        nn.Conv3d(2, 4, 3, padding=1),
        nn.BatchNorm3d(4),
        nn.ReLU(),
        nn.MaxPool3d((1, 2, 2)),
        nn.Conv3d(4, 4, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool3d(1),
        nn.Flatten(),
        nn.Linear(4, 3),
    )
)


class Siren(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.c(torch.sin(3 * self.b(torch.sin(3 * self.a(x)))))


case("model siren", 2)(Siren)


class Nerf(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(18, 8), nn.Linear(8, 3)

    def forward(self, x):
        f = (x[..., None] * 2.0 ** torch.arange(3)).flatten(1)
        return self.b(F.relu(self.a(torch.cat([f.sin(), f.cos()], -1))))


case("model nerf encoding", 3)(Nerf)


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.w = nn.Linear(6, 4), nn.Parameter(torch.randn(4, 6, 5) * 0.5)

    def forward(self, x):
        best, at = self.gate(x).topk(2, -1)
        g = torch.zeros_like(self.gate(x)).scatter(1, at, best.softmax(-1))
        return torch.einsum("be,bi,eio->bo", g, x, self.w)


case("model mixture of experts", 6)(Moe)


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 2)
        self.register_buffer("adj", (torch.rand(5, 5) > 0.5).float() + torch.eye(5))

    def forward(self, x):
        d = self.adj.sum(1, keepdim=True)
        return self.b((self.adj / d) @ F.relu(self.a((self.adj / d) @ x)))


case("model gcn, dense", 5, 4)(Graph)


class Dlrm(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.f, self.top = (
            nn.ModuleList(nn.Embedding(7, 4) for _ in range(3)),
            nn.Linear(3, 1),
            nn.Linear(6, 3),
        )

    def forward(self, x):
        v = torch.stack([e(x[:, i]) for i, e in enumerate(self.e)], 1)
        s = v @ v.transpose(1, 2)
        i, j = torch.triu_indices(3, 3, 0)
        return self.top(s[:, i, j])


case("model dlrm", 3, ids=7)(Dlrm)


class Slots(nn.Module):
    """Slot attention, two rounds of a cell of GRU."""

    def __init__(self):
        super().__init__()
        self.slots, self.q, self.k, self.v, self.cell, self.n = (
            nn.Parameter(torch.randn(1, 3, 6)),
            nn.Linear(6, 6),
            nn.Linear(6, 6),
            nn.Linear(6, 6),
            nn.GRUCell(6, 6),
            nn.LayerNorm(6),
        )

    def forward(self, x):
        s, k, v = self.slots.expand(x.shape[0], -1, -1), self.k(x), self.v(x)
        for _ in range(2):
            a = torch.einsum("bnd,bsd->bns", k, self.q(self.n(s))).softmax(-1) + 1e-8
            u = torch.einsum("bns,bnd->bsd", a / a.sum(1, keepdim=True), v)
            s = self.cell(u.reshape(-1, 6), s.reshape(-1, 6)).view(s.shape)
        return s


case("model slot attention", 5, 6)(Slots)


# ---- exporting, running, comparing
def build(name):
    make, shape, ids, rows = CASES[name]
    torch.manual_seed(7)
    model = Whole(make(), shape, ids)
    rng = np.random.default_rng(3)
    x = (
        rng.integers(0, ids, (rows, *shape))
        if ids
        else rng.standard_normal((rows, *shape)).astype(np.float32)
    )
    return model, torch.from_numpy(x)


def truth(model, x):
    """Logits and gradients of the loss of PyTorch, in f64."""
    model = model.double().train()
    x = x if x.dtype == torch.int64 else x.double()
    y = model(x)
    labels = torch.arange(x.shape[0]) % y.shape[1]
    F.cross_entropy(y, labels).backward()
    grad = {
        k: p.grad.numpy() if p.grad is not None else np.zeros(tuple(p.shape))
        for k, p in model.named_parameters()
    }
    with torch.no_grad():
        return model.eval()(x).numpy(), grad, labels.int().numpy()


def export(model, x, path, how, opset, free):
    if how["dynamo"]:
        free = dict(dynamic_shapes=({0: torch.export.Dim("n")},) if free else None)
        how = dict(how, external_data=False, verbose=False, **free)
        model.eval()
    else:
        free = dict(dynamic_axes={"x": {0: "n"}} if free else None)
        how = dict(how, training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, **free)
        model.train()
    with open(os.devnull, "w") as null:
        keep, sys.stdout = sys.stdout, null
        try:
            torch.onnx.export(
                model, (x,), path, input_names=["x"], output_names=["logits"], opset_version=opset, **how
            )
        finally:
            sys.stdout = keep


def heddle(*args):
    ran = subprocess.run(
        [os.environ.get("HEDDLE_BIN", "build/release/heddle"), *map(str, args)],
        capture_output=True,
        text=True,
    )
    return ran.returncode, (ran.stderr or ran.stdout).strip()


def evaluated(model, x, held):
    """Logits of PyTorch after a step that moves running statistics alone, from those of the file."""
    model = model.double().train()
    for name, buffer in model.named_buffers():
        if name in held:
            buffer.copy_(torch.from_numpy(held[name]))
    with torch.no_grad():
        x = x if x.dtype == torch.int64 else x.double()
        model(x)
        return model.eval()(x).numpy()


def off(ours, theirs, least=0.0):
    most = max(float(np.abs(theirs).max()), least, 1e-30)
    return float(np.abs(ours - theirs).max()) / most if np.isfinite(ours).all() else float("inf")


def same_values(before, left, values):
    """A parameter that the exporter stored in another shape and under another name."""
    return [
        k
        for k in left
        if before[k].size == values.size and np.array_equal(np.sort(before[k], None), np.sort(values, None))
    ]


def turned(values, stored, g):
    """The gradient in the orders of axes in which the exporter may have stored the values."""
    return [
        g.transpose(axes).reshape(stored.shape)
        for axes in itertools.permutations(range(g.ndim))
        if np.array_equal(values.transpose(axes).reshape(stored.shape), stored)
    ]


def left_out(model):
    """Rows of tables that PyTorch gives no gradient: {parameter: row}."""
    return {
        f"{name}.weight": part.padding_idx
        for name, part in model.named_modules()
        if getattr(part, "padding_idx", None) is not None
    }


def compare(folder, path, name, x, logits, grad, begin, padded):
    """(verdict, what): equal and the largest distance; refused and why; wrong and where."""
    code, said = heddle("model", "import", path, "-o", folder / "in", "-q")
    if code:
        return ("refused" if code == 3 and "'" in said else "wrong"), said.splitlines()[-1].split(
            ".onnx: ", 1
        )[-1]
    keys = (
        "job.steps=1 data.kind=npy batch.global=%d batch.virtual_nodes=1 optim.kind=sgd "
        "optim.schedule.kind=constant optim.schedule.warmup=0 optim.clip=0"
        % logits.shape[0]
    )
    sets = [w for k in keys.split() for w in ("-s", k)] + ["-s", f"data.path={folder / 'data'}"]
    for rate in (0, 1):
        code, said = heddle(
            "run",
            folder / "in" / "job.yaml",
            *sets,
            "-s",
            f"optim.lr={rate}",
            "--out",
            folder / f"run{rate}",
            "-q",
        )
        if code:
            return "wrong", said
    code, said = heddle("predict", folder / "run0", "--split", "train", "-o", folder / "p.npy", "-q")
    if code:
        return "wrong", said
    before = load_file(folder / "in" / "model.safetensors")
    if any(k.endswith("running_mean") for k in before):
        logits = evaluated(build(name)[0], x, before)
    worst, where = off(np.load(folder / "p.npy").reshape(logits.shape), logits), "logits"
    after = load_file(folder / "run1/ckpt/step-000000001/model.safetensors")
    scale = max(float(np.abs(g).max()) for g in grad.values())
    left = set(before)
    for name, g in grad.items():
        if not np.abs(g).max() > 0:
            continue
        ours = [k for k in before if k.lstrip("_") == name] or same_values(before, left, begin[name])
        if not ours:
            return "wrong", f"there is no parameter {name}"
        left.discard(ours[0])
        moved = before[ours[0]].astype(np.float64) - after[ours[0]]
        if name in padded:
            moved[padded[name]] = g[padded[name]]
        ways = turned(begin[name], before[ours[0]], g)
        if not ways:
            return "wrong", f"{ours[0]} is {name} in no order of its axes"
        distance = min(off(moved, way, scale) for way in ways)
        if distance > worst:
            worst, where = distance, name
    return ("equal" if worst <= TOLERANCE else "wrong"), f"{worst:.1e} {where}"


def judge(name, keep):
    """One module in all variants: [(variant, verdict, what)]."""
    at = keep / name.replace(" ", "_").replace("/", "_")
    at.mkdir(parents=True, exist_ok=True)
    (at / "data").mkdir(exist_ok=True)
    model, x = build(name)
    logits, grad, labels = truth(*build(name))
    np.save(at / "data" / "x.npy", x.numpy().astype(np.int32) if x.dtype == torch.int64 else x.numpy())
    np.save(at / "data" / "y.npy", labels)
    for variant, how, opset, free in VARIANTS:
        path, lost = at / f"{variant}.onnx", at / f"{variant}.no"
        if not path.exists() and not lost.exists():
            try:
                export(build(name)[0], x, path, how, opset, free)
            except Exception as why:
                lost.write_text(
                    str(why).strip().splitlines()[0][:200] if str(why).strip() else type(why).__name__
                )
                path.unlink(missing_ok=True)
        if lost.exists():
            yield variant, "not exported", lost.read_text()
            continue
        for old in ("in", "run0", "run1"):
            shutil.rmtree(at / old, ignore_errors=True)
        begin = {k: p.detach().numpy() for k, p in model.named_parameters()}
        yield variant, *compare(at, path, name, x, logits, grad, begin, left_out(model))


def words(results):
    count = {}
    for _, verdict, _ in results:
        count[verdict] = count.get(verdict, 0) + 1
    return ", ".join(f"{v} {n}" for v, n in count.items())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--keep")
    p.add_argument("--list", action="store_true")
    p.add_argument("--only", help="variants, with commas between")
    p.add_argument("names", nargs="*")
    args = p.parse_args()
    if args.only:
        VARIANTS[:] = [v for v in VARIANTS if v[0] in args.only.split(",")]
    keep = pathlib.Path(args.keep or tempfile.mkdtemp(prefix="onnx-modules-"))
    names = [n for n in CASES if not args.names or any(n.startswith(a) for a in args.names)]
    total, rows, bad = {}, [], False
    try:
        for name in names:
            results = list(judge(name, keep))
            for variant, verdict, what in results:
                total[verdict] = total.get(verdict, 0) + 1
                bad = bad or verdict == "wrong"
                if args.list or verdict == "wrong":
                    print(f"{name} [{variant}]: {verdict}: {what[:300]}", file=sys.stderr, flush=True)
            why = sorted({w for _, v, w in results if v in ("refused", "wrong")})
            errors = [float(w.split()[0]) for _, v, w in results if v == "equal"]
            rows.append(
                f"| {name} | {words(results)} | {max(errors):.1e} |"
                if errors
                else f"| {name} | {words(results)} | |"
            )
            if why:
                rows[-1] = rows[-1][:-1] + f" {why[0][:160]} |"
            else:
                rows[-1] += " |"
    finally:
        if not args.keep:
            shutil.rmtree(keep)
    import onnx

    cpu = next(
        (l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")),
        platform.machine(),
    )
    print(f"```\n# {time.strftime('%Y-%m-%d')} {cpu}, PyTorch {torch.__version__}, onnx {onnx.__version__}")
    print(
        f"modules: {len(names)}, files {sum(total.values())}: "
        + ", ".join(f"{k} {v}" for k, v in sorted(total.items()))
        + "\n```\n"
    )
    print("| module | files | largest distance | why not |\n|---|---|---|---|")
    print("\n".join(rows))
    return bad


if __name__ == "__main__":
    sys.exit(main())
