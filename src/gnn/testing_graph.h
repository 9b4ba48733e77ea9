/* testing_graph.h -- graphs as text files in a simulated file system, and a plain reader of prepared ones
 * that shares nothing with data/prepared.c. */
#ifndef HD_GNN_TESTING_GRAPH_H
#define HD_GNN_TESTING_GRAPH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/file_sim.h"
#include "gnn/prepare.h"
#include "tests/data_files.h"

enum { TG_MOST = 400, TG_WIDTH = 24 };

/* A graph as the test knows it: by matrix, in ids of the input. */
struct known {
	uint32_t n;
	bool directed;
	bool edge[TG_MOST][TG_MOST];      /* [from][to] */
	float feature[TG_MOST][TG_WIDTH];
	int label[TG_MOST], set[TG_MOST];
	uint32_t nlines, nloops;
};

static inline uint32_t tg_draw(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((*state >> 33) % below);
}

static inline void tg_put_edges(struct known *k, struct hd_fs *fs, uint64_t *state)
{
	char *text = malloc(1 << 18), *at = text;

	at += (size_t)snprintf(at, 64, "# from to\n");
	for (uint32_t i = 0; i < k->n * 5; i++) {
		uint32_t from = tg_draw(state, k->n), to = i % 50 ? tg_draw(state, k->n) : from;
		if (to % 17 == 3)
			to = 5 % k->n;             /* a hub */
		if (from % 23 == 7 || to % 23 == 7)
			continue;                  /* vertices without an edge */
		at += (size_t)snprintf(at, 64, "%u %u\n", from, to);
		k->nlines++;
		k->nloops += from == to;
		if (from != to)
			k->edge[from][to] = true;
		if (from != to && !k->directed)
			k->edge[to][from] = true;
	}
	put_text(fs, "edges.txt", text);
	free(text);
}

static inline void tg_put_vertices(struct known *k, struct hd_fs *fs, uint64_t *state)
{
	char *text = malloc(1 << 18), *at = text;

	for (uint32_t v = 0; v < k->n; v++) {
		k->label[v] = (int)tg_draw(state, 6) - 1;
		if (v == 0)
			k->label[v] = 4;
		at += (size_t)snprintf(at, 64, "%d", k->label[v]);
		for (uint32_t c = 0; c < TG_WIDTH; c++)
			if (tg_draw(state, 4) == 0 || (v == 0 && c + 1 == TG_WIDTH)) {
				k->feature[v][c] = (float)(int)(tg_draw(state, 9) + 1) / 4;
				at += (size_t)snprintf(at, 64, " %u:%g", c, (double)k->feature[v][c]);
			}
		at += (size_t)snprintf(at, 64, "\n");
	}
	put_text(fs, "features.svm", text);
	at = text;
	for (int set = 1; set <= 3; set++) {
		static const char *const names[] = { "", "train", "val", "test" };
		at += (size_t)snprintf(at, 64, "%s", names[set]);
		for (uint32_t v = 0; v < k->n; v++)
			if (v % 5 == (uint32_t)set - 1) {
				k->set[v] = set;
				at += (size_t)snprintf(at, 64, " %u", v);
			}
		at += (size_t)snprintf(at, 64, "\n");
	}
	put_text(fs, "split.txt", text);
	free(text);
}

/* edges.txt, features.svm and split.txt. */
static inline struct known *tg_make(struct hd_fs *fs, uint32_t n, bool directed, uint64_t from)
{
	struct known *k = calloc(1, sizeof *k);

	k->n = n;
	k->directed = directed;
	tg_put_edges(k, fs, &from);
	tg_put_vertices(k, fs, &from);
	return k;
}

static inline struct hd_prepare tg_how(const struct known *k)
{
	return (struct hd_prepare){ .edges = "edges.txt", .features = "features.svm", .split = "split.txt",
		.out = "g.graph", .directed = k && k->directed, .memory_bytes = 1 << 20 };
}

static inline uint8_t *tg_bytes(struct hd_fs *fs, const char *path, size_t *len)
{
	struct hd_file file = { 0 };
	struct hd_stat stat;
	struct hd_diag diag = { "" };
	uint8_t *bytes;

	CHECK(!hd_fs_stat(fs, path, &stat, &diag) && !hd_file_open(fs, path, HD_OPEN_READ, &file, &diag),
		"%s",
		diag.text);
	CHECK((bytes = aligned_alloc(64, ((size_t)stat.size_bytes + 64) / 64 * 64)), "no memory");
	CHECK(!hd_file_read(&file, bytes, (size_t)stat.size_bytes, len, &diag) && !hd_file_close(&file,
		&diag),
		"%s", diag.text);
	return bytes;
}

/* The plain reader: a number of `size` bytes at byte i of section s, by the layout in data/prepared.h. */
static inline uint64_t tg_number(const uint8_t *bytes, size_t at, unsigned size)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < size; i++)
		v |= (uint64_t)bytes[at + i] << 8 * i;
	return v;
}

static inline uint64_t tg_offset(const uint8_t *bytes, unsigned s)
{
	return tg_number(bytes, 128 + 32 * s + 8, 8);
}

static inline uint64_t tg_len(const uint8_t *bytes, unsigned s)
{
	return tg_number(bytes, 128 + 32 * s + 16, 8);
}

static inline uint64_t tg_at(const uint8_t *bytes, unsigned s, uint64_t i, unsigned size)
{
	CHECK((i + 1) * size <= tg_len(bytes, s), "place %u of section %u", (unsigned)i, s);
	return tg_number(bytes, tg_offset(bytes, s) + i * size, size);
}

#endif
