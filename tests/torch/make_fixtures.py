#!/usr/bin/env python3
"""make_fixtures.py -- what PyTorch computes, as files for src/engine/torch_test.c.

For each built-in model: a job file, initial parameters, a data set, the gradient of the
first step and the losses of ten AdamW steps, all in float32 on the CPU by PyTorch's own
modules. Run where PyTorch is installed:  python3 make_fixtures.py [FOLDER [MODEL...]]
The files committed beside this script were made by PyTorch 2.13.0; llama, bert, lstm and gru by 2.15.0 and
transformers; bert_cls, inception, those with inputs, gpt_options, roberta, resnext and mistral to vit by
2.13.0 and transformers.
"""

import os, sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

from fixtures_images import (
    Bn, Inception, Lenet, Mlp, Resnet18, Resnet50, Resnext, Vgg16, Vit,
)
from fixtures_text import (
    Bert, BertCls, BertInputs, COUNT, Gemma2, Gpt, GptInputs, GptOptions, Gru, Llama, LlamaInputs,
    Lstm, Mistral, Neox, Phi3, Qwen3, Roberta, RobertaCls,
)

STEPS, BATCH = 10, 24


def names(model):
    public = getattr(model, "public", lambda name: name)
    plain = {n.replace("/", ".").removeprefix("hf."): p for n, p in model.named_parameters()}
    return {public(n.removeprefix("transformer.")): p for n, p in plain.items()}


def make(name, cls, folder):
    out = os.path.join(folder, name)
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(17)
    torch.set_num_threads(1)
    model, (x, y) = cls(), cls.data(np.random.default_rng(17))
    np.save(os.path.join(out, "x.npy"), x)
    np.save(os.path.join(out, "y.npy"), y)
    inputs = cls.inputs(np.random.default_rng(18)) if hasattr(cls, "inputs") else {}
    for input, array in inputs.items():
        np.save(os.path.join(out, input + ".npy"), array)
    if "attention_mask" in inputs and y.ndim == 2:      # a token that is not seen has no label
        y = np.where(inputs["attention_mask"] & (y != -100), y, -1)
    params, lr = names(model), getattr(cls, "lr", "1e-2")
    save_file(
        {n: p.detach().clone().contiguous() for n, p in params.items()},
        os.path.join(out, "params.safetensors"),
    )
    with open(os.path.join(out, "job.yaml"), "w") as f:
        f.write(
            f"job: {{steps: {STEPS}}}\n{cls.yaml}\n"
            "data: {kind: npy, order: sequential, split: {train: 1.0, valid: 0.0}}\n"
            f"batch: {{global: {BATCH}, virtual_nodes: {getattr(cls, 'vns', 5)}}}\n"
            f"optim: {{kind: adamw, lr: {lr}, weight_decay: 0.05, clip: 1.0, "
            "schedule: {kind: constant, warmup: 0}}\n"
        )
    if hasattr(cls, "graph"):
        with open(os.path.join(out, "model.graph"), "w") as f:
            f.write(cls.graph)
    optim = torch.optim.AdamW(model.parameters(), lr=float(lr), weight_decay=0.05)
    expect, losses = {}, []
    for step in range(STEPS):
        at = step * BATCH % COUNT
        bx, by = torch.from_numpy(x[at:at + BATCH]), torch.from_numpy(y[at:at + BATCH]).long()
        more = {name: torch.from_numpy(array[at:at + BATCH]) for name, array in inputs.items()}
        logits = model(bx, **more)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), by.reshape(-1), ignore_index=-1)
        optim.zero_grad()
        loss.backward()
        if step == 0:
            expect = {"grad." + n: p.grad.detach().clone().contiguous() for n, p in params.items()}
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        losses.append(loss.item())
    expect.update({n: b.detach().clone() for n, b in model.named_buffers() if b.dtype == torch.float32})
    expect["loss"] = torch.tensor(losses, dtype=torch.float64)
    save_file(expect, os.path.join(out, "expect.safetensors"))
    print(name, " ".join(f"{v:.6f}" for v in losses))


if __name__ == "__main__":
    target = (
        sys.argv[1]
        if len(sys.argv) > 1
        else os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
    )
    every = {
        "mlp": Mlp,
        "lenet": Lenet,
        "gpt": Gpt,
        "bn": Bn,
        "llama": Llama,
        "mistral": Mistral,
        "gemma2": Gemma2,
        "phi3": Phi3,
        "qwen3": Qwen3,
        "neox": Neox,
        "vit": Vit,
        "bert": Bert,
        "bert_cls": BertCls,
        "bert_inputs": BertInputs,
        "gpt_inputs": GptInputs,
        "llama_inputs": LlamaInputs,
        "gpt_options": GptOptions,
        "roberta": Roberta,
        "roberta_cls": RobertaCls,
        "lstm": Lstm,
        "gru": Gru,
        "resnet18": Resnet18,
        "resnet50": Resnet50,
        "resnext": Resnext,
        "vgg16": Vgg16,
        "inception": Inception,
    }
    for name in sys.argv[2:] or every:
        make(name, every[name], target)
