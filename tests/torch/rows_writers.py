#!/usr/bin/env python3
"""rows_writers.py [--tables N] HEDDLE: data.kind parquet on files that polars, DuckDB and fastparquet wrote.

Makes N random tables (60) of whole numbers, reals, booleans, lists and texts; each is written by one of the
three with a codec drawn at random. `heddle data cat` must give each number, as f32. Prints a line for each
table that differs, then counts. Exit 77 without the packages. Needs no network.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

try:
	import duckdb
	import fastparquet
	import numpy as np
	import polars as pl
except ImportError as e:
	print('skip:', e)
	sys.exit(77)


def f32(v):
	return float(np.float32(v))


def table(rnd, n):
	wide = rnd.random() < 0.5
	return {
		'i': [rnd.randint(-(2**40), 2**40) if wide else rnd.randint(0, 3) for _ in range(n)],
		'f': [rnd.gauss(0, 1) for _ in range(n)],
		'b': [rnd.random() < 0.5 for _ in range(n)],
		'l': [[rnd.randint(-9, 9) for _ in range(4)] for _ in range(n)],
		't': [rnd.choice(['a', 'bé', '', 'long text ' * 3]) for _ in range(n)],
		'label': [rnd.randint(0, 2) for _ in range(n)],
	}


def by_polars(rnd, df, path):
	codec = rnd.choice(['zstd', 'snappy', 'gzip', 'lz4', 'uncompressed'])
	if rnd.random() < 0.3:
		df = df.with_columns(pl.col('l').cast(pl.Array(pl.Int64, 4)))
	df.write_parquet(path, compression=codec, row_group_size=rnd.choice([None, 7, 1000]))
	return ['i', 'f', 'b', 'l'], codec


def by_duckdb(rnd, df, path):
	codec, version = rnd.choice(['snappy', 'zstd', 'gzip', 'lz4_raw']), rnd.choice(['V1', 'V2'])
	options = f'FORMAT parquet, COMPRESSION {codec}, PARQUET_VERSION {version}, ROW_GROUP_SIZE 2048'
	duckdb.sql(f"COPY df TO '{path}' ({options})")
	return ['i', 'f', 'b', 'l'], codec + ' ' + version


def by_fastparquet(rnd, df, path):
	codec = rnd.choice(['SNAPPY', 'GZIP', 'ZSTD', 'UNCOMPRESSED'])
	fastparquet.write(path, df.drop('l').to_pandas(), compression=codec)
	return ['i', 'f', 'b'], codec


def cat(heddle, folder, path, columns, width, n):
	job = {
		'job': {'steps': 1},
		'model': {'use': 'builtin:mlp', 'args': {'input': [width], 'hidden': [1], 'classes': 3}},
		'data': {'kind': 'parquet', 'path': path, 'columns': columns, 'label': 'label'},
		'batch': {'global': 1, 'virtual_nodes': 1},
		'optim': {'kind': 'sgd', 'lr': 0.1},
	}
	job['data']['split'] = {'train': 1, 'valid': 0}
	with open(folder + '/job.yaml', 'w') as f:
		json.dump(job, f)
	command = [heddle, 'data', 'cat', folder + '/job.yaml', '--count', str(n)]
	r = subprocess.run(command, capture_output=True, text=True)
	return [json.loads(line) for line in r.stdout.splitlines()], r.stderr.strip()


def differs(heddle, folder, rnd, write):
	n = rnd.choice([1, 3, 50, 3000])
	d = table(rnd, n)
	path = folder + '/t.parquet'
	columns, how = write(rnd, pl.DataFrame(d), path)
	want = []
	for i in range(n):
		row = [d[c][i] for c in columns]
		want.append([f32(v) for c in row for v in (c if isinstance(c, list) else [c])])
	got, err = cat(heddle, folder, path, columns, len(want[0]), n)
	rows = [([f32(v) for v in g['x']], g['y']) for g in got]
	return None if rows == list(zip(want, d['label'])) else f'{how}, {n} rows: {err[:200]}'


def main():
	p = argparse.ArgumentParser()
	p.add_argument('--tables', type=int, default=60)
	p.add_argument('heddle')
	a = p.parse_args()
	writers, equal = [by_polars, by_duckdb, by_fastparquet], {}
	for i in range(a.tables):
		write = writers[i % 3]
		with tempfile.TemporaryDirectory() as folder:
			bad = differs(os.path.abspath(a.heddle), folder, random.Random(i), write)
		equal[write.__name__] = equal.get(write.__name__, 0) + (bad is None)
		if bad:
			print(f'table {i} {write.__name__}: {bad}')
	print(f'polars {pl.__version__}, duckdb {duckdb.__version__}: of {a.tables} tables {equal} are equal')


main()
