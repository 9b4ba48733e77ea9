#include "data/prepared.h"

#include <string.h>

#include "base/checked.h"
#include "base/le.h"

enum { AT_MAGIC = 0, AT_VERSION = 8, AT_SECTIONS = 12, AT_VERTICES = 16, AT_EDGES = 24, AT_INTERVALS = 32,
	AT_CLASSES = 36, AT_WIDTH = 40, AT_FLAGS = 44, AT_SPLITTER = 48, AT_ZERO = 52, AT_SEED = 56,
	AT_FILE = 64, AT_LOOPS = 72, AT_DUPLICATES = 80, AT_TABLE = 128, ROW = 32,
	AT_DIGEST = HD_PREPARED_HEAD - 16 };
static const uint8_t magic[8] = { 'H', 'D', 'G', 'R', 'A', 'P', 'H', 0 };
_Static_assert(AT_TABLE + ROW * HD_PREPARED_NSECTIONS <= AT_DIGEST, "the head holds a row for each section");

const char *hd_prepared_section_text(enum hd_prepared_section section)
{
	static const char *const text[] = {
#define X(id, name) name,
		HD_PREPARED_SECTIONS(X)
#undef X
	};

	return (unsigned)section < HD_PREPARED_NSECTIONS ? text[section] : "?";
}

static bool times(uint64_t n, uint64_t size, uint64_t *bytes) { return hd_mul_u64(n, size, bytes); }

bool hd_prepared_sizes(const struct hd_prepared_head *head, uint64_t bytes[HD_PREPARED_NSECTIONS])
{
	uint64_t n = head->nvertices, v = head->nintervals, cells = 0;
	bool ok = n < UINT32_MAX && v < UINT32_MAX && times(n, head->width, &cells);

	for (int s = 0; s < HD_PREPARED_NSECTIONS; s++)
		bytes[s] = 0;
	if (!ok)
		return false;
	bytes[HD_PREPARED_INTERVALS] = bytes[HD_PREPARED_HALO_OFFSETS] = (v + 1) * 8;
	bytes[HD_PREPARED_IN_OFFSETS] = (n + 1) * 8;
	bytes[HD_PREPARED_IN_DEGREES] = bytes[HD_PREPARED_LABELS] = bytes[HD_PREPARED_IDS] = n * 4;
	bytes[HD_PREPARED_MASKS] = (n + 3) / 4;
	ok = times(head->nedges, 4, &bytes[HD_PREPARED_IN_SOURCES]);
	if (head->directed) {
		bytes[HD_PREPARED_OUT_OFFSETS] = (n + 1) * 8;
		bytes[HD_PREPARED_OUT_TARGETS] = bytes[HD_PREPARED_IN_SOURCES];
		bytes[HD_PREPARED_OUT_DEGREES] = n * 4;
		bytes[HD_PREPARED_BACK_OFFSETS] = (v + 1) * 8;
		bytes[HD_PREPARED_BACK_LISTS] = head->section[HD_PREPARED_BACK_LISTS].bytes;
		bytes[HD_PREPARED_BACK_BYTES] = head->section[HD_PREPARED_BACK_BYTES].bytes;
	}
	if (head->sparse) {
		bytes[HD_PREPARED_FEATURE_OFFSETS] = (n + 1) * 8;
		bytes[HD_PREPARED_FEATURE_COLUMNS] = bytes[HD_PREPARED_FEATURES] =
			head->section[HD_PREPARED_FEATURES].bytes;
	} else {
		ok = ok && times(cells, 4, &bytes[HD_PREPARED_FEATURES]);
	}
	bytes[HD_PREPARED_HALO_LISTS] = head->section[HD_PREPARED_HALO_LISTS].bytes;
	bytes[HD_PREPARED_HALO_BYTES] = head->section[HD_PREPARED_HALO_BYTES].bytes;
	return ok;
}

bool hd_prepared_place(struct hd_prepared_head *head)
{
	const uint64_t most = UINT64_C(1) << 62;
	uint64_t at = HD_PREPARED_HEAD;

	head->file_bytes = at;
	for (int s = 0; s < HD_PREPARED_NSECTIONS; s++) {
		at = (at + HD_PREPARED_ALIGN - 1) / HD_PREPARED_ALIGN * HD_PREPARED_ALIGN;
		head->section[s].offset = at;
		if (head->section[s].bytes > most - at)
			return false;
		at += head->section[s].bytes;
		if (head->section[s].bytes)
			head->file_bytes = at;
	}
	return true;
}

void hd_prepared_put_head(const struct hd_prepared_head *head, uint8_t bytes[HD_PREPARED_HEAD])
{
	memset(bytes, 0, HD_PREPARED_HEAD);
	memcpy(bytes + AT_MAGIC, magic, sizeof magic);
	hd_put32(bytes + AT_VERSION, HD_PREPARED_VERSION);
	hd_put32(bytes + AT_SECTIONS, HD_PREPARED_NSECTIONS);
	hd_put64(bytes + AT_VERTICES, head->nvertices);
	hd_put64(bytes + AT_EDGES, head->nedges);
	hd_put32(bytes + AT_INTERVALS, head->nintervals);
	hd_put32(bytes + AT_CLASSES, head->nclasses);
	hd_put32(bytes + AT_WIDTH, head->width);
	hd_put32(bytes + AT_FLAGS, (head->directed ? HD_PREPARED_DIRECTED : 0u) |
		(head->sparse ? HD_PREPARED_SPARSE : 0u));
	hd_put32(bytes + AT_SPLITTER, head->splitter);
	hd_put64(bytes + AT_SEED, head->seed);
	hd_put64(bytes + AT_FILE, head->file_bytes);
	hd_put64(bytes + AT_LOOPS, head->nloops);
	hd_put64(bytes + AT_DUPLICATES, head->nduplicates);
	for (int s = 0; s < HD_PREPARED_NSECTIONS; s++) {
		uint8_t *row = bytes + AT_TABLE + (ptrdiff_t)ROW * s;
		hd_put32(row, (uint32_t)s);
		hd_put64(row + 8, head->section[s].offset);
		hd_put64(row + 16, head->section[s].bytes);
		hd_put64(row + 24, head->section[s].digest);
	}
	struct hd_hash hash = hd_hash(bytes, AT_DIGEST);
	memcpy(bytes + AT_DIGEST, hash.byte, sizeof hash.byte);
}

static void get_head(const uint8_t *bytes, struct hd_prepared_head *head)
{
	uint32_t flags = hd_get32(bytes + AT_FLAGS);

	*head = (struct hd_prepared_head){
		.nvertices = hd_get64(bytes + AT_VERTICES), .nedges = hd_get64(bytes + AT_EDGES),
		.nintervals = hd_get32(bytes + AT_INTERVALS), .nclasses = hd_get32(bytes + AT_CLASSES),
		.width = hd_get32(bytes + AT_WIDTH), .directed = flags & HD_PREPARED_DIRECTED,
		.sparse = flags & HD_PREPARED_SPARSE,
		.splitter = (enum hd_graph_splitter)hd_get32(bytes + AT_SPLITTER),
		.seed = hd_get64(bytes + AT_SEED), .file_bytes = hd_get64(bytes + AT_FILE),
		.nloops = hd_get64(bytes + AT_LOOPS), .nduplicates = hd_get64(bytes + AT_DUPLICATES),
	};
	for (int s = 0; s < HD_PREPARED_NSECTIONS; s++) {
		const uint8_t *row = bytes + AT_TABLE + (ptrdiff_t)ROW * s;
		head->section[s].offset = hd_get64(row + 8);
		head->section[s].bytes = hd_get64(row + 16);
		head->section[s].digest = hd_get64(row + 24);
	}
}

/* What is read, written again, is the same bytes: so nothing in the head is not understood. */
static bool whole_head(const uint8_t *bytes, const struct hd_prepared_head *head)
{
	uint8_t again[HD_PREPARED_HEAD];

	hd_prepared_put_head(head, again);
	return memcmp(bytes, again, sizeof again) == 0;
}

static bool numbers_ok(const struct hd_prepared_head *head)
{
	uint32_t v = head->nintervals;

	return head->nvertices && v && !(v & (v - 1)) && v <= HD_PREPARED_INTERVALS_CAP &&
		v <= head->nvertices && head->nclasses && head->nclasses <= HD_PREPARED_CLASSES_CAP &&
		head->width && head->splitter <= HD_SPLITTER_METIS &&
		head->section[HD_PREPARED_FEATURES].bytes % 4 == 0 &&
		head->section[HD_PREPARED_HALO_LISTS].bytes % sizeof(struct hd_halo_list) == 0 &&
		head->section[HD_PREPARED_BACK_LISTS].bytes % sizeof(struct hd_halo_list) == 0;
}

static bool sections_ok(const struct hd_prepared_head *head)
{
	uint64_t bytes[HD_PREPARED_NSECTIONS];
	struct hd_prepared_head placed = *head;

	if (!hd_prepared_sizes(head, bytes) || !hd_prepared_place(&placed) ||
		placed.file_bytes != head->file_bytes)
		return false;
	for (int s = 0; s < HD_PREPARED_NSECTIONS; s++)
		if (bytes[s] != head->section[s].bytes || placed.section[s].offset != head->section[s].offset)
			return false;
	return true;
}

static const void *at(const uint8_t *bytes, const struct hd_prepared_head *head, enum hd_prepared_section s)
{
	return bytes + head->section[s].offset;
}

static void point(const uint8_t *bytes, struct hd_prepared *graph)
{
	const struct hd_prepared_head *head = &graph->head;
	bool directed = head->directed;

	graph->interval = at(bytes, head, HD_PREPARED_INTERVALS);
	graph->in.offset = at(bytes, head, HD_PREPARED_IN_OFFSETS);
	graph->in.at = at(bytes, head, HD_PREPARED_IN_SOURCES);
	graph->out = graph->in;
	if (directed) {
		graph->out.offset = at(bytes, head, HD_PREPARED_OUT_OFFSETS);
		graph->out.at = at(bytes, head, HD_PREPARED_OUT_TARGETS);
	}
	graph->in_degree = at(bytes, head, HD_PREPARED_IN_DEGREES);
	graph->out_degree = at(bytes, head, directed ? HD_PREPARED_OUT_DEGREES : HD_PREPARED_IN_DEGREES);
	if (head->sparse) {
		graph->feature_offset = at(bytes, head, HD_PREPARED_FEATURE_OFFSETS);
		graph->feature_column = at(bytes, head, HD_PREPARED_FEATURE_COLUMNS);
	}
	graph->feature = at(bytes, head, HD_PREPARED_FEATURES);
	graph->label = at(bytes, head, HD_PREPARED_LABELS);
	graph->mask = at(bytes, head, HD_PREPARED_MASKS);
	graph->id = at(bytes, head, HD_PREPARED_IDS);
	graph->halo = (struct hd_halo){ at(bytes, head, HD_PREPARED_HALO_OFFSETS),
		at(bytes, head, HD_PREPARED_HALO_LISTS), at(bytes, head, HD_PREPARED_HALO_BYTES) };
	graph->halo_back = graph->halo;
	if (directed)
		graph->halo_back = (struct hd_halo){ at(bytes, head, HD_PREPARED_BACK_OFFSETS),
			at(bytes, head, HD_PREPARED_BACK_LISTS), at(bytes, head, HD_PREPARED_BACK_BYTES) };
}

enum hd_err hd_prepared_view(const uint8_t *bytes, size_t len, const char *name, struct hd_prepared *graph,
	struct hd_diag *diag)
{
	struct hd_prepared got = { 0 };

	if (len < HD_PREPARED_HEAD || memcmp(bytes, magic, sizeof magic) != 0)
		return hd_fail(diag, HD_E_INPUT, "%s is no prepared graph: make one with "
			"`heddle data prepare-graph`", name);
	if (hd_get32(bytes + AT_VERSION) != HD_PREPARED_VERSION)
		return hd_fail(diag, HD_E_INPUT, "%s is a prepared graph of version %u, this program reads "
			"%d: "
			"prepare it again", name, hd_get32(bytes + AT_VERSION), HD_PREPARED_VERSION);
	got.digest = hd_hash(bytes, AT_DIGEST);
	if (memcmp(got.digest.byte, bytes + AT_DIGEST, sizeof got.digest.byte) != 0)
		return hd_fail(diag, HD_E_INTEGRITY, "%s: the head has another digest than the one in it: "
			"the "
			"file was damaged; prepare the graph again", name);
	get_head(bytes, &got.head);
	if (!whole_head(bytes, &got.head) || !numbers_ok(&got.head) || !sections_ok(&got.head))
		return hd_fail(diag, HD_E_INPUT, "%s: the head of the prepared graph breaks its rules: "
			"another "
			"program wrote it; prepare the graph again", name);
	if (got.head.file_bytes != len)
		return hd_fail(diag, HD_E_INPUT, "%s has %zu bytes, its head says %llu: it is %s; copy it or "
			"prepare it again", name, len, (unsigned long long)got.head.file_bytes,
			len < got.head.file_bytes ? "cut off" : "too long");
	point(bytes, &got);
	*graph = got;
	return HD_OK;
}

void hd_prepared_count(const struct hd_prepared *graph, uint64_t count[4])
{
	memset(count, 0, 4 * sizeof *count);
	for (uint64_t v = 0; v < graph->head.nvertices; v++) {
		enum hd_graph_mask mask = hd_prepared_mask(graph->mask, v);
		count[mask] += mask != HD_GRAPH_TRAIN || graph->label[v] >= 0;
	}
}

/* ---- files */

enum hd_err hd_prepared_open(struct hd_prepared_file *file, struct hd_fs *fs, const char *path, bool check,
	struct hd_diag *diag)
{
	struct hd_prepared_file got = { .fs = fs };
	struct hd_file at = { 0 };
	enum hd_err err = hd_file_open(fs, path, HD_OPEN_READ, &at, diag);

	if (err)
		return err;
	err = hd_file_map(&at, &got.map, diag);
	enum hd_err closed = hd_file_close(&at, err ? NULL : diag);
	err = err ? err : closed;
	if (!err)
		err = hd_prepared_view(got.map.bytes, got.map.len, path, &got.graph, diag);
	if (!err && check)
		err = hd_prepared_check(&got.graph, path, diag);
	if (err)
		hd_prepared_close(&got);
	else
		*file = got;
	return err;
}

void hd_prepared_close(struct hd_prepared_file *file)
{
	if (file->fs)
		hd_file_unmap(file->fs, &file->map);
	*file = (struct hd_prepared_file){ 0 };
}

bool hd_prepared_is(struct hd_fs *fs, const char *path)
{
	uint8_t begin[sizeof magic];
	struct hd_file file = { 0 };
	struct hd_stat stat;
	size_t got = 0;

	if (hd_fs_stat(fs, path, &stat, NULL) || stat.kind != HD_FILE_REGULAR ||
		hd_file_open(fs, path, HD_OPEN_READ, &file, NULL))
		return false;
	bool is = !hd_file_read(&file, begin, sizeof begin, &got, NULL) && got == sizeof begin &&
		memcmp(begin, magic, sizeof magic) == 0;
	return !hd_file_close(&file, NULL) && is;
}
