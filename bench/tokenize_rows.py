#!/usr/bin/env python3
"""tokenize_rows.py HEDDLE: texts and pairs as rows of tokens (`data.tokenizer`), and `tokenizers`.

Trains four tokenizers (WordPiece with a template and as BERT, byte pairs as RoBERTa and plain) on made-up
texts and compares tokens, masks, kinds and labels of each row of `heddle data cat` with those of Encoding:
one text and two, cut and filled up at either side, from JSON Lines and csv. Prints rows and how many differ;
exit 1 if any does. Needs no network.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

ROWS, T = 200, 16
WORDS = "the cat sat on a mat naïve café film was good bad not terrible über alles 日本 x yes".split()

JOB = """job: {steps: 1}
model: {use: "builtin:bert", args: {head: cls, layers: 1, width: 8, heads: 2, context: %d, vocab: 400,
  inputs: [attention_mask, token_type_ids]}}
data: {kind: %s, path: d.%s, tokenizer: tokenizer.json, columns: [%s], split: {train: 1, valid: 0}}
batch: {global: 8}
"""


def text():
	return " ".join(random.choice(WORDS) for _ in range(random.randint(1, 14)))


def word_pieces(texts):
	t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
	t.normalizer = normalizers.BertNormalizer()
	t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
	special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
	t.train_from_iterator(
		texts, trainers.WordPieceTrainer(vocab_size=90, special_tokens=special, show_progress=False))
	return t


def byte_pairs(texts):
	t = Tokenizer(models.BPE())
	t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
	t.train_from_iterator(
		texts,
		trainers.BpeTrainer(
			vocab_size=400, special_tokens=["<s>", "<pad>", "</s>"], show_progress=False,
			initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
	return t


TEMPLATE = processors.TemplateProcessing(
	single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
	special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
KINDS = {
	"template": (word_pieces, TEMPLATE, (0, "[PAD]")),
	"bert": (word_pieces, processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2)), (0, "[PAD]")),
	"roberta": (byte_pairs, processors.RobertaProcessing(("</s>", 2), ("<s>", 0)), (1, "<pad>")),
	"plain": (byte_pairs, processors.ByteLevel(), (1, "<pad>")),
}


def write(form, rows):
	with open("d." + form, "w") as f:
		if form == "csv":
			f.write("a,b,label\n")
		for a, b, y in rows:
			member = {"a": a, "b": b, "label": y}
			f.write((f'"{a}","{b}",{y}' if form == "csv" else json.dumps(member)) + "\n")


def compare(heddle, tokenizer, form, pair, rows):
	"""How many rows differ."""
	with open("j.yaml", "w") as f:
		f.write(JOB % (T, form, form, "a, b" if pair else "a"))
	out = subprocess.run(
		[heddle, "data", "cat", "j.yaml", "--count", str(ROWS), "--json"], capture_output=True,
		text=True)
	if out.returncode:
		print(out.stderr)
		return ROWS
	bad = 0
	for line, (a, b, y) in zip(out.stdout.splitlines(), rows, strict=True):
		row, e = json.loads(line), tokenizer.encode(a, b) if pair else tokenizer.encode(a)
		has = row["x"], row["attention_mask"], row["token_type_ids"], row["y"]
		bad += has != (e.ids, e.attention_mask, e.type_ids, y)
	return bad


def main():
	heddle = os.path.abspath(sys.argv[1])
	random.seed(5)
	n = bad = 0
	rows = [(text(), text(), random.randint(0, 1)) for _ in range(ROWS)]
	with tempfile.TemporaryDirectory() as folder:
		os.chdir(folder)
		sides = "right", "left"
		forms = "jsonl", "csv"
		all_of = itertools.product(KINDS, sides, sides, (False, True), forms)
		for kind, pad, cut, pair, form in all_of:
			train, post, (pad_id, pad_token) = KINDS[kind]
			t = train([r[0] for r in rows])
			t.post_processor = post
			t.enable_padding(direction=pad, pad_id=pad_id, pad_token=pad_token, length=T)
			t.enable_truncation(T, direction=cut)
			t.save("tokenizer.json")
			write(form, rows)
			differ = compare(heddle, t, form, pair, rows)
			if differ:
				print(kind, "pads", pad, "cut", cut, "pair", pair, form, differ, "differ")
			n, bad = n + ROWS, bad + differ
		os.chdir("/")
	print(f"{n} rows, {bad} differ")
	sys.exit(bad > 0)


main()
