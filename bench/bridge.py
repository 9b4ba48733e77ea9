#!/usr/bin/env python3
"""bridge.py [-o FILE] [ARCHITECTURE...] -- published models: transformers beside ours.

For each architecture and each option of its config class: a small random module is saved by
save_pretrained(), imported by `heddle model import`, and compared: logits of every sample (largest difference
over the largest logit), ten losses of SGD and ten of AdamW (relatively). Then `heddle model export` writes a
folder with config.json: the class it names must load it (from_pretrained: nothing missing, nothing over; and
load_state_dict(strict=True)) and give the same logits. Options that we do not compute must be refused.

Prints a table (docs/results/bridge.md). Exit 1: a row is off, or a refusal is missing.
HEDDLE_BIN (default build/release/heddle). Wants Python with torch, transformers, safetensors, numpy."""

import json, os, subprocess, sys, tempfile
sys.path.pop(0)  # this folder has a tokenize.py, which is not Python's
import numpy as np
import torch

sys.modules["torchvision"] = None  # one of another build would fail while transformers looks for it
import transformers
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
from transformers import AutoConfig

HEDDLE = os.environ.get("HEDDLE_BIN", "build/release/heddle")
ROWS, LENGTH, VOCAB, STEPS = 24, 12, 40, 10
torch.set_num_threads(1)


def call(*args, fails=False):
    done = subprocess.run([HEDDLE, *map(str, args), "-q"], capture_output=True, text=True)
    if fails:
        return done.returncode, (done.stdout + done.stderr).strip()
    if done.returncode:
        words = " ".join(map(str, args))
        raise RuntimeError(f"heddle {words}: exit {done.returncode}: {done.stderr.strip()}")
    return done


def decoder(**more):
    return dict(
        num_hidden_layers=3,
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=LENGTH,
        vocab_size=VOCAB,
        pad_token_id=None,
        bos_token_id=1,
        eos_token_id=2,
    ) | more


def rope(kind, **more):
    return dict(rope_parameters=dict(rope_type=kind, rope_theta=500.0) | more)


STRETCHED = {
    "rope linear": rope("linear", factor=2.5),
    "rope dynamic": rope("dynamic", factor=2.0),
    "rope yarn": rope("yarn", factor=4.0, original_max_position_embeddings=6),
    "rope yarn, betas": rope(
        "yarn",
        factor=4.0,
        original_max_position_embeddings=4,
        beta_fast=2.0,
        beta_slow=0.1,
        attention_factor=1.3,
        truncate=False,
    ),
    "rope llama3": rope(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8
    ),
    "rope longrope, beyond": rope(
        "longrope",
        short_factor=[1.0, 1.1, 1.2, 1.3],
        long_factor=[1.0, 2.0, 3.0, 4.5],
        factor=3.0,
        original_max_position_embeddings=4,
    ),
    "rope longrope, within": rope(
        "longrope",
        short_factor=[1.0, 1.1, 1.2, 1.3],
        long_factor=[1.0, 2.0, 3.0, 4.5],
        factor=3.0,
        original_max_position_embeddings=32,
    ),
}
PLAIN = {
    "as it is": {},
    "tied": dict(tie_word_embeddings=True),
    "heads of keys as many": dict(num_key_value_heads=4),
    "one head of keys": dict(num_key_value_heads=1),
    "head_dim 12": dict(head_dim=12),
    "gelu": dict(hidden_act="gelu"),
    "relu": dict(hidden_act="relu"),
    "gelu_pytorch_tanh": dict(hidden_act="gelu_pytorch_tanh"),
    "rope_theta, eps": rope("default") | dict(rms_norm_eps=1e-3),
}
REFUSED = {
    "rope yarn, mscale": (
        rope("yarn", factor=4.0, original_max_position_embeddings=6, mscale=0.7, mscale_all_dim=0.5),
        "mscale is 0.7",
    ),
    "quick_gelu": (dict(hidden_act="quick_gelu"), "hidden_act is quick_gelu"),
}


def without(table, *names):
    return {k: v for k, v in table.items() if k not in names}


def layers(word):
    return ["sliding_attention" if c == "w" else "full_attention" for c in word]


# class, config, options that are computed, options that are refused: (config, words of the message)
ARCHITECTURES = {
    "llama": (
        "LlamaForCausalLM",
        decoder(),
        PLAIN | STRETCHED | {"attention_bias": dict(attention_bias=True), "mlp_bias": dict(mlp_bias=True)},
        REFUSED,
    ),
    "mistral": (
        "MistralForCausalLM",
        decoder(sliding_window=None),
        PLAIN | STRETCHED | {f"window {n}": dict(sliding_window=n) for n in (1, 4, 12)},
        REFUSED,
    ),
    "qwen2": (
        "Qwen2ForCausalLM",
        decoder(),
        without(PLAIN, "head_dim 12")
        | STRETCHED
        | {
            "window from layer 1": dict(use_sliding_window=True, sliding_window=4, max_window_layers=1),
            "layer_types": dict(use_sliding_window=True, sliding_window=3, layer_types=layers("wfw")),
        },
        REFUSED
        | {
            "layer_types of no period": (
                dict(
                    use_sliding_window=True, sliding_window=3, num_hidden_layers=4, layer_types=layers("wwfw")
                ),
                "layer_types",
            )
        },
    ),
    "qwen3": (
        "Qwen3ForCausalLM",
        decoder(head_dim=8),
        PLAIN
        | STRETCHED
        | {
            "attention_bias": dict(attention_bias=True),
            "window from layer 1": dict(use_sliding_window=True, sliding_window=4, max_window_layers=1),
        },
        REFUSED,
    ),
    "gemma2": (
        "Gemma2ForCausalLM",
        decoder(head_dim=8, query_pre_attn_scalar=8, sliding_window=4),
        without(PLAIN, "gelu", "relu", "gelu_pytorch_tanh")
        | without(STRETCHED)
        | {
            "untied": dict(tie_word_embeddings=False),
            "scores capped at 2": dict(attn_logit_softcapping=2.0),
            "no caps": dict(attn_logit_softcapping=None, final_logit_softcapping=None),
            "logits capped at 3": dict(final_logit_softcapping=3.0),
            "query_pre_attn_scalar": dict(query_pre_attn_scalar=3),
            "attention_bias": dict(attention_bias=True),
            "silu": dict(hidden_activation="silu"),
            "layer_types": dict(layer_types=layers("fww")),
        },
        {
            "quick_gelu": (dict(hidden_activation="quick_gelu"), "hidden_activation is quick_gelu"),
            "bidirectional": (dict(use_bidirectional_attention=True), "use_bidirectional_attention is true"),
        },
    ),
    "phi3": (
        "Phi3ForCausalLM",
        decoder(original_max_position_embeddings=LENGTH),
        without(PLAIN, "head_dim 12")
        | {
            "window 4": dict(sliding_window=4),
            "rope longrope, beyond": rope(
                "longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.5]
            )
            | dict(original_max_position_embeddings=4),
            "rope longrope, within": rope(
                "longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.5]
            )
            | dict(original_max_position_embeddings=8, max_position_embeddings=16),
            "half of each head turns": rope("default", partial_rotary_factor=0.5),
        },
        {"quick_gelu": REFUSED["quick_gelu"]},
    ),
    "gpt_neox": (
        "GPTNeoXForCausalLM",
        without(decoder(), "num_key_value_heads") | dict(attention_dropout=0.0, hidden_dropout=0.0),
        {
            "as it is": {},
            "tied": dict(tie_word_embeddings=True),
            "one after the other": dict(use_parallel_residual=False),
            "no biases of attention": dict(attention_bias=False),
            "all of each head turns": rope("default", partial_rotary_factor=1.0),
            "half of each head turns, linear": rope("linear", factor=2.0, partial_rotary_factor=0.5),
            "eps": dict(layer_norm_eps=1e-3),
            "relu": dict(hidden_act="relu"),
            "gelu_new": dict(hidden_act="gelu_new"),
        },
        {"quick_gelu": REFUSED["quick_gelu"]},
    ),
    "vit": (
        "ViTForImageClassification",
        dict(
            num_hidden_layers=2,
            hidden_size=24,
            num_attention_heads=3,
            intermediate_size=40,
            image_size=12,
            patch_size=4,
            num_channels=2,
            num_labels=5,
        ),
        {
            "as it is": {},
            "no biases of q, k, v": dict(qkv_bias=False),
            "eps": dict(layer_norm_eps=1e-3),
            "gelu_new": dict(hidden_act="gelu_new"),
            "patches of 6, 3 planes": dict(patch_size=6, num_channels=3),
        },
        {"quick_gelu": REFUSED["quick_gelu"]},
    ),
}


def build(kind, config):
    cls = getattr(transformers, kind)
    torch.manual_seed(5)
    made = cls.config_class(**config)
    made.pad_token_id = config.get("pad_token_id")  # Phi3Config has a number of its own for None
    module = cls(made).eval()
    with torch.no_grad():  # biases and norms away from 0 and 1, so that a mistake in one shows
        for p in module.parameters():
            p.add_(torch.randn_like(p) * 0.2)
    return cls, module


def data_of(config):
    rng = np.random.default_rng(7)
    if "image_size" in config:
        x = rng.standard_normal((ROWS, config["num_channels"], config["image_size"], config["image_size"]))
        return x.astype(np.float32), rng.integers(0, config["num_labels"], ROWS).astype(np.int32)
    length = min(config["max_position_embeddings"], 16)
    x = rng.integers(3, VOCAB, (ROWS, length)).astype(np.int32)
    return x, rng.integers(0, VOCAB, (ROWS, length)).astype(np.int32)


def asked(module, x):
    if x.dtype == np.float32:
        return module(pixel_values=torch.from_numpy(x)).logits
    return module(input_ids=torch.from_numpy(x).long(), use_cache=False).logits


def their_losses(module, x, y, make):
    optim, losses = make(module.parameters()), []
    for step in range(STEPS):
        rows = [(step * 8 + i) % ROWS for i in range(8)]
        logits = asked(module, x[rows])
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]), torch.from_numpy(y[rows]).long().reshape(-1)
        )
        optim.zero_grad()
        loss.backward()
        optim.step()
        losses.append(loss.item())
    return losses


STEADY = "clip: 0, schedule: {kind: constant, warmup: 0}}"
OPTIMIZERS = {
    "{kind: sgd, lr: 0.05, " + STEADY: lambda p: torch.optim.SGD(p, lr=0.05),
    "{kind: adamw, lr: 1e-3, weight_decay: 0.01, " + STEADY: lambda p: torch.optim.AdamW(
        p, lr=1e-3, weight_decay=0.01
    ),
}


def run(folder, out, steps, optim):
    with open(f"{folder}/ours/job.yaml") as file:
        kept = [line for line in file if line.split(":")[0] not in ("job", "data", "batch", "optim")]
    with open(f"{folder}/{out}.yaml", "w") as file:
        file.writelines(kept)
        file.write(
            f"job: {{steps: {steps}}}\n"
            f"data: {{kind: npy, path: {folder}, order: sequential, split: {{train: 1, valid: 0}}}}\n"
            f"batch: {{global: 8, virtual_nodes: 4}}\noptim: {optim}\n"
        )
    call("run", f"{folder}/{out}.yaml", "--out", f"{folder}/{out}")
    with open(f"{folder}/{out}/metrics.ndjson") as lines:
        return [v["loss"] for v in map(json.loads, lines) if "loss" in v]


def relative(a, b):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.abs(a - b).max() / np.abs(b).max())


def kept_names(folder, module):
    from safetensors import safe_open
    with safe_open(f"{folder}/theirs/model.safetensors", "pt") as file:
        return set(file.keys()) <= set(module.state_dict())


def comes_back(folder, cls, module, x):
    """Largest difference of the logits of what the named class loads strictly."""
    call("model", "export", f"{folder}/still", "--names", "torch", "--tied", "both", "-o", f"{folder}/back")
    named = AutoConfig.from_pretrained(f"{folder}/back").architectures
    assert named == [cls.__name__], f"config.json names {named}"
    again, info = cls.from_pretrained(f"{folder}/back", output_loading_info=True)
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[key], f"{key}: {info[key]}"
    from safetensors.torch import load_file
    fresh = cls(AutoConfig.from_pretrained(f"{folder}/back"))
    if kept_names(folder, module):
        fresh.load_state_dict(load_file(f"{folder}/back/model.safetensors"), strict=True)
    else:  # files have the published names, memory others: the library alone knows both
        fresh = again
    with torch.no_grad():
        there = asked(module, x)
        return max(relative(asked(m.eval(), x), there) for m in (again, fresh))


def compare(folder, kind, config):
    cls, module = build(kind, config)
    x, y = data_of(config)
    module.save_pretrained(f"{folder}/theirs")
    np.save(f"{folder}/x.npy", x)
    np.save(f"{folder}/y.npy", y)
    call("model", "import", f"{folder}/theirs", "-o", f"{folder}/ours")
    run(folder, "still", 1, "{kind: sgd, lr: 0, schedule: {kind: constant, warmup: 0}}")
    call("predict", f"{folder}/still", "--split", "train", "-o", f"{folder}/logits.npy")
    with torch.no_grad():
        logits = relative(np.load(f"{folder}/logits.npy").ravel(), asked(module, x).numpy().ravel())
    back = comes_back(folder, cls, module, x)
    losses = []
    for i, (ours, theirs) in enumerate(OPTIMIZERS.items()):
        got, want = run(folder, f"run{i}", STEPS, ours), their_losses(build(kind, config)[1], x, y, theirs)
        assert len(got) == STEPS, f"{len(got)} losses"
        losses.append(max(abs(a - b) / abs(b) for a, b in zip(got, want)))
    return logits, losses[0], losses[1], back


def refuses(folder, kind, config):
    _, module = build(kind, config)
    module.save_pretrained(f"{folder}/theirs")
    return call("model", "import", f"{folder}/theirs", "-o", f"{folder}/ours", fails=True)


def main():
    args, out, failed = sys.argv[1:], None, 0
    if args and args[0] == "-o":
        out, args = args[1], args[2:]
    lines = [
        "| architecture | option | logits | ten losses, SGD | ten losses, AdamW | exported, loaded |",
        "|---|---|--:|--:|--:|--:|",
    ]
    print("\n".join(lines), flush=True)
    said = ["| architecture | option | `heddle model import` says |", "|---|---|---|"]
    for name in args or ARCHITECTURES:
        kind, base, good, bad = ARCHITECTURES[name]
        for label, more in good.items():
            with tempfile.TemporaryDirectory() as folder:
                try:
                    row = compare(folder, kind, base | more)
                    ok = max(row) < 1e-5
                    cells = " | ".join(f"{v:.1e}" for v in row) + ("" if ok else " | **off**")
                except Exception as e:
                    ok, cells = False, f"**{type(e).__name__}: {str(e)[:600]}**"
            failed += not ok
            lines.append(f"| {name} | {label} | {cells} |")
            print(lines[-1], flush=True)
        for label, (more, words) in bad.items():
            with tempfile.TemporaryDirectory() as folder:
                code, text = refuses(folder, kind, base | more)
            ok = code == 3 and words in text
            failed += not ok
            said.append(f"| {name} | {label} | {text.split(': ', 2)[-1]}{'' if ok else ' **off**'} |")
            print(said[-1], flush=True)
    if out:
        with open(out, "w") as file:
            file.write("\n".join(lines) + "\n\n" + "\n".join(said) + "\n")
    print(f"{len(lines) - 2} compared, {len(said) - 2} refused, {failed} off", file=sys.stderr)
    sys.exit(failed > 0)


main()
