#!/usr/bin/env python3
"""make_peft.py FOLDER -- small adapters as peft writes them, for tests/program_peft.sh.

FOLDER holds gpt2 and bert_cls (make_published.py). Of each NAME below FOLDER/NAME becomes what
PeftModel.save_pretrained() writes, and `losses`: the mean cross-entropy of all rows, then that of each of ten
steps of SGD with rate 0.05 on what is trained, rows in order, four a step. Made by peft 0.21 and PyTorch
2.13."""

import json, os, shutil, sys
import numpy as np
import torch
import transformers
from peft import LoraConfig, get_peft_model

out = sys.argv[1]
ROWS, BATCH, STEPS, PAD = 12, 4, 10, 3
CASES = {
    # patterns of ranks and alphas, the root, biases of adapted modules, matrices stored [in, out]
    "peft_gpt2": (
        "gpt2",
        transformers.GPT2LMHeadModel,
        LoraConfig(
            r=2,
            lora_alpha=3,
            target_modules=["c_attn", "c_fc"],
            fan_in_fan_out=True,
            rank_pattern={"c_fc": 3},
            alpha_pattern={r"h\.\d+\.mlp\.c_fc": 5},
            use_rslora=True,
            bias="lora_only",
            task_type="CAUSAL_LM",
        ),
    ),
    # a regular expression, all biases, a head that is saved whole
    "peft_bert": (
        "bert_cls",
        transformers.BertForSequenceClassification,
        LoraConfig(
            r=2,
            lora_alpha=4,
            target_modules=r".*\.attention\.(self\.(query|value)|output\.dense)",
            bias="all",
            task_type="SEQ_CLS",
        ),
    ),
}


def mean_loss(model, x, y):
    ids = torch.from_numpy(x).long()
    logits = model(input_ids=ids, attention_mask=(ids != PAD).long()).logits
    return torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), torch.from_numpy(y).long().reshape(-1), ignore_index=-1
    )


for name, (base, cls, config) in CASES.items():
    x, y = np.load(f"{out}/{base}/x.npy"), np.load(f"{out}/{base}/y.npy")
    shutil.copy(f"{out}/{base}/config.5.json", f"{out}/{base}/config.json")
    torch.manual_seed(11)
    model = get_peft_model(cls.from_pretrained(f"{out}/{base}"), config).eval()
    os.remove(f"{out}/{base}/config.json")
    trained = [p for p in model.parameters() if p.requires_grad]
    with torch.no_grad():  # B begins with zeros: nothing of an adapter would show
        for p in trained:
            p.add_(torch.randn_like(p) * 0.3)
    model.save_pretrained(f"{out}/{name}")
    os.remove(f"{out}/{name}/README.md")
    with open(f"{out}/{name}/adapter_config.json") as file:
        said = json.load(file)
    said["base_model_name_or_path"] = base
    with open(f"{out}/{name}/adapter_config.json", "w") as file:
        json.dump(said, file, indent=2, sort_keys=True)
        file.write("\n")
    with torch.no_grad():
        losses = [mean_loss(model, x, y).item()]
    optim = torch.optim.SGD(trained, lr=0.05)
    for step in range(STEPS):
        rows = [(step * BATCH + i) % ROWS for i in range(BATCH)]
        loss = mean_loss(model, x[rows], y[rows])
        optim.zero_grad()
        loss.backward()
        optim.step()
        losses.append(loss.item())
    with open(f"{out}/{name}/losses", "w") as file:
        file.writelines(f"{v:.7f}\n" for v in losses)
