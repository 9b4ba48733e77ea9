"""torch_models.py -- PyTorch's modules of the jobs that are timed or compared, under Heddle's names, and the
problems they train on."""

import json, re
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors import safe_open


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
        q, k, v = (
            a.view(n, t, self.heads, c // self.heads).transpose(1, 2) for a in self.c_attn(x).split(c, 2)
        )
        return self.c_proj(
            F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, c)
        )


class Feed(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = (
            nn.LayerNorm(c),
            Attention(c, heads),
            nn.LayerNorm(c),
            Feed(c),
        )

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


class Problem:
    """What `heddle bench step --save` writes: a job, its initial parameters, the rows of every step."""

    def __init__(self, path):
        with safe_open(path, "pt") as f:
            self.job = json.loads(f.metadata()["job"])
            tensors = {k: f.get_tensor(k) for k in f.keys()}
        self.rows = {k: tensors.pop(k) for k in list(tensors) if re.fullmatch(r"step\d+\.\w+", k)}
        self.state = {k: t.T.contiguous() if TURNED.fullmatch(k) else t for k, t in tensors.items()}

    def batch(self, step, layout=None):
        x, y = self.rows[f"step{step}.x"], self.rows[f"step{step}.y"].long().flatten()
        x = x.long() if x.dtype == torch.int32 else x
        return x.to(memory_format=layout) if layout else x, y

    def begin(self):
        torch.manual_seed(1)
        model = MODELS[self.job["model"]["use"]](**self.job["model"]["args"])
        model.load_state_dict(self.state, strict=True)
        return model
