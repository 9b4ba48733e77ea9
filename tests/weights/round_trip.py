"""round_trip.py -- PyTorch's modules beside ours: run by tests/program_weights.sh.

For each model: random module -> safetensors -> `heddle model import` -> a run of one step at rate 0
-> `heddle predict`; `heddle model export` -> load_state_dict(strict=True) into a fresh module. Its logits
must agree with ours, its tensors be those of the first module. Prints a line a model, or why not.
"""
import json, os, subprocess, sys
import numpy as np
import torch
import torch.nn as nn
from safetensors.torch import load_file, save_file, load_model

heddle = sys.argv[1]
ROWS = 24
torch.manual_seed(17)
torch.set_num_threads(1)


def call(*args):
    done = subprocess.run([heddle, *args, "-q"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"heddle {' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def relative(a, b):
    return float(np.abs(a - b).max() / np.abs(b).max())


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(20, 33), nn.Linear(33, 5)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def floats(*shape):
    return torch.randn(ROWS, *shape).numpy(), np.random.default_rng(3).integers(0, 3, ROWS).astype(np.int32)


def tokens(vocab, length):
    rng = np.random.default_rng(4)
    return rng.integers(0, vocab, (ROWS, length)).astype(np.int32), rng.integers(
        0, vocab, (ROWS, length)
    ).astype(np.int32)


# name -> (module, state to save, inputs, forward, arguments or None for config.json, load into a fresh one)
def mlp():
    m = Mlp()
    return dict(
        make=Mlp,
        module=m,
        data=floats(20),
        run=lambda m, x: m(x),
        use="mlp",
        args=["input=[20]", "hidden=[33]", "classes=5"],
    )


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(
        n_layer=2,
        n_embd=32,
        n_head=2,
        n_positions=12,
        vocab_size=40,
        resid_pdrop=0,
        embd_pdrop=0,
        attn_pdrop=0,
    )
    make = lambda: GPT2LMHeadModel(config).eval()
    m = make()
    return dict(
        make=make,
        module=m,
        data=tokens(40, 12),
        run=lambda m, x: m(x.long()).logits,
        config=config,
        tied=True,
    )


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(
        num_hidden_layers=2,
        hidden_size=32,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=48,
        max_position_embeddings=12,
        vocab_size=40,
        tie_word_embeddings=False,
    )
    make = lambda: LlamaForCausalLM(config).eval()
    return dict(
        make=make,
        module=make(),
        data=tokens(40, 12),
        run=lambda m, x: m(x.long()).logits,
        config=config,
        needs="llama",
    )


def bert_cls():
    from transformers import BertConfig, BertForSequenceClassification
    config = BertConfig(
        num_hidden_layers=2,
        hidden_size=24,
        num_attention_heads=3,
        intermediate_size=40,
        max_position_embeddings=12,
        vocab_size=40,
        num_labels=3,
        pad_token_id=0,
        architectures=["BertForSequenceClassification"],
    )
    make = lambda: BertForSequenceClassification(config).eval()
    x, y = tokens(40, 12)
    x[:, 9:] *= (x[:, :1] % 2)                          # every other text ends in padding
    x[:, 0] += x[:, 0] == 0
    return dict(
        make=make,
        module=make(),
        data=(x, y[:, 0] % 3),
        run=lambda m, x: m(x.long(), attention_mask=(x != 0).long()).logits,
        config=config,
        needs="bert",
    )


def resnet18():
    from torchvision.models import resnet18 as build
    make = lambda: build(num_classes=5).eval()
    m = make()
    for module in m.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
    return dict(make=make, module=m, data=floats(3, 32, 32), run=lambda m, x: m(x), use="resnet18",
                args=["height=32", "width=32", "classes=5"], needs="resnet18")


def inception():
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../torch"))
    from make_fixtures import Inception
    m = Inception().eval()
    return dict(
        make=lambda: Inception().eval(),
        module=m,
        data=floats(1, 12, 12),
        run=lambda m, x: m(x),
        use="inception",
        needs="inception",
        args=[
            "stem=small",
            "channels=1",
            "height=12",
            "width=12",
            "base=16",
            "blocks=[1,1]",
            "classes=5",
            "dropout=0",
        ],
    )


MODELS = dict(mlp=mlp, gpt2=gpt2, llama=llama, bert_cls=bert_cls, resnet18=resnet18, inception=inception)
KNOWN = [
    m["name"]
    for m in json.loads(
        subprocess.run([heddle, "model", "ls", "--json"], capture_output=True, text=True).stdout
    )
]


def check(name, made):
    module, (x, y) = made["module"].eval(), made["data"]
    for p in module.parameters():  # norms and biases begin as ones and zeros: let every tensor matter
        with torch.no_grad():
            p.add_(torch.randn_like(p) * 0.05)
    os.makedirs(f"{name}/theirs")
    state = {k: v.contiguous().clone() for k, v in module.state_dict().items()}
    if made.get("tied"):
        state.pop("lm_head.weight")
    save_file(state, f"{name}/theirs/model.safetensors")
    if "config" in made:
        made["config"].save_pretrained(f"{name}/theirs")
    np.save(f"{name}/x.npy", x)
    np.save(f"{name}/y.npy", y)
    asked = ["--model", made["use"]] if "use" in made else []
    call(
        "model",
        "import",
        f"{name}/theirs",
        *asked,
        *sum((["-s", a] for a in made.get("args", [])), []),
        "-o",
        f"{name}/ours",
    )
    call(
        "run",
        f"{name}/ours/job.yaml",
        "-s",
        "data.kind=npy",
        "-s",
        f"data.path={name}",
        "-s",
        "data.split={train: 0.5, valid: 0.5}",
        "-s",
        "batch.global=4",
        "-s",
        "job.steps=1",
        "-s",
        "batch.virtual_nodes=2",
        "-s",
        "optim.lr=0",
        "--out",
        f"{name}/run",
    )
    call("predict", f"{name}/run", "--split", "train", "-o", f"{name}/train.npy")
    call("predict", f"{name}/run", "--split", "valid", "-o", f"{name}/valid.npy")
    ours = np.concatenate([np.load(f"{name}/train.npy"), np.load(f"{name}/valid.npy")])
    imported = load_file(f"{name}/ours/model.safetensors")
    for k, v in state.items():
        assert k.endswith("num_batches_tracked") or torch.equal(
            v, imported[k.removeprefix("transformer.")]
        ), f"{name}: {k} was not imported as it was"

    call(
        "model",
        "export",
        f"{name}/run",
        "--names",
        "torch",
        "-o",
        f"{name}/back.safetensors",
        *(["--tied", "both"] if made.get("tied") else []),
    )
    back = load_file(f"{name}/back.safetensors")
    fresh = made["make"]().eval()
    prefix = "transformer." if made.get("tied") else ""
    fresh.load_state_dict(
        {k if k == "lm_head.weight" else prefix + k: v for k, v in back.items()}, strict=True
    )
    with torch.no_grad():
        theirs = made["run"](module, torch.from_numpy(x)).numpy().reshape(ours.shape)
        again = made["run"](fresh, torch.from_numpy(x)).numpy().reshape(ours.shape)
    moved = [k for k in state if "running" in k]  # a step at rate 0 moves running statistics and nothing else
    assert bool(moved) != np.array_equal(again, theirs), f"{name}: what came back computes other outputs"
    for k, v in fresh.state_dict().items():
        assert (
            "running" in k or k.endswith("num_batches_tracked") or torch.equal(v, module.state_dict()[k])
        ), f"{name}: {k} came back changed"
    if moved:
        assert all(int(v) == 1 for k, v in fresh.state_dict().items() if k.endswith("num_batches_tracked"))
    there = relative(ours, again[split_order(ours, again)])
    assert there < 1e-5, f"{name}: logits differ by {there}"
    if made.get("tied"):  # once: the base module, strictly; or the whole one by the library that knows ties
        call("model", "export", f"{name}/run", "-o", f"{name}/once.safetensors")
        once = load_file(f"{name}/once.safetensors")
        assert "lm_head.weight" not in once
        made["make"]().transformer.load_state_dict(once, strict=True)
    print(
        f"ok - {name}: logits agree within {there:.1e}, load_state_dict(strict=True) passes, "
        "what came back is what went out"
    )


# The rows of a split keep no promise of place here: find for each of ours the row of theirs that it is.
def split_order(ours, theirs):
    a, b = ours.reshape(len(ours), -1), theirs.reshape(len(theirs), -1)
    return [int(np.abs(b - row).sum(1).argmin()) for row in a]


for name, make in MODELS.items():
    try:
        made = make()
    except ImportError as e:
        print(f"skip: {name}: {e}")
        continue
    if made.get("needs", "mlp") not in KNOWN:
        print(f"skip: {name}: this build has no such model")
        continue
    check(name, made)
