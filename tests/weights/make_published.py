#!/usr/bin/env python3
"""make_published.py FOLDER -- small published models as transformers writes them: FOLDER/NAME/{config.json,
model.safetensors, x.npy, y.npy, loss}. Run with both majors of transformers; the second one's config.json is
kept as config.MAJOR.json beside the first one's weights, which it describes as well. `loss` is the mean
cross-entropy of PyTorch over the labels that are not -1."""

import os, shutil, sys, tempfile
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

major = int(transformers.__version__.split(".")[0])
out = sys.argv[1]
ROWS, LENGTH, VOCAB = 12, 8, 32


def llama_config():
    rope = (
        dict(rope_parameters={"rope_type": "default", "rope_theta": 500.0})
        if major >= 5
        else dict(rope_theta=500.0)
    )
    return LlamaConfig(
        num_hidden_layers=1,
        hidden_size=16,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        intermediate_size=24,
        max_position_embeddings=LENGTH,
        vocab_size=VOCAB,
        rms_norm_eps=1e-2,
        **rope,
    )


bert = dict(
    num_hidden_layers=1,
    hidden_size=16,
    num_attention_heads=4,
    intermediate_size=24,
    max_position_embeddings=LENGTH,
    vocab_size=VOCAB,
    layer_norm_eps=1e-2,
    pad_token_id=3,
)
CASES = {
    "gpt2": (
        GPT2LMHeadModel,
        lambda: GPT2Config(
            n_layer=1,
            n_embd=16,
            n_head=2,
            n_positions=LENGTH,
            vocab_size=VOCAB,
            n_inner=24,
            layer_norm_epsilon=1e-2,
        ),
    ),
    "llama": (LlamaForCausalLM, llama_config),
    "bert": (BertForMaskedLM, lambda: BertConfig(**bert)),
    "bert_cls": (BertForSequenceClassification, lambda: BertConfig(num_labels=3, **bert)),
}

for name, (make, config) in CASES.items():
    folder = f"{out}/{name}"
    with tempfile.TemporaryDirectory() as tmp:
        torch.manual_seed(5)
        module = make(config()).eval()
        with torch.no_grad():  # every tensor matters, and attention and norms are far from their beginnings
            for p in module.parameters():
                p.add_(torch.randn_like(p) * 0.3)
        module.save_pretrained(tmp)
        if os.path.exists(f"{folder}/config.json"):
            shutil.copy(f"{tmp}/config.json", f"{folder}/config.{major}.json")
            continue
        os.makedirs(folder)
        for file in ("config.json", "model.safetensors"):
            shutil.copy(f"{tmp}/{file}", f"{folder}/{file}")
    rng = np.random.default_rng(7)
    x = rng.integers(4, VOCAB, (ROWS, LENGTH)).astype(np.int32)
    y = rng.integers(0, VOCAB, (ROWS, LENGTH)).astype(np.int32)
    asked = dict(input_ids=torch.from_numpy(x).long())
    if name.startswith("bert"):
        x[::2, 6:] = 3
        asked = dict(input_ids=torch.from_numpy(x).long(), attention_mask=torch.from_numpy(x != 3).long())
        y[rng.random(y.shape) < 0.5] = -1
    if name == "bert_cls":
        y = rng.integers(0, 3, ROWS).astype(np.int32)
    with torch.no_grad():
        logits = module(**asked).logits
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), torch.from_numpy(y).long().reshape(-1), ignore_index=-1
    )
    np.save(f"{folder}/x.npy", x)
    np.save(f"{folder}/y.npy", y)
    open(f"{folder}/loss", "w").write(f"{loss.item():.7f}\n")
