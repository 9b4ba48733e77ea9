#!/usr/bin/env python3
"""bridge.py [-o FILE] [ARCHITECTURE...] -- published models: transformers beside ours.

For each architecture and each option of its config class: a small random module is saved by
save_pretrained(), imported by `heddle model import`, and compared: logits of every sample (largest difference
over the largest logit), ten losses of SGD and ten of AdamW (relatively). Then `heddle model export` writes a
folder with config.json: the class it names must load it (from_pretrained: nothing missing, nothing over; and
load_state_dict(strict=True)) and give the same logits. Options that we do not compute must be refused.

`adapters`: the same of peft's: an adapter on a base of those is saved, imported with it, compared and trained
ten steps in both; exported, it is loaded by PeftModel.from_pretrained(), trained on ten steps there and here,
saved there and imported again. `images`: torchvision's ResNets by their state dicts.

Prints tables (docs/results/bridge.md). Exit 1: a row is off, or a refusal is missing.
HEDDLE_BIN (default build/release/heddle). Wants Python with torch, transformers, safetensors, numpy; peft and
torchvision for their parts."""

import json, os, re, subprocess, sys, tempfile, warnings
sys.path.pop(0)  # this folder has a tokenize.py, which is not Python's
import numpy as np
import torch



def import_torchvision():
    """Of one that was built for another PyTorch the models work, once the ops that it misses have names."""
    ops = torch.library.Library("torchvision", "DEF")
    for _ in range(30):
        try:
            import torchvision
            return torchvision, ops
        except RuntimeError as e:
            missing = re.search(r"operator torchvision::(\w+) does not exist", str(e))
            for name in [m for m in sys.modules if m.split(".")[0] == "torchvision"]:
                del sys.modules[name]
            if not missing:
                break
            ops.define(f"{missing[1]}(Tensor x) -> Tensor")
        except ImportError:
            break
    sys.modules["torchvision"] = None  # else it would fail while transformers looks for it
    return None, ops


torchvision, _ = import_torchvision()
import transformers
warnings.filterwarnings("ignore")
transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()
from transformers import AutoConfig
sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import bridge_more

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


def gpt2(**more):
    return dict(
        n_embd=32,
        n_head=4,
        n_positions=LENGTH,
        vocab_size=VOCAB,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=1,
        eos_token_id=2,
    ) | more


def encoder(**more):
    return dict(
        num_hidden_layers=2,
        hidden_size=24,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=LENGTH,
        vocab_size=VOCAB,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
    ) | more


ENCODERS = {
    "as it is": {},
    "gelu_new": dict(hidden_act="gelu_new"),
    "gelu_pytorch_tanh": dict(hidden_act="gelu_pytorch_tanh"),
    "relu": dict(hidden_act="relu"),
    "silu": dict(hidden_act="silu"),
    "tanh": dict(hidden_act="tanh"),
    "one kind of token": dict(type_vocab_size=1),
    "eps": dict(layer_norm_eps=1e-3),
    "pad 2": dict(pad_token_id=2),
}
NO_ENCODERS = {
    "quick_gelu": (dict(hidden_act="quick_gelu"), "hidden_act is quick_gelu"),
    "is_decoder": (dict(is_decoder=True), "is_decoder is true"),
    "add_cross_attention": (
        dict(is_decoder=True, add_cross_attention=True),
        "is true",
    ),
    "relative positions": (
        dict(position_embedding_type="relative_key"),
        "position_embedding_type is relative_key",
    ),
}
UNTIED = {"untied": (dict(tie_word_embeddings=False), "tie_word_embeddings is false")}


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
    "gpt2": (
        "GPT2LMHeadModel",
        gpt2(n_layer=3),
        {
            "as it is": {},
            **{w: dict(activation_function=w) for w in ("gelu", "relu", "silu", "swish", "tanh")},
            **{w: dict(activation_function=w) for w in ("gelu_pytorch_tanh", "gelu_fast", "gelu_accurate")},
            "gelu_python": dict(activation_function="gelu_python"),
            "untied": dict(tie_word_embeddings=False),
            "scores not scaled": dict(scale_attn_weights=False),
            "scores by layer": dict(scale_attn_by_inverse_layer_idx=True),
            "by layer, not scaled": dict(scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False),
            "reorder_and_upcast_attn": dict(reorder_and_upcast_attn=True, attn_implementation="eager"),
            "n_inner": dict(n_inner=40),
            "eps": dict(layer_norm_epsilon=1e-3),
        },
        {
            "quick_gelu": (
                dict(activation_function="quick_gelu"),
                "activation_function is quick_gelu",
            ),
            "add_cross_attention": (dict(add_cross_attention=True), "add_cross_attention is true"),
        },
    ),
    "gpt2, two heads": (
        "GPT2DoubleHeadsModel",
        gpt2(n_layer=2),
        {"surplus head": {}},
        {},
    ),
    "bert": ("BertForMaskedLM", encoder(), ENCODERS, NO_ENCODERS | UNTIED),
    "bert, for pretraining": ("BertForPreTraining", encoder(), {"surplus heads": {}}, {}),
    "bert, classes": (
        "BertForSequenceClassification",
        encoder(num_labels=3),
        without(ENCODERS, "silu", "tanh") | {"untied": dict(tie_word_embeddings=False)},
        NO_ENCODERS,
    ),
    "roberta": (
        "RobertaForMaskedLM",
        encoder(pad_token_id=1, max_position_embeddings=LENGTH + 2),
        ENCODERS | {"pad 2": dict(pad_token_id=2, max_position_embeddings=LENGTH + 3)},
        NO_ENCODERS | UNTIED,
    ),
    "roberta, classes": (
        "RobertaForSequenceClassification",
        encoder(pad_token_id=1, max_position_embeddings=LENGTH + 2, num_labels=3),
        {"as it is": {}, "relu": dict(hidden_act="relu"), "one kind of token": dict(type_vocab_size=1)},
        NO_ENCODERS,
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

ARCHITECTURES |= bridge_more.architectures(decoder, rope, without, PLAIN, STRETCHED, REFUSED)


def build(kind, config):
    cls = getattr(transformers, kind)
    torch.manual_seed(5)
    how = {k: config[k] for k in ("attn_implementation",) if k in config}
    made = cls.config_class(**without(config, *how))
    made.pad_token_id = config.get("pad_token_id")  # Phi3Config has a number of its own for None
    module = cls._from_config(made, **how).eval()
    with torch.no_grad():  # biases and norms away from 0 and 1, so that a mistake in one shows
        for p in module.parameters():
            # scores of T5 are not scaled: large ones would make of ten steps of SGD a chaos
            p.add_(torch.randn_like(p) * (0.05 if kind.startswith("T5") else 0.2))
    return cls, module


def data_of(config):
    rng = np.random.default_rng(7)
    if "image_size" in config:
        x = rng.standard_normal((ROWS, config["num_channels"], config["image_size"], config["image_size"]))
        return x.astype(np.float32), rng.integers(0, config["num_labels"], ROWS).astype(np.int32)
    if "hidden_dropout_prob" in config and "intermediate_size" in config:
        return padded(rng, config)
    if "d_model" in config:
        return bridge_more.texts(config, ROWS, VOCAB)
    length = min(config.get("max_position_embeddings", LENGTH), 16)
    x = rng.integers(3, VOCAB, (ROWS, length)).astype(np.int32)
    return x, rng.integers(0, VOCAB, (ROWS, length)).astype(np.int32)


def padded(rng, config):
    """Pads behind, and before where positions do not count them; labels of masked tokens, or classes."""
    pad = config["pad_token_id"]
    x = rng.integers(3, VOCAB, (ROWS, LENGTH)).astype(np.int32)
    at, n = np.arange(LENGTH)[None, :], rng.integers(4, LENGTH + 1, ROWS)[:, None]
    # not before a head that reads the first position: of a pad the library lets its tables learn nothing
    before = (rng.random((ROWS, 1)) < 0.5) & (config["max_position_embeddings"] > LENGTH)
    before &= "num_labels" not in config
    x[np.where(before, at < LENGTH - n, at >= n)] = pad
    if "num_labels" in config:
        return x, rng.integers(0, config["num_labels"], ROWS).astype(np.int32)
    y = np.where((rng.random(x.shape) < 0.4) & (x != pad), rng.integers(0, VOCAB, x.shape), -1)
    return x, y.astype(np.int32)


def asked(module, x):
    if isinstance(x, bridge_more.Texts):
        return x.logits(module)
    if x.dtype == np.float32:
        return module(pixel_values=torch.from_numpy(x)).logits
    if module.config.model_type in ("bert", "roberta"):
        ids = torch.from_numpy(x).long()
        said = module(input_ids=ids, attention_mask=(ids != module.config.pad_token_id).long())
        return said.prediction_logits if hasattr(said, "prediction_logits") else said.logits
    return module(input_ids=torch.from_numpy(x).long(), use_cache=False).logits


def their_losses(module, x, y, make):
    optim, losses = make(module.parameters()), []
    for step in range(STEPS):
        rows = [(step * 8 + i) % ROWS for i in range(8)]
        logits = asked(module, x[rows])
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, logits.shape[-1]),
            torch.from_numpy(y[rows]).long().reshape(-1),
            ignore_index=-1,
        )
        loss = loss + bridge_more.balance(module, x[rows])
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


def run(folder, out, steps, optim, vns=4, more=""):
    with open(f"{folder}/ours/job.yaml") as file:
        kept = [line for line in file if line.split(":")[0] not in ("job", "data", "batch", "optim")]
    with open(f"{folder}/{out}.yaml", "w") as file:
        file.writelines(bridge_more.job_line(line, folder) for line in kept)
        file.write(
            f"job: {{steps: {steps}}}\n"
            f"data: {{kind: npy, path: {folder}, order: sequential, split: {{train: 1, valid: 0}}}}\n"
            f"batch: {{global: 8, virtual_nodes: {vns}}}\noptim: {optim}\n{more}"
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
    cls = {"BertForPreTraining": transformers.BertForMaskedLM}.get(cls.__name__, cls)
    cls = {"GPT2DoubleHeadsModel": transformers.GPT2LMHeadModel}.get(cls.__name__, cls)
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


def guesses(kind):
    """Labels come with the rows; ours would mask tokens by itself."""
    return ["-s", "share=0"] if kind.endswith(("MaskedLM", "PreTraining")) else []


def compare(folder, kind, config):
    cls, module = build(kind, config)
    x, y = data_of(config)
    module.save_pretrained(f"{folder}/theirs")
    if isinstance(x, bridge_more.Texts):
        x.save(folder)
    else:
        np.save(f"{folder}/x.npy", x)
    np.save(f"{folder}/y.npy", y)
    call("model", "import", f"{folder}/theirs", *guesses(kind), "-o", f"{folder}/ours")
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
    if "position_embedding_type" in config:  # version 5 has lost it; files of version 4 say it
        with open(f"{folder}/theirs/config.json") as file:
            said = json.load(file) | {"position_embedding_type": config["position_embedding_type"]}
        with open(f"{folder}/theirs/config.json", "w") as file:
            json.dump(said, file)
    return call("model", "import", f"{folder}/theirs", "-o", f"{folder}/ours", fails=True)


# ---- adapters of peft

ATTENTION = ["q_proj", "v_proj"]
# base, options of LoraConfig
ADAPTERS = {
    "gpt2, c_attn": ("gpt2", dict(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True)),
    "gpt2, all-linear": (
        "gpt2",
        dict(r=3, lora_alpha=5, target_modules="all-linear", fan_in_fan_out=True, task_type="CAUSAL_LM"),
    ),
    "gpt2, layers_to_transform": (
        "gpt2",
        dict(r=2, target_modules=["c_attn", "c_fc"], layers_to_transform=[0, 2], fan_in_fan_out=True),
    ),
    "gpt2, lora_only": (
        "gpt2",
        dict(r=2, lora_alpha=2, target_modules=["c_attn", "c_proj"], bias="lora_only", fan_in_fan_out=True),
    ),
    "gpt2, all biases": ("gpt2", dict(r=2, target_modules=["c_fc"], bias="all", fan_in_fan_out=True)),
    "llama, a list": (
        "llama",
        dict(r=4, lora_alpha=16, target_modules=ATTENTION, task_type="CAUSAL_LM"),
    ),
    "llama, all-linear": ("llama", dict(r=2, lora_alpha=3, target_modules="all-linear")),
    "llama, a regular expression": (
        "llama",
        dict(r=2, target_modules=r"model\.layers\.[02]\.(self_attn\.[qk]_proj|mlp\.down_proj)"),
    ),
    "llama, rank_pattern, alpha_pattern": (
        "llama",
        dict(
            r=4,
            lora_alpha=8,
            target_modules=[*ATTENTION, "o_proj", "up_proj"],
            rank_pattern={"v_proj": 2, r"^model\.layers\.[01]\.self_attn\.q_proj": 7},
            alpha_pattern={"layers.1.self_attn.v_proj": 3, "up_proj": 32},
        ),
    ),
    "llama, use_rslora": (
        "llama",
        dict(r=6, lora_alpha=5, target_modules=ATTENTION, use_rslora=True, rank_pattern={"q_proj": 3}),
    ),
    "llama, exclude_modules": (
        "llama",
        dict(r=2, lora_alpha=2, target_modules="all-linear", exclude_modules=["down_proj", "k_proj"]),
    ),
    "llama, head and norm saved": (
        "llama",
        dict(r=2, target_modules=ATTENTION, modules_to_save=["lm_head", "model.norm"]),
    ),
    "llama, gaussian": (
        "llama",
        dict(r=2, lora_alpha=2, target_modules=ATTENTION, init_lora_weights="gaussian"),
    ),
    "mistral, q and v": ("mistral", dict(r=2, target_modules=ATTENTION)),
    "qwen2, lora_only": ("qwen2", dict(r=2, target_modules=ATTENTION, bias="lora_only")),
    "phi3, fused products": ("phi3", dict(r=2, lora_alpha=1, target_modules=["qkv_proj", "gate_up_proj"])),
    "gpt_neox, fused product": ("gpt_neox", dict(r=2, target_modules=["query_key_value"], bias="all")),
    "bert, classes": (
        "bert, classes",
        dict(r=2, target_modules=["query", "value"], task_type="SEQ_CLS"),
    ),
    "bert, classes, all biases": (
        "bert, classes",
        dict(r=2, target_modules=["query", "dense"], exclude_modules=["bert.pooler.dense"], bias="all"),
    ),
    "bert, masked, all biases": ("bert", dict(r=2, target_modules=["key", "value"], bias="all")),
    "roberta, classes": (
        "roberta, classes",
        dict(r=2, target_modules=["query", "value"], task_type="SEQ_CLS"),
    ),
    "vit, the classifier saved": (
        "vit",
        dict(r=2, lora_alpha=1, target_modules=["q_proj", "fc1"], modules_to_save=["classifier"]),
    ),
    "mixtral, the router saved": (
        "mixtral",
        dict(r=2, lora_alpha=1, target_modules=ATTENTION, modules_to_save=["gate"]),
    ),
}
NO_ADAPTERS = {
    "use_dora": ("llama", dict(r=2, target_modules=ATTENTION, use_dora=True), "use_dora is set"),
    "pissa": ("llama", dict(r=2, target_modules=ATTENTION, init_lora_weights="pissa"), "is pissa"),
    "olora": ("llama", dict(r=2, target_modules=ATTENTION, init_lora_weights="olora"), "is olora"),
    "lora_bias": ("qwen2", dict(r=2, target_modules=ATTENTION, lora_bias=True), "lora_bias is set"),
    "layer_replication": (
        "llama",
        dict(r=2, target_modules=ATTENTION, layer_replication=[[0, 2], [1, 3]]),
        "layer_replication is set",
    ),
    "trainable_token_indices": (
        "llama",
        dict(r=2, target_modules=ATTENTION, trainable_token_indices=[1, 2]),
        "trainable_token_indices is set",
    ),
    "an embedding": ("llama", dict(r=2, target_modules=["embed_tokens"]), "lora_embedding_A"),
    "a tied table saved": (
        "gpt2",
        dict(r=2, target_modules=["c_attn"], modules_to_save=["wte"], fan_in_fan_out=True),
        "which has two names",
    ),
    "LoHa": ("llama", None, "peft_type is LOHA"),
}


def adapted(folder, kind, config, options):
    """The base is saved, then wrapped; what is trained is moved away from where it begins."""
    import peft
    cls, module = build(kind, config)
    module.save_pretrained(f"{folder}/base")
    how = peft.LoHaConfig(target_modules=ATTENTION) if options is None else peft.LoraConfig(**options)
    module = peft.get_peft_model(module, how).eval()
    with torch.no_grad():
        for p in module.parameters():
            if p.requires_grad:
                p.add_(torch.randn_like(p) * 0.2)
    module.save_pretrained(f"{folder}/theirs")
    return cls, module


def wrapped(folder, cls, adapter):
    import peft
    base = cls.from_pretrained(f"{folder}/base")
    return peft.PeftModel.from_pretrained(base, adapter, is_trainable=True).eval()


def trained(module, x, y, make):
    """Ten losses; the rest of the module stays as it is."""
    return their_losses(module, x, y, lambda _: make([p for p in module.parameters() if p.requires_grad]))


def taken_up(folder, adapter, out, kind, x):
    """Logits of an adapter on its base, as ours."""
    call(
        "model", "import", adapter, "--base", f"{folder}/base", *guesses(kind), "-o", f"{folder}/ours"
    )
    run(folder, out, 1, "{kind: sgd, lr: 0, schedule: {kind: constant, warmup: 0}}")
    call("predict", f"{folder}/{out}", "--split", "train", "-o", f"{folder}/logits.npy")
    return np.load(f"{folder}/logits.npy").ravel()


def differ(got, want):
    assert len(got) == len(want) == STEPS, f"{len(got)} losses"
    return max(abs(a - b) / abs(b) for a, b in zip(got, want))


def compare_adapter(folder, kind, config, options):
    cls, module = adapted(folder, kind, config, options)
    x, y = data_of(config)
    np.save(f"{folder}/x.npy", x)
    np.save(f"{folder}/y.npy", y)
    with torch.no_grad():
        row = [
            relative(
                taken_up(folder, f"{folder}/theirs", "still", kind, x), asked(module, x).numpy().ravel()
            )
        ]
    for i, (ours, theirs) in enumerate(OPTIMIZERS.items()):
        again = wrapped(folder, cls, f"{folder}/theirs")
        row.append(differ(run(folder, f"run{i}", STEPS, ours), trained(again, x, y, theirs)))
        if i == 0:
            module = again
    call("model", "export", f"{folder}/run0", "--names", "peft", "-o", f"{folder}/out")
    there = wrapped(folder, cls, f"{folder}/out")
    call("predict", f"{folder}/run0", "--split", "train", "-o", f"{folder}/logits.npy")
    with torch.no_grad():
        row.append(relative(asked(there, x).numpy().ravel(), np.load(f"{folder}/logits.npy").ravel()))
    taken_up(folder, f"{folder}/out", "still2", kind, x)
    ours, theirs = list(OPTIMIZERS.items())[1]
    row.append(differ(run(folder, "on", STEPS, ours), trained(there, x, y, theirs)))
    there.save_pretrained(f"{folder}/back")
    with torch.no_grad():
        row.append(
            relative(taken_up(folder, f"{folder}/back", "still3", kind, x), asked(there, x).numpy().ravel())
        )
    return row


def refuses_adapter(folder, kind, config, options):
    adapted(folder, kind, config, options)
    return call(
        "model", "import", f"{folder}/theirs", "--base", f"{folder}/base", "-o", f"{folder}/ours", fails=True
    )


# ---- torchvision

SIDE = 32
IMAGES = {
    "resnet18": ("resnet18", {}, []),
    "resnet34": ("resnet34", {}, []),
    "resnet50": ("resnet50", {}, []),
    "resnet101": ("resnet101", {}, []),
    "resnet152": ("resnet152", {}, []),
    "resnext50_32x4d": ("resnext50_32x4d", {}, []),
    "resnext101_32x8d": ("resnext101_32x8d", {}, []),
    "resnext101_64x4d": ("resnext101_64x4d", {}, []),
    "wide_resnet50_2": ("wide_resnet50_2", {}, []),
    "wide_resnet101_2": ("wide_resnet101_2", {}, []),
    "resnet50, groups, width": (
        "resnet50",
        dict(groups=4, width_per_group=24),
        ["-s", "paths=4", "-s", "path_width=24"],
    ),
    "resnet50, dilation": (
        "resnet50",
        dict(replace_stride_with_dilation=[False, True, True]),
        ["-s", "dilate=[layer3,layer4]"],
    ),
    "resnet50, one stage dilated": (
        "resnet50",
        dict(replace_stride_with_dilation=[False, True, False]),
        ["-s", "dilate=[layer3]"],
    ),
    "resnet18, zero_init_residual": (
        "resnet18",
        dict(zero_init_residual=True),
        ["-s", "zero_init_residual=true"],
    ),
    "resnet18, GroupNorm": (
        "resnet18",
        dict(norm_layer=lambda c: torch.nn.GroupNorm(8, c)),
        ["-s", "norm=group", "-s", "groups=8"],
    ),
}


def compare_image(folder, name, options, args):
    """Outputs of what comes back strictly, and how many of its parameters are not the bytes that went in."""
    from safetensors.torch import load_file, save_file
    make = getattr(torchvision.models, name)
    rng, rows = np.random.default_rng(3), 8
    x = rng.standard_normal((rows, 3, SIDE, SIDE)).astype(np.float32)
    np.save(f"{folder}/x.npy", x)
    np.save(f"{folder}/y.npy", rng.integers(0, 10, rows).astype(np.int32))
    torch.manual_seed(4)
    module = make(num_classes=10, **options)
    with torch.no_grad():  # running moments as of a net that has seen images
        module.train()(torch.from_numpy(x))
        module.train()(torch.from_numpy(x))
    save_file(module.state_dict(), f"{folder}/theirs.safetensors")
    sizes = ["-s", f"height={SIDE}", "-s", f"width={SIDE}", "-s", "classes=10"]
    source = ["model", "import", f"{folder}/theirs.safetensors", "--model", name]
    call(*source, *sizes, *args, "-o", f"{folder}/ours")
    run(folder, "still", 1, "{kind: sgd, lr: 0, schedule: {kind: constant, warmup: 0}}", 1)
    call("predict", f"{folder}/still", "--split", "train", "-o", f"{folder}/logits.npy")
    call("model", "export", f"{folder}/still", "-o", f"{folder}/back.safetensors")
    back = make(num_classes=10, **options)
    back.load_state_dict(load_file(f"{folder}/back.safetensors"), strict=True)
    got, there = np.load(f"{folder}/logits.npy").ravel(), dict(back.named_parameters())
    with torch.no_grad():  # the step has moved the running moments, and the export has them
        off = relative(got, back.eval()(torch.from_numpy(x)).numpy().ravel())
    return [off, sum(not torch.equal(p, there[n]) for n, p in module.named_parameters())]


# ---- tables

def table(rows, head, compared):
    """rows: label, what gives its numbers. -> lines, how many are off"""
    lines, failed = [head, "|---|" + "--:|" * (head.count("|") - 2)], 0
    print("\n".join(lines), flush=True)
    for label, arguments in rows:
        with tempfile.TemporaryDirectory() as folder:
            try:
                row = compared(folder, *arguments)
                ok = max(row) < 1e-5
                cells = " | ".join(f"{v:.1e}" for v in row) + ("" if ok else " | **off**")
            except Exception as e:
                ok, cells = False, f"**{type(e).__name__}: {str(e)[:600]}**"
        failed += not ok
        lines.append(f"| {label} | {cells} |")
        print(lines[-1], flush=True)
    return lines, failed


def refusals(rows, head, asks):
    lines, failed = [head, "|---|---|"], 0
    print("\n".join(lines), flush=True)
    for label, arguments, words in rows:
        with tempfile.TemporaryDirectory() as folder:
            code, text = asks(folder, *arguments)
        ok = code == 3 and words in text
        failed += not ok
        lines.append(f"| {label} | {text.split(': ', 2)[-1]}{'' if ok else ' **off**'} |")
        print(lines[-1], flush=True)
    return lines, failed


def adapters():
    def of(base):
        kind, config, _, _ = ARCHITECTURES[base]
        return kind, config

    good, off = table(
        [(name, (*of(base), options)) for name, (base, options) in ADAPTERS.items()],
        "| adapter | logits | ten losses, SGD | AdamW | exported, loaded | ten more, both | back |",
        compare_adapter,
    )
    bad, more = refusals(
        [(name, (*of(base), options), words) for name, (base, options, words) in NO_ADAPTERS.items()],
        "| adapter | `heddle model import` says |",
        refuses_adapter,
    )
    return [*good, "", *bad], off + more


def images():
    return table(
        IMAGES.items(), "| torchvision | exported, loaded | parameters with other bytes |", compare_image
    )


def main():
    args, out, failed = sys.argv[1:], None, 0
    if args and args[0] == "-o":
        out, args = args[1], args[2:]
    given = args
    parts = [part for part in (adapters, images) if not args or part.__name__ in args]
    args = [a for a in args if a not in ("adapters", "images")]
    more = []
    for part in parts:
        text, off = part()
        more += ["", *text]
        failed += off
    lines = [
        "| architecture | option | logits | ten losses, SGD | ten losses, AdamW | exported, loaded |",
        "|---|---|--:|--:|--:|--:|",
    ]
    print("\n".join(lines), flush=True)
    said = ["| architecture | option | `heddle model import` says |", "|---|---|---|"]
    for name in args if args or given else ARCHITECTURES:
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
            file.write("\n".join([*lines, "", *said, *more]) + "\n")
    print(f"{len(lines) - 2} compared, {len(said) - 2} refused, {failed} off", file=sys.stderr)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
