#!/usr/bin/env python3
"""make_mixtures.py [FOLDER [NAME...]] -- mixtures of experts, encoder-decoders, for src/engine/torch_test.c.

As make_fixtures.py, of modules whose tensors lie otherwise in memory (experts are one tensor each, gate and
up of an expert apart) and whose loss has more than one term. The oracle of dropped tokens is a loop over
samples, choices and tokens that is written here; all else is transformers' own.
The files committed were made by PyTorch 2.13.0 and transformers 5.24.
"""

import math, os, sys
import numpy as np
import torch
import torch.nn.functional as F

sys.modules["torchvision"] = None  # one of another build would fail while transformers looks for it
import transformers
from safetensors.torch import save_file
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

STEPS, BATCH, COUNT, VOCAB, LENGTH = 10, 24, 48, 32, 12


def scattered(module):
    with torch.no_grad():
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    return module


def masks(rng, positions):
    """Padding behind, before, and with holes."""
    mask = np.ones((COUNT, positions), np.int32)
    for i in range(COUNT):
        n = rng.integers(1, positions)
        if i % 3 == 0:
            mask[i, n:] = 0
        elif i % 3 == 1:
            mask[i, :n] = 0
        else:
            mask[i] = rng.random(positions) < 0.7
            mask[i, n] = 1
    return mask


class Mixture:
    def data(self, rng):
        self.x = rng.integers(0, VOCAB, (COUNT, LENGTH)).astype(np.int32)
        self.y = rng.integers(0, VOCAB, (COUNT, LENGTH)).astype(np.int32)
        self.inputs = dict(attention_mask=masks(rng, LENGTH)) if self.masked else {}
        self.labels = np.where(self.inputs["attention_mask"], self.y, -1) if self.masked else self.y

    def build(self):
        cls = getattr(transformers, self.kind)
        common = dict(
            vocab_size=VOCAB,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=LENGTH,
            pad_token_id=None,
            intermediate_size=24,
            experts_implementation="eager",  # the grouped product wants widths of 4
        )
        self.module = scattered(cls(cls.config_class(**common, **self.more)))
        self.experts, self.chosen = self.module.config.num_experts, self.module.config.num_experts_per_tok
        if self.capacity:
            self.drop()

    def names(self):
        """Ours, each with a function that finds it in a tensor of theirs."""
        for name, p in self.module.named_parameters():
            if name.endswith("experts.gate_up_proj"):
                half = p.shape[1] // 2
                yield self.ours(name, 0), p, lambda t, half=half: t[:, :half]
                yield self.ours(name, 1), p, lambda t, half=half: t[:, half:]
            elif name.endswith("experts.down_proj"):
                yield self.ours(name, 2), p, lambda t: t
            else:
                yield name.replace(".mlp.", self.layer) if ".mlp.gate." in name else name, p, lambda t: t

    def ours(self, name, i):
        return name.rsplit(".", 1)[0].replace(".mlp.", self.layer) + "." + self.parts[i] + ".weight"

    def loss(self, at):
        """Of the rows at: the mean over labels, and the balance of each sample, weighed by its labels."""
        x, labels = torch.from_numpy(self.x[at]).long(), torch.from_numpy(self.labels[at]).long()
        mask = torch.from_numpy(self.inputs["attention_mask"][at]) if self.masked else None
        out = self.module(input_ids=x, attention_mask=mask, output_router_logits=True, use_cache=False)
        loss = F.cross_entropy(out.logits.reshape(-1, VOCAB), labels.reshape(-1), ignore_index=-1)
        if not self.balance:
            return loss
        total, n = 0.0, len(at)
        for i in range(n):
            logits = tuple(g.reshape(n, LENGTH, -1)[i] for g in out.router_logits)
            own = mask[i:i + 1] if self.masked else None
            each = load_balancing_loss_func(logits, self.experts, self.chosen, own)
            total = total + each * (labels[i] != -1).sum()
        return loss + self.balance * total / (labels != -1).sum()

    def drop(self):
        """The rule of src/graph/models/moe.h, one token after the other."""
        room = math.ceil(self.capacity * LENGTH * self.chosen / self.experts)
        fixture = self

        def forward(experts, hidden, index, weights):
            out = torch.zeros_like(hidden)
            for sample in range(hidden.shape[0] // LENGTH):
                taken = [0] * fixture.experts
                for choice in range(fixture.chosen):
                    for token in range(LENGTH):
                        if fixture.masked and not fixture.now[sample, token]:
                            continue
                        row = sample * LENGTH + token
                        e = int(index[row, choice])
                        taken[e] += 1
                        if taken[e] > room:
                            fixture.dropped += 1
                            continue
                        gate, up = (experts.gate_up_proj[e] @ hidden[row]).chunk(2)
                        y = experts.down_proj[e] @ (F.silu(gate) * up)
                        out = out.index_add(0, torch.tensor([row]), (weights[row, choice] * y)[None])
            return out

        self.dropped = 0
        for layer in self.module.model.layers:
            layer.mlp.experts.forward = forward.__get__(layer.mlp.experts)

    def step(self, at):
        if self.masked:
            self.now = self.inputs["attention_mask"][at]
        return self.loss(at)


class Mixtral(Mixture):
    kind, masked, capacity, balance = "MixtralForCausalLM", False, 0, 0.5
    layer, parts = ".block_sparse_moe.", ("w1", "w3", "w2")
    more = dict(num_local_experts=4, sliding_window=5, rms_norm_eps=1e-5)
    yaml = (
        "model: {use: builtin:mixtral, args: {layers: 2, width: 16, heads: 4, kv_heads: 2, hidden: 24, "
        "context: 12, vocab: 32, window: 5, experts: 4, rope: 1000000, balance: 0.5}}"
    )


class MixtralDrop(Mixtral):
    masked, capacity, balance = True, 0.75, 0.25
    more = dict(num_local_experts=5, rms_norm_eps=1e-5)
    yaml = (
        "model: {use: builtin:mixtral, args: {layers: 2, width: 16, heads: 4, kv_heads: 2, "
        "hidden: 24, context: 12, vocab: 32, experts: 5, rope: 1000000, capacity: 0.75, balance: 0.25, "
        "inputs: [attention_mask]}}"
    )


class Qwen2Moe(Mixture):
    kind, masked, capacity, balance = "Qwen2MoeForCausalLM", False, 0, 0
    layer, parts = ".mlp.", ("gate_proj", "up_proj", "down_proj")
    more = dict(
        num_experts=6,
        num_experts_per_tok=3,
        moe_intermediate_size=10,
        shared_expert_intermediate_size=14,
        mlp_only_layers=[0],
        rms_norm_eps=1e-5,
    )
    yaml = (
        "model: {use: builtin:qwen2-moe, args: {layers: 2, width: 16, heads: 4, kv_heads: 2, hidden: 24, "
        "context: 12, vocab: 32, experts: 6, chosen: 3, expert_hidden: 10, shared_hidden: 14, dense: [0]}}"
    )


class T5:
    target, masked = 7, True
    more = dict(feed_forward_proj="relu")
    yaml = (
        "model: {use: builtin:t5, args: {layers: 2, width: 16, heads: 4, head_dim: 6, "
        "hidden: 24, context: 12, target: 7, vocab: 32, buckets: 8, distance: 9, inputs: [attention_mask]}}"
    )
    scale = True

    def data(self, rng):
        self.x = rng.integers(0, VOCAB, (COUNT, LENGTH)).astype(np.int32)
        self.y = rng.integers(0, VOCAB, (COUNT, self.target)).astype(np.int32)
        self.y[::3, 5:] = -100
        self.inputs = dict(attention_mask=masks(rng, LENGTH))

    def build(self):
        config = transformers.T5Config(
            vocab_size=VOCAB,
            d_model=16,
            d_kv=6,
            d_ff=24,
            num_layers=2,
            num_heads=4,
            relative_attention_num_buckets=8,
            relative_attention_max_distance=9,
            dropout_rate=0.0,
            decoder_start_token_id=0,
            **self.more,
        )
        config.scale_decoder_outputs = self.scale
        self.module = transformers.T5ForConditionalGeneration(config)
        if not self.scale:  # a head of its own, as T5 1.1 has
            self.module.lm_head.weight = torch.nn.Parameter(self.module.lm_head.weight.detach() * 0.2)
        scattered(self.module)

    def names(self):
        for name, p in self.module.named_parameters():
            yield name, p, lambda t: t

    def step(self, at):
        x, y = torch.from_numpy(self.x[at]).long(), torch.from_numpy(self.y[at]).long()
        mask = torch.from_numpy(self.inputs["attention_mask"][at])
        return self.module(input_ids=x, attention_mask=mask, labels=y).loss


class Flan(T5):
    more = dict(feed_forward_proj="gated-gelu", num_decoder_layers=1)
    yaml = T5.yaml.replace("target: 7", "target: 12").replace(
        "hidden: 24", "hidden: 24, decoder_layers: 1, ff: gated-gelu_tanh, tie: false"
    )
    scale, target = False, LENGTH  # as long as x: what hides a token of x must hide no label


def make(name, fixture, folder):
    out = os.path.join(folder, name)
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(17)
    torch.set_num_threads(1)
    fixture.data(np.random.default_rng(17))
    fixture.build()
    for array, of in [("x", fixture.x), ("y", fixture.y), *fixture.inputs.items()]:
        np.save(os.path.join(out, array + ".npy"), of)
    tensors = list(fixture.names())

    def all_of(prefix, of):
        return {prefix + n: find(of(p)).detach().clone().contiguous() for n, p, find in tensors}

    save_file(all_of("", lambda p: p), os.path.join(out, "params.safetensors"))
    with open(os.path.join(out, "job.yaml"), "w") as f:
        f.write(
            f"job: {{steps: {STEPS}}}\n{fixture.yaml}\n"
            "data: {kind: npy, order: sequential, split: {train: 1.0, valid: 0.0}}\n"
            f"batch: {{global: {BATCH}, virtual_nodes: 5}}\n"
            "optim: {kind: adamw, lr: 1e-2, weight_decay: 0.05, clip: 1.0, "
            "schedule: {kind: constant, warmup: 0}}\n"
        )
    optim = torch.optim.AdamW(fixture.module.parameters(), lr=1e-2, weight_decay=0.05)
    expect, losses = {}, []
    for step in range(STEPS):
        loss = fixture.step([(step * BATCH + i) % COUNT for i in range(BATCH)])
        optim.zero_grad()
        loss.backward()
        if step == 0:
            expect = all_of("grad.", lambda p: p.grad)
        torch.nn.utils.clip_grad_norm_(fixture.module.parameters(), 1.0)
        optim.step()
        losses.append(loss.item())
    expect["loss"] = torch.tensor(losses, dtype=torch.float64)
    save_file(expect, os.path.join(out, "expect.safetensors"))
    dropped = f"; {fixture.dropped} dropped" if hasattr(fixture, "dropped") else ""
    print(name, " ".join(f"{v:.6f}" for v in losses) + dropped)


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    target = sys.argv[1] if len(sys.argv) > 1 else os.path.join(here, "fixtures")
    every = {"mixtral": Mixtral, "mixtral_drop": MixtralDrop, "qwen2_moe": Qwen2Moe, "t5": T5, "flan": Flan}
    for name in sys.argv[2:] or every:
        make(name, every[name](), target)


if __name__ == "__main__":
    main()
