#!/usr/bin/env python3
"""tokenize.py [--bytes N] [--only NAME] [--chars] [--speed] HEDDLE: `heddle data tokenize` and `tokenizers`.

Makes N bytes (10 MB) of text of all planes of Unicode from a seed, and a tokenizer.json for each row: of the
forms of published ones (GPT-2, Llama 3, Qwen 2, GPT-4o, DeepSeek, Llama 2, Gemma, BERT, RoBERTa, T5, XLM-R),
with their patterns, trained here, and one for each option. Each document is encoded by both; a row is equal,
or names the first document that differs. --chars adds each character of Unicode. --speed prints MB/s instead.
--golden FILE writes the cases of src/token/tokenizer_test.c. Exit 77 without the package. Needs no network.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

from tokenize_made import Tokenizer, rows, small_tokenizers, tokenizers
from tokenize_text import every_character, make_text


def encode(heddle, folder, path, texts_path, special, threads=2):
	out, bounds = os.path.join(folder, 'out'), os.path.join(folder, 'bounds')
	args = [
		heddle,
		'data',
		'tokenize',
		'--tokenizer',
		path,
		'--field',
		'text',
		texts_path,
		'-o',
		out,
		'--boundaries',
		bounds,
		'--threads',
		str(threads),
		'-q',
		'--eos',
		'',
	]
	done = subprocess.run(
		args + (['--special'] if special else []),
		capture_output=True,
		text=True,
	)
	if done.returncode:
		return done.stderr.strip()
	raw = open(out, 'rb').read()
	width = 2 if raw[:4] == (20240520).to_bytes(4, 'little') else 4
	code = 'H' if width == 2 else 'I'
	ids = memoryview(raw)[1024:].cast(code).tolist()
	at = memoryview(open(bounds, 'rb').read()).cast('Q').tolist()
	return [ids[a:b] for a, b in zip(at, at[1:])]


def compare(name, make, heddle, folder, texts, texts_path):
	t = make()
	path = os.path.join(folder, 'tokenizer.json')
	t.save(path)
	t = Tokenizer.from_file(path)
	bad = 0
	for special in (True, False) if t.post_processor else (False,):
		ours = encode(heddle, folder, path, texts_path, special)
		if isinstance(ours, str):
			print(f'| {name} | refused: {ours} |')
			return 1
		theirs = [
			e.ids for e in t.encode_batch(texts, add_special_tokens=special)
		]
		n = sum(map(len, theirs))
		wrong = [
			i
			for i in range(len(texts))
			if i >= len(ours) or ours[i] != theirs[i]
		]
		if wrong or len(ours) != len(texts):
			bad = 1
			i = wrong[0]
			k = next(
				(
					k
					for k, (a, b) in enumerate(zip(ours[i], theirs[i]))
					if a != b
				),
				min(len(ours[i]), len(theirs[i])),
			)
			print(
				f'| {name} | {len(wrong)} of {len(texts)} documents differ; {i}: token {k}: '
				f'{[t.id_to_token(x) for x in ours[i][max(0, k - 2):k + 4]]} for '
				f'{[t.id_to_token(x) for x in theirs[i][max(0, k - 2):k + 4]]} |',
				flush=True,
			)
	if not bad:
		print(f'| {name} | equal, {n} tokens |', flush=True)
	return bad


def speed(name, make, heddle, folder, texts, texts_path, nbytes):
	t = make()
	path = os.path.join(folder, 'tokenizer.json')
	t.save(path)
	cells = []
	for threads in (1, os.cpu_count()):
		os.environ['RAYON_NUM_THREADS'] = str(threads)
		out = subprocess.run(
			[
				heddle,
				'data',
				'tokenize',
				'--tokenizer',
				path,
				'--field',
				'text',
				texts_path,
				'-o',
				os.path.join(folder, 'out'),
				'--threads',
				str(threads),
				'--json',
			],
			capture_output=True,
			text=True,
			check=True,
		)
		ours = json.loads(out.stdout)['seconds']
		# a process of its own: the package's pool of threads is made once
		code = (
			'import sys,json,time,tokenizers;t=tokenizers.Tokenizer.from_file(sys.argv[1]);'
			'x=[json.loads(l)["text"] for l in open(sys.argv[2],encoding="utf-8")];'
			'b=time.perf_counter();'
			't.encode_batch_fast(x);print(time.perf_counter()-b)'
		)
		theirs = float(
			subprocess.run(
				[sys.executable, '-c', code, path, texts_path],
				capture_output=True,
				text=True,
				check=True,
			).stdout
		)
		cells.append(
			f'{nbytes / 1e6 / ours:.1f} | {nbytes / 1e6 / theirs:.1f}'
		)
	print(f'| {name} | ' + ' | '.join(cells) + ' |', flush=True)


GOLDEN = (
	"Hello  world's naïve CAFÉ\r\n\tİstanbul I'LL 12345 ½ ① ﬁne 你好世界 한국어 "
	"e\u0301a\u0300\u0316 🙂👩\u200d👧 "
	"<mask> water waters [MASK]  \u00a0\u3000x\u180ey!!!! ---- ©®\U00011938\u0897 \ufffd "
	"the_end my\ufeff\u0652x "
)


def golden(path):
	with open(path, 'w', encoding='utf-8') as f:
		for name, t in small_tokenizers():
			t = Tokenizer.from_str(t.to_str())
			e = t.encode(GOLDEN)
			f.write(json.dumps({'name': name, 'text': GOLDEN, 'ids': e.ids,
				'back': t.decode(e.ids, False),
				'file': t.to_str()}) + '\n')
	return 0


def main():
	args = argparse.ArgumentParser()
	args.add_argument('--bytes', type=int, default=10**7)
	args.add_argument('--only', default='')
	args.add_argument(
		'--chars', action='store_true', help='each character of Unicode, too'
	)
	args.add_argument('--seed', type=int, default=1)
	args.add_argument('--speed', action='store_true')
	args.add_argument('--golden', default='')
	args.add_argument('heddle', nargs='?')
	a = args.parse_args()
	if a.golden:
		return golden(a.golden)
	os.environ['TOKENIZERS_PARALLELISM'] = 'true'
	texts = make_text(a.bytes, a.seed) + (
		every_character() if a.chars else []
	)
	sample = make_text(min(a.bytes, 3 * 10**6), a.seed + 1)
	small = sample[:600]
	folder = tempfile.mkdtemp()
	texts_path = os.path.join(folder, 'texts.jsonl')
	with open(texts_path, 'w', encoding='utf-8') as f:
		f.writelines(
			json.dumps({'text': t}, ensure_ascii=False) + '\n' for t in texts
		)
	nbytes = sum(len(t.encode()) for t in texts)
	print(
		f'tokenizers {tokenizers.__version__}, {nbytes} bytes in {len(texts)} documents, '
		f'seed {a.seed}'
	)
	if a.speed:
		print(
			'| tokenizer | heddle, 1 thread, MB/s | tokenizers | '
			f'heddle, {os.cpu_count()} threads | tokenizers |'
		)
		for name, make in rows(sample, small):
			if (
				name
				in ('gpt2', 'llama3', 'qwen2', 'llama2', 'bert uncased', 't5')
				and a.only in name
			):
				speed(name, make, a.heddle, folder, texts, texts_path, nbytes)
		return 0
	bad = n = 0
	for name, make in rows(sample, small):
		if a.only in name:
			bad += compare(name, make, a.heddle, folder, texts, texts_path)
			n += 1
	print(f'{n - bad} passed, {bad} failed')
	return 1 if bad else 0


sys.exit(main())
