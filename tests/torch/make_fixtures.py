#!/usr/bin/env python3
"""make_fixtures.py -- what PyTorch computes, as files for src/engine/torch_test.c.

For each built-in model: a job file, initial parameters, a data set, the gradient of the
first step and the losses of ten AdamW steps, all in float32 on the CPU by PyTorch's own
modules. Run where PyTorch is installed:  python3 make_fixtures.py [FOLDER [MODEL...]]
The files committed beside this script were made by PyTorch 2.13.0; llama, bert, lstm and gru by 2.15.0 and
transformers; bert_cls, inception, those with inputs, gpt_options, roberta, resnext and mistral to vit by
2.13.0 and transformers.
"""

import math, os, sys
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import save_file

STEPS, BATCH, COUNT = 10, 24, 48


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


class Gpt(nn.Module):
    L, C, H, T, V = 2, 32, 2, 16, 64
    yaml = "model: {use: builtin:gpt, args: {layers: 2, width: 32, heads: 2, context: 16, vocab: 64}}"

    def __init__(self):
        super().__init__()
        C = self.C
        self.p = {}
        self.p["wte.weight"], self.p["wpe.weight"] = self.normal(self.V, C), self.normal(self.T, C)
        for i in range(self.L):
            for name in ("ln_1", "ln_2"):
                self.norm(f"h.{i}.{name}")
            for name, a, b in (
                ("attn.c_attn", C, 3 * C),
                ("attn.c_proj", C, C),
                ("mlp.c_fc", C, 4 * C),
                ("mlp.c_proj", 4 * C, C),
            ):
                self.p[f"h.{i}.{name}.weight"] = self.normal(a, b)
                self.p[f"h.{i}.{name}.bias"] = self.normal(b)
        self.norm("ln_f")
        for name, p in self.p.items():
            self.register_parameter(name.replace(".", "/"), p)

    @staticmethod
    def normal(*shape):
        return nn.Parameter(torch.randn(*shape) * 0.1)

    def norm(self, name):
        self.p[name + ".weight"] = nn.Parameter(1 + torch.randn(self.C) * 0.1)
        self.p[name + ".bias"] = self.normal(self.C)

    def linear(self, h, name):
        return h @ self.p[name + ".weight"] + self.p[name + ".bias"]

    def ln(self, h, name):
        return F.layer_norm(h, (self.C,), self.p[name + ".weight"], self.p[name + ".bias"], 1e-5)

    def attend(self, qkv):
        n, t, _ = qkv.shape
        q, k, v = (a.view(n, t, self.H, self.C // self.H).transpose(1, 2) for a in qkv.split(self.C, 2))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, self.C)

    def forward(self, x):
        h = self.p["wte.weight"][x.long()] + self.p["wpe.weight"]
        for i in range(self.L):
            h = h + self.linear(
                self.attend(self.linear(self.ln(h, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")),
                f"h.{i}.attn.c_proj",
            )
            a = F.gelu(self.linear(self.ln(h, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
            h = h + self.linear(a, f"h.{i}.mlp.c_proj")
        return self.ln(h, "ln_f") @ self.p["wte.weight"].T

    @classmethod
    def data(cls, rng):
        x = rng.integers(0, cls.V, (COUNT, cls.T)).astype(np.int32)
        return x, ((x * 5 + 3) % cls.V).astype(np.int32)


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


class Llama(nn.Module):
    """Hugging Face's own module; grouped queries."""
    T, V = 16, 64
    yaml = (
        "model: {use: builtin:llama, "
        "args: {layers: 2, width: 32, heads: 4, kv_heads: 2, hidden: 48, context: 16, vocab: 64}}"
    )
    data = classmethod(Gpt.data.__func__)

    def __init__(self):
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM
        self.hf = scattered(
            LlamaForCausalLM(
                LlamaConfig(
                    vocab_size=64,
                    hidden_size=32,
                    intermediate_size=48,
                    num_hidden_layers=2,
                    num_attention_heads=4,
                    num_key_value_heads=2,
                    max_position_embeddings=16,
                    rms_norm_eps=1e-5,
                    tie_word_embeddings=False,
                )
            )
        )

    def forward(self, x):
        return self.hf(input_ids=x.long(), use_cache=False).logits


class Published(nn.Module):
    """Hugging Face's own modules of other kinds: a window, caps, fused products, stretched positions."""
    T, V = 12, 32
    data = classmethod(Gpt.data.__func__)
    args = "layers: 2, width: 16, heads: 4, hidden: 24, context: 12, vocab: 32"
    common = dict(
        vocab_size=32,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=12,
        pad_token_id=None,
    )

    def __init__(self):
        super().__init__()
        import transformers
        kind = getattr(transformers, self.kind)
        self.hf = scattered(kind(kind.config_class(**self.common, **self.more)))

    def forward(self, x):
        return self.hf(input_ids=x.long(), use_cache=False).logits


class Mistral(Published):
    kind = "MistralForCausalLM"
    more = dict(
        num_key_value_heads=2,
        sliding_window=5,
        rms_norm_eps=1e-5,
        rope_parameters=dict(rope_type="linear", factor=3.0, rope_theta=500.0),
    )
    yaml = (
        "model: {use: builtin:mistral, args: {%s, kv_heads: 2, window: 5, rope: 500, rope_kind: linear, "
        "rope_factor: 3}}" % Published.args
    )


class Gemma2(Published):
    kind = "Gemma2ForCausalLM"
    more = dict(
        num_key_value_heads=2,
        head_dim=6,
        sliding_window=4,
        rms_norm_eps=1e-5,
        query_pre_attn_scalar=5,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
    )
    yaml = (
        "model: {use: builtin:gemma2, args: {%s, kv_heads: 2, head_dim: 6, window: 4, query: 5, cap: 2, "
        "final_cap: 3}}" % Published.args
    )


class Phi3(Published):
    kind = "Phi3ForCausalLM"
    more = dict(
        num_key_value_heads=2,
        original_max_position_embeddings=4,
        rms_norm_eps=1e-5,
        rope_parameters=dict(
            rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.5], long_factor=[1.25, 4.0]
        ),
    )
    yaml = (
        "model: {use: builtin:phi3, args: {%s, kv_heads: 2, rope_kind: longrope, rope_factor: 3, "
        "rope_original: 4, rope_few: [1, 1.5], rope_many: [1.25, 4]}}" % Published.args
    )


class Qwen3(Published):
    kind = "Qwen3ForCausalLM"
    more = dict(
        num_key_value_heads=1,
        head_dim=8,
        attention_bias=True,
        rms_norm_eps=1e-5,
        rope_parameters=dict(
            rope_type="llama3",
            rope_theta=500.0,
            factor=8.0,
            low_freq_factor=1.0,
            high_freq_factor=4.0,
            original_max_position_embeddings=8,
        ),
    )
    yaml = (
        "model: {use: builtin:qwen3, args: {%s, kv_heads: 1, head_dim: 8, bias: attention, rope: 500, "
        "rope_kind: llama3, rope_factor: 8, rope_original: 8}}" % Published.args
    )


class Neox(Published):
    kind = "GPTNeoXForCausalLM"
    more = dict(rope_parameters=dict(rope_type="default", partial_rotary_factor=0.5, rope_theta=10000.0))
    yaml = "model: {use: builtin:neox, args: {%s, rope_part: 0.5}}" % Published.args


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


def bert_config(**more):
    from transformers import BertConfig
    return BertConfig(
        vocab_size=40,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=12,
        hidden_dropout_prob=0,
        attention_probs_dropout_prob=0,
        pad_token_id=0,
        **more,
    )


class Bert(nn.Module):
    """Hugging Face's own module; samples end in padding, labels are -1 where nothing is masked."""
    args = "layers: 2, width: 24, heads: 3, hidden: 40, context: 12, vocab: 40, pad: 0"
    yaml = "model: {use: builtin:bert, args: {%s, share: 0}}" % args

    def __init__(self):
        super().__init__()
        from transformers import BertForMaskedLM
        self.hf = scattered(BertForMaskedLM(bert_config()))

    def forward(self, x):
        return self.hf(input_ids=x.long(), attention_mask=(x != 0).long()).logits

    @staticmethod
    def data(rng):
        x = rng.integers(1, 39, (COUNT, 12)).astype(np.int32)
        x[np.arange(12)[None, :] >= rng.integers(5, 13, COUNT)[:, None]] = 0
        masked = (rng.random((COUNT, 12)) < 0.3) & (x != 0)
        y = np.where(masked, x, -1).astype(np.int32)
        x[masked] = 39
        return x, y


class BertCls(nn.Module):
    """Hugging Face's own module with its head for classes; samples end in padding."""
    args = "layers: 2, width: 24, heads: 3, hidden: 40, context: 12, vocab: 40, pad: 0"
    yaml = "model: {use: builtin:bert, args: {%s, head: cls, classes: 3}}" % args

    def __init__(self):
        super().__init__()
        from transformers import BertForSequenceClassification
        self.hf = scattered(BertForSequenceClassification(bert_config(num_labels=3)))

    def forward(self, x):
        return self.hf(input_ids=x.long(), attention_mask=(x != 0).long()).logits

    @staticmethod
    def data(rng):
        x = rng.integers(1, 40, (COUNT, 12)).astype(np.int32)
        x[np.arange(12)[None, :] >= rng.integers(5, 13, COUNT)[:, None]] = 0
        return x, rng.integers(0, 3, COUNT).astype(np.int32)


def masks(rng):
    """Padding behind, before, and with holes; never all of a sample."""
    at, n = np.arange(12)[None, :], rng.integers(3, 13, COUNT)[:, None]
    mask = np.where(rng.random((COUNT, 1)) < 0.5, at < n, at >= 12 - n)
    mask &= rng.random((COUNT, 12)) < 0.9
    mask[np.arange(COUNT), np.where(mask.any(1), mask.argmax(1), 5)] = True
    return mask


class BertInputs(BertCls):
    """The same with a mask, kinds of tokens and positions as inputs."""
    args = "layers: 2, width: 24, heads: 3, hidden: 40, context: 12, vocab: 40, head: cls, classes: 3"
    yaml = "model: {use: builtin:bert, args: {%s, %s}}" % (
        args, "inputs: [attention_mask, token_type_ids, position_ids]")

    def forward(self, x, attention_mask, token_type_ids, position_ids):
        return self.hf(input_ids=x.long(), attention_mask=attention_mask.long(),
            token_type_ids=token_type_ids.long(), position_ids=position_ids.long()).logits

    @staticmethod
    def data(rng):                                   # no token 0, of which its table learns nothing
        return rng.integers(1, 40, (COUNT, 12)).astype(np.int32), rng.integers(0, 3, COUNT).astype(np.int32)

    @staticmethod
    def inputs(rng):
        return {"attention_mask": masks(rng), "token_type_ids": rng.integers(0, 2, (COUNT, 12)),
            "position_ids": rng.integers(0, 12, (COUNT, 12)).astype(np.int32)}


class GptInputs(nn.Module):
    """Hugging Face's own module with a mask; positions count the tokens that are seen."""
    yaml = ("model: {use: builtin:gpt, args: {layers: 2, width: 24, heads: 3, context: 12, vocab: 40, "
        "positions: 16, inputs: [attention_mask, position_ids]}}")

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel
        self.hf = scattered(GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=24, n_layer=2, n_head=3,
            n_positions=16, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)))

    def forward(self, x, attention_mask):
        at = attention_mask.long()
        return self.hf(input_ids=x.long(), attention_mask=at, position_ids=(at.cumsum(1) - 1) * at,
            use_cache=False).logits

    @staticmethod
    def data(rng):
        y = rng.integers(0, 40, (COUNT, 12))
        y[rng.random((COUNT, 12)) < 0.1] = -100
        return rng.integers(0, 40, (COUNT, 12)).astype(np.int32), y

    @staticmethod
    def inputs(rng):
        return {"attention_mask": masks(rng)}


class LlamaInputs(GptInputs):
    """Hugging Face's own module with a mask, whose positions do not count for it."""
    yaml = ("model: {use: builtin:llama, args: {layers: 2, width: 24, heads: 3, kv_heads: 1, hidden: 40, "
        "context: 12, vocab: 40, inputs: [attention_mask]}}")

    def __init__(self):
        nn.Module.__init__(self)
        from transformers import LlamaConfig, LlamaForCausalLM
        self.hf = scattered(LlamaForCausalLM(LlamaConfig(vocab_size=40, hidden_size=24, num_hidden_layers=2,
            num_attention_heads=3, num_key_value_heads=1, intermediate_size=40, max_position_embeddings=12,
            rms_norm_eps=1e-5, attn_implementation="eager")))

    def forward(self, x, attention_mask):
        return self.hf(input_ids=x.long(), attention_mask=attention_mask.long(), use_cache=False).logits


class GptOptions(nn.Module):
    """Hugging Face's own module with the options that GPT-2 itself does not use."""
    yaml = (
        "model: {use: builtin:gpt, args: {layers: 2, width: 24, heads: 3, hidden: 40, context: 12, "
        "vocab: 40, eps: 1e-3, act: relu, tie: false, scale: false, scale_by_layer: true}}"
    )
    T, V = 12, 40
    data = classmethod(Gpt.data.__func__)

    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel
        self.hf = scattered(
            GPT2LMHeadModel(
                GPT2Config(
                    vocab_size=40,
                    n_embd=24,
                    n_layer=2,
                    n_head=3,
                    n_inner=40,
                    n_positions=12,
                    resid_pdrop=0,
                    embd_pdrop=0,
                    attn_pdrop=0,
                    layer_norm_epsilon=1e-3,
                    activation_function="relu",
                    tie_word_embeddings=False,
                    scale_attn_weights=False,
                    scale_attn_by_inverse_layer_idx=True,
                )
            )
        )

    def forward(self, x):
        return self.hf(input_ids=x.long(), use_cache=False).logits


class Roberta(nn.Module):
    """Hugging Face's own module; pads before, behind and between, so that each sample has positions of its
    own; one kind of token."""
    args = (
        "layers: 2, width: 24, heads: 3, hidden: 40, context: 12, positions: 14, offset: 2, vocab: 40, "
        "types: 1, pad: 1, act: relu"
    )
    yaml = "model: {use: builtin:roberta, args: {%s, share: 0}}" % args
    kind, more = "RobertaForMaskedLM", {}

    def __init__(self):
        super().__init__()
        import transformers
        config = transformers.RobertaConfig(
            vocab_size=40,
            hidden_size=24,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=40,
            max_position_embeddings=14,
            type_vocab_size=1,
            hidden_act="relu",
            hidden_dropout_prob=0,
            attention_probs_dropout_prob=0,
            pad_token_id=1,
            **self.more,
        )
        self.hf = scattered(getattr(transformers, self.kind)(config))

    def forward(self, x):
        return self.hf(input_ids=x.long(), attention_mask=(x != 1).long()).logits

    @staticmethod
    def data(rng):
        x = rng.integers(2, 39, (COUNT, 12)).astype(np.int32)
        x[~masks(rng)] = 1
        x[:, 0] = 0  # the first position is seen: the head for classes reads it
        masked = (rng.random((COUNT, 12)) < 0.3) & (x > 1)
        y = np.where(masked, x, -1).astype(np.int32)
        x[masked] = 39
        return x, y


class RobertaCls(Roberta):
    yaml = "model: {use: builtin:roberta, args: {%s, head: cls, classes: 3}}" % Roberta.args
    kind, more = "RobertaForSequenceClassification", dict(num_labels=3)

    @staticmethod
    def data(rng):
        return Roberta.data(rng)[0], rng.integers(0, 3, COUNT).astype(np.int32)


class Recurrent(nn.Module):
    V, T = 40, 12
    data = classmethod(Gpt.data.__func__)

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(40, 20), nn.Linear(24, 40)
        setattr(self, self.kind, {"lstm": nn.LSTM, "gru": nn.GRU}[self.kind](20, 24, 2, batch_first=True))

    def forward(self, x):
        return self.head(getattr(self, self.kind)(self.embed(x.long()))[0])


class Lstm(Recurrent):
    kind = "lstm"
    yaml = "model: {use: builtin:lstm, args: {layers: 2, width: 20, hidden: 24, context: 12, vocab: 40}}"


class Gru(Recurrent):
    kind = "gru"
    yaml = "model: {use: builtin:gru, args: {layers: 2, width: 20, hidden: 24, context: 12, vocab: 40}}"


def scattered(model):
    """Biases and norms away from 0 and 1, so that a mistake in one shows."""
    with torch.no_grad():
        for p in model.parameters():
            p += torch.randn_like(p) * 0.1
    return model


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
