"""bridge_more.py -- rows of bridge.py: mixtures of experts, whose loss has a second term, and
encoder-decoders, which read two texts and a mask."""

import os
import numpy as np
import torch


class Texts:
    """What an encoder-decoder reads; rows of it are another one."""

    def __init__(self, x, y, mask):
        self.x, self.y, self.mask, self.dtype = x, y, mask, x.dtype

    def __getitem__(self, rows):
        return Texts(self.x[rows], self.y[rows], self.mask[rows])

    def save(self, folder):
        np.save(f"{folder}/x.npy", self.x)
        np.save(f"{folder}/attention_mask.npy", self.mask)

    def logits(self, module):
        return module(
            input_ids=torch.from_numpy(self.x).long(),
            attention_mask=torch.from_numpy(self.mask),
            labels=torch.from_numpy(np.where(self.y < 0, -100, self.y)).long(),
        ).logits


def texts(config, rows, vocab):
    rng = np.random.default_rng(7)
    length, target = config["n_positions"], 9
    x = rng.integers(3, vocab, (rows, length)).astype(np.int32)
    y = rng.integers(0, vocab, (rows, target)).astype(np.int32)
    mask = np.ones((rows, length), np.int32)
    mask[::3, 5:] = 0
    mask[1::3, :4] = 0
    y[::4, 6:] = -1
    return Texts(x, y, mask), y


def job_line(line, folder):
    """The model of the imported job reads the mask, and as many tokens of y as there are."""
    if not os.path.exists(f"{folder}/attention_mask.npy"):
        return line
    target = np.load(f"{folder}/y.npy").shape[1]
    return line.replace("inputs: []", "inputs: [attention_mask]").replace(
        "target: 0", f"target: {target}"
    )


def balance(module, x):
    """The library's own loss of balance, asked for each sample."""
    config = module.config
    if not getattr(config, "output_router_logits", False):
        return 0
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func
    out = module(input_ids=torch.from_numpy(x).long(), use_cache=False, output_router_logits=True)
    total = 0
    for i in range(len(x)):
        own = tuple(g.reshape(len(x), x.shape[1], -1)[i] for g in out.router_logits)
        total = total + load_balancing_loss_func(own, config.num_experts, config.num_experts_per_tok)
    return config.router_aux_loss_coef * total / len(x)


def architectures(decoder, rope, without, plain, stretched, refused):
    sparse = decoder(
        num_experts=6, num_experts_per_tok=3, moe_intermediate_size=20, shared_expert_intermediate_size=28
    )
    shared = {
        "as it is": {},
        "tied": dict(tie_word_embeddings=True),
        "one head of keys": dict(num_key_value_heads=1),
        "gelu": dict(hidden_act="gelu"),
        "balance": dict(output_router_logits=True, router_aux_loss_coef=0.4),
        "all experts of a token": dict(num_experts_per_tok=6),
        "rope llama3": stretched["rope llama3"],
    }
    layered = {
        "norm_topk_prob": dict(norm_topk_prob=True),
        "one expert of a token": dict(num_experts_per_tok=1),
        "every other layer": dict(decoder_sparse_step=2),
        "layer 1 is dense": dict(mlp_only_layers=[1]),
    }
    windows = {
        "windows": (
            dict(use_sliding_window=True, sliding_window=4),
            "use_sliding_window is true",
        )
    }
    t5 = dict(
        vocab_size=40,
        d_model=32,
        d_kv=8,
        d_ff=48,
        num_layers=2,
        num_heads=4,
        n_positions=12,
        dropout_rate=0.0,
        decoder_start_token_id=0,
        pad_token_id=0,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=10,
    )
    return {
        "mixtral": (
            "MixtralForCausalLM",
            without(decoder(num_local_experts=6), "num_experts"),
            shared | {"window 4": dict(sliding_window=4), "head_dim 12": dict(head_dim=12)},
            {"quick_gelu": refused["quick_gelu"]},
        ),
        "qwen2_moe": (
            "Qwen2MoeForCausalLM",
            sparse,
            shared | layered | {"no biases": dict(qkv_bias=False)},
            windows | {"quick_gelu": refused["quick_gelu"]},
        ),
        "qwen3_moe": (
            "Qwen3MoeForCausalLM",
            without(sparse, "shared_expert_intermediate_size") | dict(head_dim=8),
            shared | layered | {"attention_bias": dict(attention_bias=True)},
            windows | {"quick_gelu": refused["quick_gelu"]},
        ),
        "t5": (
            "T5ForConditionalGeneration",
            t5,
            {
                "as it is": {},
                "gated-gelu": dict(feed_forward_proj="gated-gelu"),
                "gated-silu": dict(feed_forward_proj="gated-silu"),
                "gelu": dict(feed_forward_proj="gelu"),
                "not scaled": dict(tie_word_embeddings=False),
                "another decoder": dict(num_decoder_layers=1),
                "32 buckets, 128": dict(
                    relative_attention_num_buckets=32, relative_attention_max_distance=128, n_positions=40
                ),
                "other tokens": dict(decoder_start_token_id=3, pad_token_id=4),
                "eps": dict(layer_norm_epsilon=1e-3),
            },
            {"quick_gelu": (dict(feed_forward_proj="quick_gelu"), "feed_forward_proj is quick_gelu")},
        ),
    }
