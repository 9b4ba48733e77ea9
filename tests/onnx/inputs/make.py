#!/usr/bin/env python3
"""make.py -- a module with three inputs as PyTorch exports it, its data, and ten losses: the files beside
this script, made by PyTorch 2.13.0. tests/program_inputs.sh trains it.
"""

import os
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

N, T = 16, 12
NAMES = "input_ids", "attention_mask", "token_type_ids"
os.chdir(os.path.dirname(os.path.abspath(__file__)))


class Net(nn.Module):
	def __init__(self):
		super().__init__()
		self.tok, self.typ = nn.Embedding(40, 24), nn.Embedding(2, 24)
		self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 3)

	def forward(self, input_ids, attention_mask, token_type_ids):
		q, k, v = self.qkv(self.tok(input_ids) + self.typ(token_type_ids)).chunk(3, -1)
		bias = (1.0 - attention_mask[:, None, :].to(torch.float32)) * -1e9
		a = torch.softmax(q @ k.transpose(1, 2) / 24**0.5 + bias, -1)
		return self.out((a @ v)[:, 0])


torch.manual_seed(1)
net, rng = Net(), np.random.default_rng(0)
x = rng.integers(1, 40, (N, T))
mask = (np.arange(T)[None] < rng.integers(3, 13, N)[:, None]).astype(np.int64)
kinds, y = rng.integers(0, 2, (N, T)), rng.integers(0, 3, N)
for name, array in {"x": x, "attention_mask": mask, "token_type_ids": kinds, "y": y}.items():
	np.save(name + ".npy", array)
args = tuple(map(torch.from_numpy, (x, mask, kinds)))
torch.onnx.export(
	net, args, "model.onnx", input_names=NAMES, output_names=["logits"],
	dynamic_axes={name: {0: "rows"} for name in (*NAMES, "logits")}, dynamo=False, opset_version=17)
optim = torch.optim.AdamW(net.parameters(), lr=1e-2, weight_decay=0)
with open("losses.txt", "w") as f:
	for _ in range(10):
		loss = F.cross_entropy(net(*args), torch.from_numpy(y))
		f.write("%.9f\n" % loss.item())
		optim.zero_grad()
		loss.backward()
		optim.step()
