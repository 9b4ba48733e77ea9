#!/usr/bin/env python3
"""stories.py -- three fine-tunings as people do them, by a job file and by PyTorch

	bench/stories.py [--seeds 3] [--only bert,lora,resnet] >docs/results/stories.md

Each begins from the same weights and has the same data, split, batch, optimizer and steps on both sides;
order, dropout and augmentation are each side's own, so what is compared is the metric over seeds. Wanted:
the mean of one side lies within the spread of the other's seeds. Times are of training alone, evaluations
apart, one after the other on the same cores; PyTorch's is its fastest number of threads of 1 and 2.

Needs PyTorch, transformers, peft, tokenizers and pillow; HEDDLE_SHARED (data/text/tinyshakespeare.txt),
Debian's dataset-fashion-mnist, and HEDDLE_BIN or a release build.
"""
import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.pop(0)                                   # bench/tokenize.py is not Python's own
import numpy
import torch
import transformers

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEDDLE = os.environ.get("HEDDLE_BIN", ROOT + "/build/release/heddle")
TEXT = os.path.join(os.environ.get("HEDDLE_SHARED", ROOT + "/../shared"), "data/text/tinyshakespeare.txt")
FASHION = "/usr/share/datasets/fashion-mnist/train-%s-idx%d-ubyte.gz"
transformers.logging.set_verbosity_error()


def heddle(*words):
    done = subprocess.run([HEDDLE, *words], capture_output=True, text=True)
    if done.returncode:
        sys.exit("bench: heddle %s: %s" % (" ".join(words), done.stderr.strip()))
    return done.stdout


def run_heddle(job, seed, split, metric):
    """Metric and seconds of training."""
    run = "%s-%d" % (job[:-5], seed)
    heddle("run", job, "--out", run, "-q", "-s", "job.seed=%d" % seed, "--devices", "2")
    with open(run + "/metrics.ndjson") as f:
        took = sum(json.loads(line)["step_ms"] for line in f) / 1e3
    got = json.loads(heddle("eval", run, "--split", split, "--json", "-q"))
    return got[metric], took


def lines_of(yaml):
    return len([line for line in yaml.splitlines() if line.strip() and not line.startswith("#")])


def batches(n, size, steps, seed):
    """Rows of each step: epochs in another order each."""
    draw, left = numpy.random.default_rng(seed), numpy.empty(0, int)
    for _ in range(steps):
        while len(left) < size:
            left = numpy.concatenate([left, draw.permutation(n)])
        yield left[:size]
        left = left[size:]


def cosine(optimizer, steps, warmup, floor):
    def rate(step):
        if step < warmup:
            return (step + 1) / warmup
        share = (step - warmup) / max(1, steps - warmup)
        return floor + (1 - floor) * 0.5 * (1 + numpy.cos(numpy.pi * min(1, share)))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, rate)


def train_torch(model, groups, loss_of, n, size, steps, lr, seed, betas=(0.9, 0.999)):
    """Seconds; AdamW with a cosine, a tenth of it warm-up, gradients clipped at 1."""
    torch.manual_seed(seed)
    optimizer = torch.optim.AdamW(groups, lr=lr, betas=betas)
    schedule, parameters = cosine(optimizer, steps, steps // 10, 0), [p for g in groups for p in g["params"]]
    model.train()
    begin = time.perf_counter()
    for rows in batches(n, size, steps, seed):
        optimizer.zero_grad()
        loss_of(rows).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
    return time.perf_counter() - begin


def decayed(model, decay):
    trained = [p for p in model.parameters() if p.requires_grad]
    return [{"params": [p for p in trained if p.ndim > 1], "weight_decay": decay},
            {"params": [p for p in trained if p.ndim <= 1], "weight_decay": 0.0}]


# ---- BERT: whose words are these? ----

SPEAKERS = 4


def speeches():
    """(words, number of that of the four with most words)."""
    with open(TEXT) as f:
        parts = re.findall(r"^([A-Z][^\n:]{1,30}):\n(.*?)(?=\n\n|\Z)", f.read(), re.S | re.M)
    count = {}
    for speaker, _ in parts:
        count[speaker] = count.get(speaker, 0) + 1
    most = sorted(sorted(count), key=lambda speaker: -count[speaker])[:SPEAKERS]
    return [(" ".join(words.split()), most.index(speaker)) for speaker, words in parts if speaker in most]


def make_tokenizer(texts):
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=2000, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


BERT = """job:   {name: bert, steps: 200}
model:
  use: builtin:bert
  args: {layers: 2, width: 64, heads: 4, hidden: 256, vocab: 2000, positions: 64, context: 64,
         head: cls, classes: 4, inputs: [attention_mask, token_type_ids]}
  weights: bert/model.safetensors
data:
  {kind: jsonl, path: speeches.jsonl, tokenizer: tokenizer.json, columns: [text], label: speaker,
   split: {train: 0.8, valid: 0.2}}
batch: {global: 32, virtual_nodes: 4}
optim: {kind: adamw, lr: 1e-3, weight_decay: 0.01, no_decay: norms-and-biases, clip: 1.0,
        schedule: {kind: cosine, floor: 0}}
"""


def bert(seeds):
    texts = speeches()
    make_tokenizer([t for t, _ in texts]).save("tokenizer.json")
    with open("speeches.jsonl", "w") as f:
        for text, speaker in texts:
            f.write(json.dumps({"text": text, "speaker": speaker}) + "\n")
    config = transformers.BertConfig(
        vocab_size=2000, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=256,
        max_position_embeddings=64, num_labels=SPEAKERS, attention_probs_dropout_prob=0.0)
    torch.manual_seed(0)
    begin = transformers.BertForSequenceClassification(config)
    begin.save_pretrained("bert-published")
    heddle("model", "import", "bert-published", "-o", "bert")
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file("tokenizer.json")
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding(length=64)
    got = tokenizer.encode_batch([t for t, _ in texts])
    ids, mask = torch.tensor([e.ids for e in got]), torch.tensor([e.attention_mask for e in got])
    speaker = torch.tensor([w for _, w in texts])

    def peer(seed, threads):
        torch.set_num_threads(threads)
        order = numpy.random.default_rng(1000 + seed).permutation(len(texts))
        train, valid = order[:len(texts) * 8 // 10], order[len(texts) * 8 // 10:]
        model = transformers.BertForSequenceClassification.from_pretrained("bert-published")

        def loss_of(rows):
            at = train[rows]
            return model(input_ids=ids[at], attention_mask=mask[at], labels=speaker[at]).loss
        took = train_torch(model, decayed(model, 0.01), loss_of, len(train), 32, 200, 1e-3, seed)
        model.eval()
        with torch.no_grad():
            said = torch.cat([model(input_ids=ids[v], attention_mask=mask[v]).logits.argmax(1)
                              for v in numpy.array_split(valid, 8)])
        return float((said == speaker[valid]).float().mean()), took
    return story("BERT, classes of texts by a tokenizer, with masks", "accuracy", BERT, "bert.yaml", peer,
                 seeds)


# ---- GPT-2: adapters beside frozen weights ----

LORA = """job:   {name: lora, steps: 150}
model:
  use: builtin:gpt
  args: {layers: 2, width: 96, heads: 4, context: 64, vocab: 256}
  weights: gpt/model.safetensors
  lora: {rank: 8, alpha: 16, targets: ["*attn.c_attn.weight", "*attn.c_proj.weight"]}
data:  {kind: text, path: late.txt, split: {train: 0.9, valid: 0.1}}
batch: {global: 32, virtual_nodes: 4}
optim: {kind: adamw, lr: 3e-3, weight_decay: 0, clip: 1.0, schedule: {kind: cosine, floor: 0}}
"""


def windows(data, length):
    n = (len(data) - 1) // length
    return (torch.tensor(data[:n * length].reshape(n, length)),
            torch.tensor(data[1:n * length + 1].reshape(n, length)))


def lora(seeds):
    import peft
    with open(TEXT, "rb") as f:
        text = f.read()
    early, late = text[:len(text) // 2], text[-len(text) // 4:]
    with open("late.txt", "wb") as f:
        f.write(late)
    config = transformers.GPT2Config(vocab_size=256, n_embd=96, n_layer=2, n_head=4, n_positions=64,
                                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    torch.manual_seed(0)
    torch.set_num_threads(2)
    model = transformers.GPT2LMHeadModel(config)
    x, y = windows(numpy.frombuffer(early, numpy.uint8).astype(numpy.int64), 64)

    def cross(model, x, y):
        return torch.nn.functional.cross_entropy(model(input_ids=x).logits.flatten(0, 1), y.flatten())
    train_torch(model, decayed(model, 0.1), lambda rows: cross(model, x[rows], y[rows]), len(x), 32, 400,
                3e-3, 0)
    model.save_pretrained("gpt-published")
    heddle("model", "import", "gpt-published", "-o", "gpt")
    data = numpy.frombuffer(late, numpy.uint8).astype(numpy.int64)
    cut = len(data) * 9 // 10
    x, y = windows(data[:cut], 64)
    vx, vy = windows(data[cut:], 64)

    def peer(seed, threads):
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        begin = transformers.GPT2LMHeadModel.from_pretrained("gpt-published")
        model = peft.get_peft_model(begin, peft.LoraConfig(
            r=8, lora_alpha=16, target_modules=["attn.c_attn", "attn.c_proj"], fan_in_fan_out=True))
        took = train_torch(model, decayed(model, 0.0), lambda rows: cross(model, x[rows], y[rows]), len(x),
                           32, 150, 3e-3, seed)
        model.eval()
        with torch.no_grad():
            return float(cross(model, vx, vy)), took
    return story("GPT-2's shape, adapters (LoRA) beside frozen weights", "loss", LORA, "lora.yaml", peer,
                 seeds)


# ---- a residual network, from a folder of images ----

RESNET = """job:   {name: resnet, steps: 150}
model: {use: builtin:resnet18, args: {stem: small, height: 32, width: 32, classes: 10, base: 16}}
data:
  kind: images
  path: clothes
  augment: [flip, {crop: 4}]
  split: {train: 0.8, valid: 0.2}
batch: {global: 64, virtual_nodes: 4}
optim: {kind: adamw, lr: 3e-3, weight_decay: 0.05, no_decay: norms-and-biases, clip: 1.0,
        schedule: {kind: cosine, floor: 0}}
"""


class Block(torch.nn.Module):
    def __init__(self, c, out, stride):
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.conv1, self.bn1 = conv(c, out, 3, stride, 1, bias=False), norm(out)
        self.conv2, self.bn2 = conv(out, out, 3, 1, 1, bias=False), norm(out)
        self.down = torch.nn.Sequential(conv(c, out, 1, stride, bias=False), norm(out)) \
            if stride > 1 or c != out else torch.nn.Identity()

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        return torch.relu(self.bn2(self.conv2(y)) + self.down(x))


def resnet18(width):
    """For small images: a first convolution of 3 x 3, no pooling behind it."""
    layers, c = [torch.nn.Conv2d(3, width, 3, 1, 1, bias=False), torch.nn.BatchNorm2d(width),
                 torch.nn.ReLU()], width
    for out, stride in ((width, 1), (2 * width, 2), (4 * width, 2), (8 * width, 2)):
        layers += [Block(c, out, stride), Block(out, out, 1)]
        c = out
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                               torch.nn.Linear(c, 10))


def resnet(seeds):
    from PIL import Image
    with gzip.open(FASHION % ("images", 3)) as f:
        images = numpy.frombuffer(f.read(), numpy.uint8, offset=16).reshape(-1, 28, 28)[:4000]
    with gzip.open(FASHION % ("labels", 1)) as f:
        labels = numpy.frombuffer(f.read(), numpy.uint8, offset=8)[:4000].astype(numpy.int64)
    pixels = []
    for i, (image, label) in enumerate(zip(images, labels)):
        os.makedirs("clothes/%d" % label, exist_ok=True)
        big = Image.fromarray(image).resize((32, 32), Image.BILINEAR).convert("RGB")
        big.save("clothes/%d/%05d.png" % (label, i))
        pixels.append(numpy.asarray(big).transpose(2, 0, 1))
    x, y = torch.tensor(numpy.stack(pixels)).float() / 255, torch.tensor(labels)

    def peer(seed, threads):
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        order = numpy.random.default_rng(1000 + seed).permutation(len(x))
        train, valid = order[:len(x) * 8 // 10], order[len(x) * 8 // 10:]
        model, draw = resnet18(16), numpy.random.default_rng(seed)

        def loss_of(rows):
            got = torch.nn.functional.pad(x[train[rows]], (4, 4, 4, 4))
            rows_of = [got[i, :, a:a + 32, b:b + 32] for i, (a, b) in
                       enumerate(draw.integers(0, 9, (len(rows), 2)))]
            rows_of = [r.flip(2) if flip else r for r, flip in zip(rows_of, draw.random(len(rows)) < 0.5)]
            # norms over 16 rows, as of four processes, and of four virtual nodes
            said = torch.cat([model(part) for part in torch.stack(rows_of).chunk(4)])
            return torch.nn.functional.cross_entropy(said, y[train[rows]])
        took = train_torch(model, decayed(model, 0.05), loss_of, len(train), 64, 150, 3e-3, seed)
        model.eval()
        with torch.no_grad():
            said = torch.cat([model(x[v]).argmax(1) for v in numpy.array_split(valid, 8)])
        return float((said == y[valid]).float().mean()), took
    return story("a residual network, from a folder of images", "accuracy", RESNET, "resnet.yaml", peer,
                 seeds)


# ---- both sides ----

def story(title, metric, yaml, name, peer, seeds):
    with open(name, "w") as f:
        f.write(yaml)
    ours = [run_heddle(name, seed, "valid", metric) for seed in range(1, seeds + 1)]
    threads = min((1, 2), key=lambda n: peer(1, n)[1])
    theirs = [peer(seed, threads) for seed in range(1, seeds + 1)]
    return title, metric, yaml, ours, theirs, threads


def spread(side):
    values = [v for v, _ in side]
    return min(values), max(values)


def report(stories):
    with open("/proc/cpuinfo") as f:
        cpu = re.search(r"model name\s*: (.*)", f.read()).group(1)
    print("# Three fine-tunings, by a job file and by PyTorch\n")
    print("Made by `bench/stories.py` on %s; %s, %d cores; PyTorch %s, transformers\n"
          "%s. Same weights at the begin, same data, batch, optimizer and steps; order, dropout and\n"
          "augmentation are each side's own. Seconds are of training alone.\n" % (
              time.strftime("%Y-%m-%d"), cpu, os.cpu_count(), torch.__version__, transformers.__version__))
    print("| story | metric | seeds | Heddle | PyTorch | seconds | PyTorch's | lines of YAML |")
    print("|---|---|--:|---|---|--:|--:|--:|")
    for title, metric, yaml, ours, theirs, threads in stories:
        print("| %s | %s | %d | %.4f (%.4f to %.4f) | %.4f (%.4f to %.4f) | %.1f | %.1f (%d threads) | %d |"
              % ((title, metric, len(ours), statistics.mean(v for v, _ in ours)) + spread(ours) +
            (statistics.mean(v for v, _ in theirs),) + spread(theirs) +
            (statistics.median(s for _, s in ours), statistics.median(s for _, s in theirs), threads,
             lines_of(yaml))))
    for title, _, yaml, *_ in stories:
        print("\n%s:\n\n```yaml\n%s```" % (title[0].upper() + title[1:], yaml))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="bert,lora,resnet")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        report([{"bert": bert, "lora": lora, "resnet": resnet}[name](args.seeds)
                for name in args.only.split(",")])


main()
