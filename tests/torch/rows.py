#!/usr/bin/env python3
"""rows.py [--tables N] [--seed S] [--only KIND] HEDDLE: data.kind parquet and jsonl against pyarrow.

Makes N random tables (40): columns of whole and real numbers of all widths, booleans, lists and lists of
lists, texts, structs; written with random options (pages of version 1 and 2, codecs, dictionaries, encodings,
page and group sizes, lists in the old form), by pyarrow, pandas or datasets, and as JSON Lines. `heddle data
cat` must give each number that the table has, as f32, and each byte of each text. Prints a line a table that
differs, then counts.
--fixtures DIR writes the small files of tests/data/rows. Exit 77 without the packages. Needs no network.
"""

import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

try:
	import numpy as np
	import pandas as pd
	import pyarrow as pa
	import pyarrow.parquet as pq
except ImportError:
	print('skip: no pyarrow and pandas')
	sys.exit(77)

WHOLE = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64']
ENCODINGS = {k: ['DELTA_BINARY_PACKED', 'BYTE_STREAM_SPLIT'] for k in WHOLE}
ENCODINGS |= {'text': ['DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY'], 'bool': ['RLE']}
ENCODINGS |= {'real': ['BYTE_STREAM_SPLIT']}
REAL = ['float16', 'float32', 'float64']


def f32(v):
	return struct.unpack('<f', struct.pack('<f', float(np.float32(v))))[0]


def number(rnd, name):
	if name == 'bool':
		return rnd.random() < 0.5
	if name in REAL:
		real = rnd.choice([0.0, -1.5, rnd.gauss(0, 1), rnd.gauss(0, 1) * 10 ** rnd.randint(-3, 3)])
		return float(np.dtype(name).type(real))
	info = np.iinfo(name)
	return rnd.choice([0, 1, info.max, info.min, rnd.randint(0, 9), rnd.randint(info.min, info.max)])


def text(rnd):
	n = rnd.choice([0, 1, 5, 17, 60])
	return ''.join(rnd.choice('ab \n"\\é漢😀\tz') for _ in range(n))


def column(rnd, name, n, shape):
	"""n values of a shape, few of them distinct now and then, so that dictionaries are used"""
	few = [build(rnd, name, shape) for _ in range(rnd.choice([1, 3, 20]))] if rnd.random() < 0.4 else None
	return [rnd.choice(few) if few else build(rnd, name, shape) for _ in range(n)]


def build(rnd, name, shape):
	if not shape:
		return text(rnd) if name == 'text' else number(rnd, name)
	return [build(rnd, name, shape[1:]) for _ in range(shape[0])]


def arrow_type(name, shape):
	named = {'text': pa.string(), 'bool': pa.bool_()}
	t = named[name] if name in named else pa.from_numpy_dtype(np.dtype(name))
	for _ in shape:
		t = pa.list_(t)
	return t


def flat(v):
	return [w for u in v for w in flat(u)] if isinstance(v, list) else [f32(v)]


def write(rnd, path, columns):
	arrays, names = [], []
	for name, (kind, shape, values) in columns.items():
		arrays.append(pa.array(values, type=arrow_type(kind, shape)))
		names.append(name)
	if rnd.random() < 0.3:
		arrays.append(pa.StructArray.from_arrays([arrays[0]], ['in']))
		names.append('st')
	schema = pa.schema([pa.field(k, a.type, nullable=rnd.random() < 0.7) for k, a in zip(names, arrays)])
	table = pa.Table.from_arrays(arrays, schema=schema)
	how = rnd.choice(['pyarrow', 'pyarrow', 'pyarrow', 'pandas', 'datasets'])
	if how == 'pandas':
		table.to_pandas().to_parquet(path)
		return 'pandas'
	if how == 'datasets':
		try:
			import datasets

			datasets.Dataset(table).to_parquet(path)
			return 'datasets'
		except Exception as e:
			print('datasets:', type(e).__name__, str(e)[:80])
	dictionary = rnd.random() < 0.5
	options = dict(
		version=rnd.choice(['1.0', '2.4', '2.6']),
		data_page_version=rnd.choice(['1.0', '2.0']),
		compression=rnd.choice(['none', 'snappy', 'gzip', 'zstd', 'lz4']),
		use_dictionary=dictionary,
		data_page_size=rnd.choice([64, 1000, 1 << 20]),
		row_group_size=rnd.choice([1, 7, 1 << 20]),
		write_page_checksum=rnd.random() < 0.5,
		store_schema=rnd.random() < 0.5,
		use_compliant_nested_type=rnd.random() < 0.5,
		write_batch_size=rnd.choice([1, 10, 1024]),
	)
	if not dictionary:
		encoding = {}
		for name, (kind, shape, _) in columns.items():
			element = '.list.element' if options['use_compliant_nested_type'] else '.list.item'
			leaf = name + element * len(shape)
			encoding[leaf] = rnd.choice(['PLAIN', *ENCODINGS['real' if kind in REAL else kind]])
		options['column_encoding'] = encoding
	pq.write_table(table, path, **options)
	return 'pyarrow ' + ' '.join(f'{k}={v}' for k, v in options.items())


def cat(heddle, folder, kind, data, model, n):
	path = os.path.join(folder, 'job.yaml')
	with open(path, 'w') as f:
		json.dump({
			'job': {'steps': 1},
			'model': model,
			'data': {'kind': kind, 'split': {'train': 1, 'valid': 0}, **data},
			'batch': {'global': 1, 'virtual_nodes': 1},
			'optim': {'kind': 'sgd', 'lr': 0.1},
		}, f)
	r = subprocess.run([heddle, 'data', 'cat', path, '--count', str(n)], capture_output=True, text=True)
	return [json.loads(l) for l in r.stdout.splitlines()], r.stderr.strip()


def mlp(n, classes):
	return {'use': 'builtin:mlp', 'args': {'input': [n], 'hidden': [1], 'classes': classes}}


def bert(context, classes):
	args = {'layers': 1, 'width': 4, 'heads': 1, 'context': context, 'vocab': 257, 'pad': 256}
	args |= {'head': 'cls', 'classes': classes}
	return {'use': 'builtin:bert', 'args': args}


def differs(heddle, folder, kind, path, columns, labels, n):
	numbers = {k: c for k, c in columns.items() if c[0] != 'text' and k != 'label'}
	want = [[w for c in numbers.values() for w in flat(c[2][i])] for i in range(n)]
	data = {'path': path, 'label': 'label', 'columns': list(numbers)}
	got, err = cat(heddle, folder, kind, data, mlp(len(want[0]), 5), n)
	if err or len(got) != n:
		return err or f'{len(got)} rows of {n}'
	for i, g in enumerate(got):
		if [f32(v) for v in g['x']] != want[i] or g['y'] != labels[i]:
			return f'row {i}: {g["x"]} {g["y"]}, not {want[i]} {labels[i]}'
	for name in [k for k, c in columns.items() if c[0] == 'text']:
		data = {'path': path, 'label': 'label', 'columns': [name]}
		got, err = cat(heddle, folder, kind, data, bert(64, 5), n)
		if err or len(got) != n:
			return err or f'{len(got)} rows of {n}'
		for i, g in enumerate(got):
			b = list(columns[name][2][i].encode())[:64]
			if g['x'] != b + [256] * (64 - len(b)):
				return f'row {i}: text {g["x"]}, not {b}'
	return None


def table(rnd):
	n = rnd.choice([1, 2, 9, 40])
	columns = {}
	for i in range(rnd.randint(1, 4)):
		kind = rnd.choice(WHOLE + REAL + ['bool'])
		shape = rnd.choice([[], [], [1], [5], [3, 2], [2, 2, 2]])
		columns[f'c{i}'] = (kind, shape, column(rnd, kind, n, shape))
	if rnd.random() < 0.6:
		columns['t'] = ('text', [], column(rnd, 'text', n, []))
	labels = [rnd.randint(0, 4) for _ in range(n)]
	columns['label'] = (rnd.choice(['int64', 'int32', 'uint8']), [], labels)
	return columns, labels, n


def jsonl(path, columns, n):
	with open(path, 'w') as f:
		for i in range(n):
			row = {k: c[2][i] for k, c in columns.items()}
			f.write(json.dumps(row, ensure_ascii=bool(i % 2)) + '\n')


def fixtures(folder):
	os.makedirs(folder, exist_ok=True)
	t = pa.table({
		'f': pa.array(
			[[[1, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]],
			pa.list_(pa.list_(pa.float32())),
		),
		'n': pa.array([1, -2, 3], pa.int64()),
		'u': pa.array([0, 2**32 - 1, 7], pa.uint32()),
		'h': pa.array(np.array([0.5, -2, 4], dtype=np.float16)),
		'b': pa.array([True, False, True]),
		't': pa.array(['one', '', 'dreié']),
		'st': pa.array([{'v': 1}, {'v': 2}, {'v': 3}], pa.struct([('v', pa.int8())])),
		'hole': pa.array([1, None, 3], pa.int32()),
		'ragged': pa.array([[1], [2, 3], []], pa.list_(pa.int32())),
		'bent': pa.array([[[1], [2, 3]], [[4]], []], pa.list_(pa.list_(pa.int32()))),
		'day': pa.array([1, 2, 3], pa.date32()),
		'label': pa.array([0, 1, 1], pa.int32()),
	})
	full = dict(row_group_size=2, write_page_checksum=True)
	pq.write_table(t, folder + '/snappy1.parquet', compression='snappy', **full)
	pq.write_table(t, folder + '/zstd2.parquet', compression='zstd', data_page_version='2.0', **full)
	full['use_dictionary'] = False
	codes = {'n': 'DELTA_BINARY_PACKED', 'u': 'DELTA_BINARY_PACKED', 't': 'DELTA_BYTE_ARRAY'}
	codes |= {'h': 'BYTE_STREAM_SPLIT', 'b': 'RLE'}
	pq.write_table(t, folder + '/delta.parquet', compression='lz4', column_encoding=codes, **full)
	codes = {'t': 'DELTA_LENGTH_BYTE_ARRAY'}
	pq.write_table(t, folder + '/gzip.parquet', compression='gzip', column_encoding=codes, **full)
	pq.write_table(t.select(['n', 'label']), folder + '/brotli.parquet', compression='brotli')
	pq.write_table(t.select(['n', 'label']).slice(0, 0), folder + '/empty.parquet')
	i = np.arange(60)
	t = pa.table({
		'f': pa.array([[float(k), k / 7, -k * k] for k in range(60)], pa.list_(pa.float32())),
		'v': pa.array(np.float64(i % 5) / 4),
		'n': pa.array(i * 37 % 11 - 5, pa.int16()),
		'label': pa.array(i * 29 % 61 % 3, pa.int32()),
	})
	pq.write_table(t, folder + '/sixty.parquet', compression='zstd', row_group_size=17)


def main():
	p = argparse.ArgumentParser()
	p.add_argument('--tables', type=int, default=40)
	p.add_argument('--seed', type=int, default=1)
	p.add_argument('--only')
	p.add_argument('--fixtures')
	p.add_argument('heddle')
	a = p.parse_args()
	if a.fixtures:
		return fixtures(a.fixtures)
	equal, heddle = {'parquet': 0, 'jsonl': 0}, os.path.abspath(a.heddle)
	for i in range(a.tables):
		rnd = random.Random(a.seed * 1000003 + i)
		with tempfile.TemporaryDirectory() as folder:
			columns, labels, n = table(rnd)
			for kind in ['parquet', 'jsonl']:
				if a.only and a.only != kind:
					continue
				path = os.path.join(folder, 't.' + kind)
				if kind == 'parquet':
					how = write(rnd, path, columns)
				else:
					how = jsonl(path, columns, n)
				bad = differs(heddle, folder, kind, path, columns, labels, n)
				equal[kind] += bad is None
				if bad:
					print(f'table {i} {kind}: {bad[:300]}  [{how}]')
	print(f'pyarrow {pa.__version__}, pandas {pd.__version__}: of {a.tables} tables {equal} are equal')


main()
