"""onnx_modules_models.py: whole models, small, as cases of onnx_modules.py."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from onnx_modules_layers import Of, case, simple


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
