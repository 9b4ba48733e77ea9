"""fixtures_images.py: the models of make_fixtures.py that read images or rows of numbers."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from fixtures_text import COUNT, scattered


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
        return rng.standard_normal((COUNT, 1, 16, 16)).astype(np.float32), rng.integers(0, 7, COUNT).astype(
            np.int32
        )


class Bn(nn.Module):
    """Norms over the batch. PyTorch's are those of the whole batch: the job has one virtual node."""
    yaml = "model: {use: \"graph:model.graph\"}"
    vns = 1
    graph = """graph bn
input x f32 [*,1,8,8]
input y i32 [*]
param conv1.weight f32 [6,1,3,3] uniform 0.33333334
param bn1.weight f32 [6] ones
param bn1.bias f32 [6] zeros
param conv2.weight f32 [8,6,3,3] uniform 0.136
param bn2.weight f32 [8] ones
param bn2.bias f32 [8] zeros
param fc1.weight f32 [16,128] uniform 0.0884
param bn3.weight f32 [16] ones
param bn3.bias f32 [16] zeros
param fc.weight f32 [5,16] uniform 0.25
param fc.bias f32 [5] zeros
buffer bn1.running_mean f32 [6] zeros
buffer bn1.running_var f32 [6] ones
buffer bn2.running_mean f32 [8] zeros
buffer bn2.running_var f32 [8] ones
buffer bn3.running_mean f32 [16] zeros
buffer bn3.running_var f32 [16] ones
%0 = conv2d x conv1.weight sh=1 sw=1 ph=1 pw=1 : f32 [*,6,8,8]
%1,%2,%3 = batchnorm %0 bn1.weight bn1.bias bn1.running_mean bn1.running_var axis=1 eps=1e-05 \
: f32 [*,6,8,8], f32 [3,6], f64 [3,6]
%4 = act %1 act=relu : f32 [*,6,8,8]
%5 = maxpool2d %4 kh=2 kw=2 sh=2 sw=2 : f32 [*,6,4,4]
%6 = conv2d %5 conv2.weight sh=1 sw=1 ph=1 pw=1 : f32 [*,8,4,4]
%7,%8,%9 = batchnorm %6 bn2.weight bn2.bias bn2.running_mean bn2.running_var axis=1 eps=1e-05 \
: f32 [*,8,4,4], f32 [3,8], f64 [3,8]
%10 = act %7 act=relu : f32 [*,8,4,4]
%11 = reshape %10 d0=-1 d1=128 : f32 [*,128]
%12 = matmul %11 fc1.weight tb=1 : f32 [*,16]
%13,%14,%15 = batchnorm %12 bn3.weight bn3.bias bn3.running_mean bn3.running_var axis=1 eps=1e-05 \
: f32 [*,16], f32 [3,16], f64 [3,16]
%16 = act %13 act=relu : f32 [*,16]
%17 = matmul %16 fc.weight tb=1 : f32 [*,5]
%18 = bias %17 fc.bias axis=-1 : f32 [*,5]
%19,%20,%21 = softmax_xent %18 y : f32 [*], f32 [*], f32 [*]
%22 = sum64 %19 : f64 [1]
%23 = count64 y : f64 [1]
%24 = sum64 %21 : f64 [1]
output loss %22
output weight %23
output correct %24
output logits %18
running bn1.running_mean bn1.running_var %3 0.1
running bn2.running_mean bn2.running_var %9 0.1
running bn3.running_mean bn3.running_var %15 0.1
"""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 3, padding=1, bias=False), nn.Conv2d(
            6, 8, 3, padding=1, bias=False
        )
        self.bn1, self.bn2, self.bn3 = nn.BatchNorm2d(6), nn.BatchNorm2d(8), nn.BatchNorm1d(16)
        self.fc1, self.fc = nn.Linear(128, 16, bias=False), nn.Linear(16, 5)

    def forward(self, x):
        h = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        h = F.relu(self.bn2(self.conv2(h))).flatten(1)
        return self.fc(F.relu(self.bn3(self.fc1(h))))

    @staticmethod
    def data(rng):
        x = 0.5 + 2 * rng.standard_normal((COUNT, 1, 8, 8))
        return x.astype(np.float32), rng.integers(0, 5, COUNT).astype(np.int32)


class Vit(nn.Module):
    """Hugging Face's own module; its parameters go by the names of published files."""
    yaml = (
        "model: {use: builtin:vit, args: {layers: 2, width: 16, heads: 4, hidden: 24, channels: 2, image: 8, "
        "patch: 4, classes: 5}}"
    )
    old = {"q_proj": "attention.query", "k_proj": "attention.key", "v_proj": "attention.value",
           "o_proj": "output.dense"}  # yapf: disable

    def __init__(self):
        super().__init__()
        from transformers import ViTConfig, ViTForImageClassification
        self.hf = scattered(
            ViTForImageClassification(
                ViTConfig(
                    hidden_size=16,
                    num_hidden_layers=2,
                    num_attention_heads=4,
                    intermediate_size=24,
                    image_size=8,
                    patch_size=4,
                    num_channels=2,
                    num_labels=5,
                )
            )
        )

    def forward(self, x):
        return self.hf(pixel_values=x).logits

    @classmethod
    def public(cls, name):
        name = name.replace("vit.layers.", "vit.encoder.layer.")
        for new, old in cls.old.items():
            name = name.replace(f"attention.{new}.", f"attention.{old}.")
        return name.replace("mlp.fc1.", "intermediate.dense.").replace("mlp.fc2.", "output.dense.")

    @staticmethod
    def data(rng):
        x = rng.standard_normal((COUNT, 2, 8, 8)).astype(np.float32)
        return x, rng.integers(0, 5, COUNT).astype(np.int32)


class Residual(nn.Module):
    def __init__(self, inp, planes, stride, norm, expand, paths=1, width=64, apart=1):
        super().__init__()
        out, inside = planes * expand, planes * width // 64 * paths
        shapes = [(inp, inside, 1, 1), (inside, inside, 3, stride), (inside, out, 1, 1)] if expand > 1 else \
            [(inp, planes, 3, stride), (planes, planes, 3, 1)]
        for i, (a, b, k, s) in enumerate(shapes, 1):
            g, d = (paths, apart) if k == 3 and expand > 1 else (1, 1)
            setattr(
                self, f"conv{i}", nn.Conv2d(a, b, k, s, k // 2 * d, dilation=d, groups=g, bias=False)
            )
            setattr(self, f"bn{i}", norm(b))
        self.last = len(shapes)
        self.downsample = (
            nn.Sequential(nn.Conv2d(inp, out, 1, stride, bias=False), norm(out))
            if stride != 1 or inp != out
            else nn.Identity()
        )

    def forward(self, x):
        h = x
        for i in range(1, self.last + 1):
            h = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(h))
            h = F.relu(h) if i < self.last else h
        return F.relu(h + self.downsample(x))


class Resnet18(nn.Module):
    """BatchNorm2d sees what a virtual node does only if there is one of them."""
    yaml = "model: {use: builtin:resnet18, args: {stem: small, height: 12, width: 12, base: 2, classes: 5}}"
    blocks, expand, base, vns, lr = (2, 2, 2, 2), 1, 2, 1, "1e-3"
    channels, size = 3, 12

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = self.stem(), self.norm(self.base)
        inp = self.base
        for i, n in enumerate(self.blocks):
            layer = []
            for j in range(n):
                layer.append(Residual(inp, self.base << i, 2 if i and not j else 1, self.norm, self.expand))
                inp = (self.base << i) * self.expand
            setattr(self, f"layer{i + 1}", nn.Sequential(*layer))
        self.fc = nn.Linear(inp, 5)

    def stem(self):
        return nn.Conv2d(self.channels, self.base, 3, 1, 1, bias=False)

    def pool(self, x):
        return F.max_pool2d(x, 2)

    @staticmethod
    def norm(c):
        return nn.BatchNorm2d(c)

    def forward(self, x):
        h = self.pool(F.relu(self.bn1(self.conv1(x))))
        for i in range(4):
            h = getattr(self, f"layer{i + 1}")(h)
        return self.fc(F.adaptive_avg_pool2d(h, 1).flatten(1))

    @classmethod
    def data(cls, rng):
        return rng.standard_normal((COUNT, cls.channels, cls.size, cls.size)).astype(
            np.float32
        ), rng.integers(0, 5, COUNT).astype(np.int32)


class Resnet50(Resnet18):
    yaml = (
        "model: {use: builtin:resnet50, "
        "args: {channels: 1, height: 24, width: 24, base: 2, classes: 5, norm: group, groups: 2}}"
    )
    blocks, expand, vns, channels, size, lr = (3, 4, 6, 3), 4, 5, 1, 24, "3e-4"

    def stem(self):
        return nn.Conv2d(self.channels, self.base, 7, 2, 3, bias=False)

    def pool(self, x):
        return F.max_pool2d(x, 3, 2, 1)

    @staticmethod
    def norm(c):
        return nn.GroupNorm(2, c)


class Resnext(Resnet50):
    """Paths in the blocks; the last two stages widen windows, the first block of each by the stage before."""
    yaml = (
        "model: {use: builtin:resnext50_32x4d, args: {channels: 1, height: 16, width: 16, base: 2, "
        "classes: 5, stem: small, norm: group, groups: 2, paths: 2, path_width: 96, "
        "dilate: [layer3, layer4]}}"
    )
    size, lr = 16, "3e-5"

    def __init__(self):
        super().__init__()
        inp, apart = self.base, 1
        for i, n in enumerate(self.blocks):
            layer, before = [], apart
            apart *= 2 if i >= 2 else 1
            for j in range(n):
                stride = 2 if i == 1 and not j else 1
                layer.append(
                    Residual(
                        inp, self.base << i, stride, self.norm, 4, 2, 96, before if not j else apart
                    )
                )
                inp = (self.base << i) * 4
            setattr(self, f"layer{i + 1}", nn.Sequential(*layer))

    def stem(self):
        return nn.Conv2d(self.channels, self.base, 3, 1, 1, bias=False)

    def pool(self, x):
        return F.max_pool2d(x, 2)


class ConvNorm(nn.Sequential):
    def __init__(self, inp, out, kernel, stride=1):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(inp, out, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(out)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)))


class InceptionBlock(nn.Module):
    def __init__(self, inp, u, two):
        super().__init__()
        self.branch1 = ConvNorm(inp, u, 1)
        self.branch2 = nn.Sequential(ConvNorm(inp, u // 4 * 6, 1), ConvNorm(u // 4 * 6, 2 * u, 3))
        wide = (
            [ConvNorm(u // 4, u // 2, 3), ConvNorm(u // 2, u // 2, 3)]
            if two
            else [ConvNorm(u // 4, u // 2, 5)]
        )
        self.branch3 = nn.Sequential(ConvNorm(inp, u // 4, 1), *wide)
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), ConvNorm(inp, u // 2, 1))

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class Inception(nn.Module):
    """The channels of the first stage fill blocks of 16 in three of four branches, those of the second in all
    that are joined."""
    yaml = (
        "model: {use: builtin:inception, "
        "args: {stem: small, channels: 1, height: 12, width: 12, base: 16, "
        "blocks: [1, 1], classes: 5, dropout: 0}}"
    )
    base, blocks, channels, size, classes, two, vns, lr = 16, (1, 1), 1, 12, 5, False, 1, "1e-3"

    def __init__(self):
        super().__init__()
        base = self.base
        self.conv1, self.conv2, self.conv3 = self.stem(), ConvNorm(base, base, 1), ConvNorm(base, 3 * base, 3)
        inp = 3 * base
        for i, n in enumerate(self.blocks):
            for j in range(n):
                setattr(self, f"inception{3 + i}{chr(97 + j)}", InceptionBlock(inp, base << i, self.two))
                inp = 4 * (base << i)
        self.fc = nn.Linear(inp, self.classes)

    def stem(self):
        return ConvNorm(self.channels, self.base, 3)

    def pool(self, x):
        return F.max_pool2d(x, 2)

    def forward(self, x):
        h = self.conv3(self.conv2(self.pool(self.conv1(x))))
        for i, n in enumerate(self.blocks):
            h = F.max_pool2d(h, 3, 2, 1)
            for j in range(n):
                h = getattr(self, f"inception{3 + i}{chr(97 + j)}")(h)
        return self.fc(F.adaptive_avg_pool2d(h, 1).flatten(1))

    @classmethod
    def data(cls, rng):
        return rng.standard_normal((COUNT, cls.channels, cls.size, cls.size)).astype(
            np.float32
        ), rng.integers(0, 5, COUNT).astype(np.int32)


class Vgg16(nn.Module):
    yaml = (
        "model: {use: builtin:vgg16, "
        "args: {channels: 1, height: 32, width: 32, base: 2, classes: 5, hidden: 9, dropout: 0}}"
    )
    lr = "1e-3"

    def __init__(self):
        super().__init__()
        layers, inp = [], 1
        for v in (1, 1, 0, 2, 2, 0, 4, 4, 4, 0, 8, 8, 8, 0, 8, 8, 8, 0):
            layers += [nn.Conv2d(inp, 2 * v, 3, padding=1), nn.ReLU()] if v else [nn.MaxPool2d(2)]
            inp = 2 * v or inp
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(16, 9),
            nn.ReLU(),
            nn.Identity(),
            nn.Linear(9, 9),
            nn.ReLU(),
            nn.Identity(),
            nn.Linear(9, 5),
        )
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_in", nonlinearity="relu")

    def forward(self, x):
        return self.classifier(self.features(x).flatten(1))

    @staticmethod
    def data(rng):
        return rng.standard_normal((COUNT, 1, 32, 32)).astype(np.float32), rng.integers(0, 5, COUNT).astype(
            np.int32
        )
