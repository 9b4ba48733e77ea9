"""onnx_modules_layers.py: the cases of onnx_modules.py: CASES, what makes one, and those of single layers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 6
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
