"""fixtures_text.py: the models of make_fixtures.py that read tokens: their job, their module, their data."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

COUNT = 48


def scattered(model):
    """Biases and norms away from 0 and 1, so that a mistake in one shows."""
    with torch.no_grad():
        for p in model.parameters():
            p += torch.randn_like(p) * 0.1
    return model


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
