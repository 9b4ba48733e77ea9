#include "gnn/prepare.h"

#include <errno.h>
#include <unistd.h>

#include "gnn/testing_graph.h"

/* Sections by their number in the file, as data/prepared.h lists them. */
enum { INTERVALS, IN_OFFSETS, IN_SOURCES, OUT_OFFSETS, OUT_TARGETS, IN_DEGREES, OUT_DEGREES, FEATURE_OFFSETS,
	FEATURE_COLUMNS, FEATURES, LABELS, MASKS, IDS, HALO_OFFSETS, HALO_LISTS, HALO_BYTES, BACK_OFFSETS,
	BACK_LISTS, BACK_BYTES };

static struct hd_prepared_report prepare(struct hd_fs *fs, const struct hd_prepare *how)
{
	struct hd_prepared_report report;
	struct hd_diag diag = { "" };

	CHECK(hd_prepare_graph(how, fs, &report, &diag) == HD_OK, "%s", diag.text);
	return report;
}

static uint32_t interval_of(const uint8_t *bytes, uint64_t v)
{
	uint32_t i = 0;

	while (tg_at(bytes, INTERVALS, i + 1, 8) <= v)
		i++;
	return i;
}

static void edges_are(const struct known *k, const uint8_t *bytes, unsigned offsets, unsigned far, bool in)
{
	uint64_t seen = 0, want = 0;

	for (uint32_t v = 0; v < k->n; v++) {
		uint64_t from = tg_at(bytes, offsets, v, 8), end = tg_at(bytes, offsets, v + 1, 8);
		uint32_t id = (uint32_t)tg_at(bytes, IDS, v, 4);
		CHECK(tg_at(bytes, in || !k->directed ? IN_DEGREES : OUT_DEGREES, v, 4) == end - from,
			"degree of %u", v);
		for (uint64_t e = from; e < end; e++, seen++) {
			uint32_t w = (uint32_t)tg_at(bytes, far, e, 4), other = (uint32_t)tg_at(bytes, IDS, w,
				4);
			CHECK(e == from || tg_at(bytes, far, e - 1, 4) < w, "row of %u does not ascend", v);
			CHECK(in ? k->edge[other][id] : k->edge[id][other], "no edge %u, %u", id, other);
		}
	}
	for (uint32_t v = 0; v < k->n; v++)
		for (uint32_t w = 0; w < k->n; w++)
			want += k->edge[v][w];
	CHECK(seen == want, "%u edges, not %u", (unsigned)seen, (unsigned)want);
}

static void vertices_are(const struct known *k, const uint8_t *bytes)
{
	for (uint32_t v = 0; v < k->n; v++) {
		uint32_t id = (uint32_t)tg_at(bytes, IDS, v, 4);
		float row[TG_WIDTH] = { 0 };
		for (uint64_t i = tg_at(bytes, FEATURE_OFFSETS, v, 8); i < tg_at(bytes, FEATURE_OFFSETS, v +
			1, 8);
			i++) {
			uint32_t word = (uint32_t)tg_at(bytes, FEATURES, i, 4);
			memcpy(&row[tg_at(bytes, FEATURE_COLUMNS, i, 4)], &word, sizeof word);
		}
		assert_memory_equal(row, k->feature[id], sizeof row);
		assert_int_equal((int32_t)tg_at(bytes, LABELS, v, 4), k->label[id]);
		assert_int_equal(tg_at(bytes, MASKS, v / 4, 1) >> v % 4 * 2 & 3, k->set[id]);
		CHECK(v == 0 || interval_of(bytes, v) != interval_of(bytes, v - 1) ||
			tg_at(bytes, IDS, v - 1, 4) < id, "ids of an interval ascend");
	}
}

/* Each pair of intervals: the vertices of the list, decoded here, against those that the matrix says. */
static void halo_is(const struct known *k, const uint8_t *bytes, unsigned first, bool back)
{
	uint32_t nintervals = (uint32_t)tg_number(bytes, 32, 4);

	for (uint32_t i = 0; i < nintervals; i++)
		for (uint32_t j = 0; j < nintervals; j++) {
			bool want[TG_MOST] = { false }, got[TG_MOST] = { false };
			for (uint64_t v = tg_at(bytes, INTERVALS, i, 8); i != j && v < tg_at(bytes, INTERVALS,
				i + 1, 8);
				v++)
				for (uint64_t w = tg_at(bytes, INTERVALS, j, 8);
					w < tg_at(bytes, INTERVALS, j + 1, 8); w++) {
					uint64_t a = tg_at(bytes, IDS, v, 4), b = tg_at(bytes, IDS, w, 4);
					want[v] = want[v] || (back ? k->edge[b][a] : k->edge[a][b]);
				}
			for (uint64_t l = tg_at(bytes, first, i, 8); l < tg_at(bytes, first, i + 1, 8); l++) {
				uint64_t place = tg_at(bytes, first + 1, 2 * l + 1, 8), v = tg_at(bytes,
					INTERVALS, i, 8);
				uint32_t count = (uint32_t)tg_at(bytes, first + 1, 4 * l + 1, 4);
				if (tg_at(bytes, first + 1, 4 * l, 4) != j)
					continue;
				CHECK(count, "an empty list %u, %u", i, j);
				for (uint32_t c = 0; c < count; c++, v++) {
					unsigned shift = 0;
					uint64_t byte;
					do {
						byte = tg_at(bytes, first + 2, place++, 1);
						v += (byte & 0x7f) << shift;
						shift += 7;
					} while (byte & 0x80);
					got[v] = true;
				}
			}
			CHECK(!memcmp(want, got, sizeof want), "list %u, %u%s", i, j, back ? " backward" :
				"");
		}
}

static void file_says(const struct known *k, const uint8_t *bytes, size_t len)
{
	assert_int_equal(tg_number(bytes, 16, 8), k->n);
	assert_int_equal(tg_number(bytes, 64, 8), len);
	assert_int_equal(tg_number(bytes, 40, 4), TG_WIDTH);
	assert_int_equal(tg_number(bytes, 36, 4), 5);
	assert_int_equal(tg_number(bytes, 72, 8), k->nloops);
	edges_are(k, bytes, IN_OFFSETS, IN_SOURCES, true);
	if (k->directed)
		edges_are(k, bytes, OUT_OFFSETS, OUT_TARGETS, false);
	vertices_are(k, bytes);
	halo_is(k, bytes, HALO_OFFSETS, false);
	if (k->directed)
		halo_is(k, bytes, BACK_OFFSETS, true);
}

static void a_prepared_graph_is_what_was_given(void **state)
{
	static const struct {
		uint32_t n; bool directed; enum hd_split_with with; uint32_t nintervals;
	} cases[] = {
		{ 400, false, HD_SPLIT_AUTO, 0 }, { 400, true, HD_SPLIT_AUTO, 0 }, { 300, false, HD_SPLIT_OWN, 64 },
		{ 301, true, HD_SPLIT_OWN, 4 }, { 40, false, HD_SPLIT_OWN, 1 }, { 17, true, HD_SPLIT_AUTO, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_prepared_file file = { 0 };
		struct hd_diag diag = { "" };
		struct hd_fs_sim sim;
		size_t len;

		hd_fs_sim_init(&sim);
		struct known *k = tg_make(&sim.fs, cases[i].n, cases[i].directed, 7 + i);
		struct hd_prepare how = tg_how(k);
		how.with = cases[i].with;
		how.nintervals = cases[i].nintervals;
		prepare(&sim.fs, &how);
		uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len);
		file_says(k, bytes, len);
		CHECK(hd_prepared_open(&file, &sim.fs, "g.graph", true, &diag) == HD_OK, "%s", diag.text);
		hd_prepared_close(&file);
		free(bytes);
		free(k);
		hd_fs_sim_finish(&sim);
	}
}

/* Lines in another order, doubled and, without directions, turned round; memory of one MiB or of many. */
static void bytes_follow(bool directed)
{
	struct hd_fs_sim sim;
	size_t len, again_len;
	char *text = malloc(1 << 22), *at = text;
	uint64_t seed = 3;

	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 350, directed, 11);
	struct hd_prepare how = tg_how(k);
	prepare(&sim.fs, &how);
	uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len);
	for (uint32_t i = 0; i < 100000; i++) {
		uint32_t v = tg_draw(&seed, k->n), w = tg_draw(&seed, k->n);
		if (k->edge[v][w])
			at += (size_t)snprintf(at, 64, "%u\t%u\n", v, w);
	}
	for (uint32_t copy = 0; copy < 40; copy++)
		for (uint32_t v = 0; v < k->n; v++)
			for (uint32_t w = 0; w < k->n; w++)
				if (k->edge[v][w] && (directed || v > w))
					at += (size_t)snprintf(at, 64, "%u %u\n", v, w);
	put_text(&sim.fs, "edges.txt", text);
	for (int big = 0; big < 2; big++) {
		how.memory_bytes = big ? 64 << 20 : 1 << 20;
		struct hd_prepared_report report = prepare(&sim.fs, &how);
		CHECK(big ? report.nscratch_bytes == 0 : report.nscratch_bytes > 0, "%u bytes of scratch",
			(unsigned)report.nscratch_bytes);
		uint8_t *again = tg_bytes(&sim.fs, "g.graph", &again_len);
		assert_int_equal(len, again_len);
		/* the head alone counts what was left out */
		assert_memory_equal(bytes + 4096, again + 4096, len - 4096);
		assert_memory_equal(bytes + 128, again + 128, 3900);
		free(again);
	}
	free(bytes);
	free(text);
	free(k);
	hd_fs_sim_finish(&sim);
}

static void the_bytes_follow_from_the_graph_alone(void **state)
{
	(void)state;
	bytes_follow(false);
	bytes_follow(true);
}

/* A byte of each section turned: the section is named. */
static void a_damaged_section_is_named(void **state)
{
	static const char *const names[] = {
#define X(id, name) name,
		HD_PREPARED_SECTIONS(X)
#undef X
	};
	struct hd_fs_sim sim;
	size_t len;

	(void)state;
	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 400, true, 5);
	struct hd_prepare how = tg_how(k);
	prepare(&sim.fs, &how);
	uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len);
	for (unsigned s = 0; s < HD_PREPARED_NSECTIONS; s++) {
		struct hd_prepared graph;
		struct hd_diag diag = { "" };
		uint64_t at = tg_offset(bytes, s) + tg_len(bytes, s) / 2;
		assert_true(tg_len(bytes, s) > 0);
		bytes[at] ^= 0x10;
		assert_int_equal(hd_prepared_view(bytes, len, "g", &graph, &diag), HD_OK);
		assert_int_equal(hd_prepared_check(&graph, "g", &diag), HD_E_INTEGRITY);
		CHECK(strstr(diag.text, names[s]) && strstr(diag.text, "prepare the graph again"), "%s",
			diag.text);
		bytes[at] ^= 0x10;
	}
	for (size_t at = 0; at < 4096; at += 7) {
		struct hd_prepared graph;
		bytes[at] ^= 1;
		enum hd_err err = hd_prepared_view(bytes, len, "g", &graph, NULL);
		CHECK(err == (at < 12 ? HD_E_INPUT : HD_E_INTEGRITY), "byte %zu of the head: %d", at,
			(int)err);
		bytes[at] ^= 1;
	}
	free(bytes);
	free(k);
	hd_fs_sim_finish(&sim);
}

/* What another program might write: right digests around wrong content. */
static void seal(uint8_t *bytes)
{
	for (unsigned s = 0; s < HD_PREPARED_NSECTIONS; s++) {
		uint64_t digest = tg_len(bytes, s) ? hd_hash64(bytes + tg_offset(bytes, s), tg_len(bytes,
			s)) : 0;
		store_le(bytes + 128 + 32 * s + 24, digest, 8);
	}
	struct hd_hash hash = hd_hash(bytes, 4080);
	memcpy(bytes + 4080, hash.byte, 16);
}

static void content_against_the_rules_is_refused(void **state)
{
	static const struct {
		unsigned section; uint64_t place; unsigned size; int64_t add; const char *says;
	}
	cases[] = {
		{ INTERVALS, 1, 8, 1, "ids of the input" }, { INTERVALS, 0, 8, 1, "\"intervals\"" },
		{ IN_OFFSETS, 0, 8, 1, "offsets of in-edges" }, { IN_OFFSETS, 400, 8, 1, "offsets of in-edges" },
		{ IN_OFFSETS, 9, 8, 1000000, "offsets of in-edges" },
		{ IN_SOURCES, 0, 4, 400, "sources of in-edges" }, { OUT_TARGETS, 3, 4, 100000, "targets of out-edges" },
		{ IN_DEGREES, 17, 4, 1, "in-degrees" }, { OUT_DEGREES, 17, 4, -1, "out-degrees" },
		{ FEATURE_OFFSETS, 5, 8, 1 << 20, "offsets of features" },
		{ FEATURE_COLUMNS, 9, 4, 24, "columns of features" }, { FEATURES, 3, 4, 0x7f800000, "\"features\"" },
		{ LABELS, 2, 4, 7, "\"labels\"" }, { LABELS, 2, 4, -9, "\"labels\"" },
		{ IDS, 5, 4, 400, "ids of the input" }, { HALO_OFFSETS, 3, 8, 1, "halo lists" },
		{ HALO_LISTS, 1, 4, 1, "\"halo lists\"" }, { HALO_BYTES, 0, 1, 1, "bytes of halo lists" },
		{ BACK_LISTS, 0, 4, 1, "backward halo lists" }, { BACK_BYTES, 2, 1, 3, "bytes of backward halo" },
	};
	struct hd_fs_sim sim;
	size_t len;

	(void)state;
	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 400, true, 5);
	struct hd_prepare how = tg_how(k);
	prepare(&sim.fs, &how);
	uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len), *bad = aligned_alloc(64, (len + 63) / 64 * 64);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_prepared graph;
		struct hd_diag diag = { "" };
		memcpy(bad, bytes, len);
		uint64_t was = tg_at(bad, cases[i].section, cases[i].place, cases[i].size);
		store_le(bad + tg_offset(bad, cases[i].section) + cases[i].place * cases[i].size,
			cases[i].section == FEATURES ? (uint64_t)cases[i].add : was + (uint64_t)cases[i].add,
			cases[i].size);
		seal(bad);
		CHECK(!hd_prepared_view(bad, len, "g", &graph, &diag), "case %zu: %s", i, diag.text);
		CHECK(hd_prepared_check(&graph, "g", &diag) == HD_E_INPUT && strstr(diag.text, cases[i].says),
			"case %zu: '%s' should hold '%s'", i, diag.text, cases[i].says);
	}
	free(bad);
	free(bytes);
	free(k);
	hd_fs_sim_finish(&sim);
}

/* An edge that its other end does not have, where degrees, order and halo lists stay right. */
static void an_edge_of_one_end_alone_is_refused(void **state)
{
	struct hd_fs_sim sim;
	size_t len;
	uint32_t v = 0;

	(void)state;
	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 40, false, 9);
	struct hd_prepare how = tg_how(k);
	how.nintervals = 1;
	prepare(&sim.fs, &how);
	uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len);
	struct hd_prepared graph;
	struct hd_diag diag = { "" };
	for (;; v++) {
		uint64_t end = tg_at(bytes, IN_OFFSETS, v + 1, 8);
		if (end == tg_at(bytes, IN_OFFSETS, v, 8) || tg_at(bytes, IN_SOURCES, end - 1, 4) + 1 >=
			k->n ||
			tg_at(bytes, IN_SOURCES, end - 1, 4) + 1 == v)
			continue;
		store_le(bytes + tg_offset(bytes, IN_SOURCES) + 4 * (end - 1),
			tg_at(bytes, IN_SOURCES, end - 1, 4) + 1, 4);
		break;
	}
	seal(bytes);
	assert_int_equal(hd_prepared_view(bytes, len, "g", &graph, &diag), HD_OK);
	assert_int_equal(hd_prepared_check(&graph, "g", &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "sources of in-edges"), "%s", diag.text);
	free(bytes);
	free(k);
	hd_fs_sim_finish(&sim);
}

static size_t failed_call(const struct hd_fs_sim *sim)
{
	size_t at = sim->n_log;

	while (at-- > 0 && sim->log[at].result != -ENOSPC)
		;
	return at;
}

static const char *const scratch[] = { "g.graph.tmp.in", "g.graph.tmp.both", "g.graph.tmp.sort",
	"g.graph.tmp.sort2", "g.graph.tmp" };
enum { NSCRATCH = sizeof scratch / sizeof scratch[0] };

/* The first thing that is done to the locked file, since a record of the log. */
static bool was_taken(const struct hd_fs_sim *sim, size_t since)
{
	while (since < sim->n_log && sim->log[since].call != HD_FS_TRUNCATE)
		since++;
	return since < sim->n_log;
}

/* Each `step`-th call of the file system fails, as on a full disk: the old graph stays, nothing is left but
 * an empty file that was not locked yet. */
static void full_disk(const char *edges, uint64_t step, uint64_t least)
{
	struct hd_prepared_report report;
	struct hd_fs_sim sim;
	size_t len, again_len;
	uint64_t call = 1, nold = 0;
	enum hd_err err;

	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 60, true, 2);
	struct hd_prepare how = tg_how(k);
	prepare(&sim.fs, &how);
	uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len);
	put_text(&sim.fs, "edges.txt", edges);
	do {
		struct hd_diag diag = { "" };
		struct hd_stat stat;
		size_t since = sim.n_log;
		hd_fs_sim_fail(&sim, call, ENOSPC, false);
		err = hd_prepare_graph(&how, &sim.fs, &report, &diag);
		bool struck = sim.fail_at <= sim.calls;
		hd_fs_sim_fail(&sim, 0, 0, false);
		if (!struck)
			break;
		CHECK(err == HD_OK || *diag.text, "call %u: %d without a word", (unsigned)call, (int)err);
		uint8_t *again = tg_bytes(&sim.fs, "g.graph", &again_len);
		bool old = again_len == len && !memcmp(again, bytes, len);
		free(again);
		bool unlinked = sim.log[failed_call(&sim)].call != HD_FS_REMOVE;
		size_t n = was_taken(&sim, since) ? NSCRATCH : NSCRATCH - 1;
		for (size_t i = 0; err && unlinked && i < n; i++)
			CHECK(hd_fs_stat(&sim.fs, scratch[i], &stat, NULL) == HD_E_NOTFOUND, "call %u: %s "
				"stays",
				(unsigned)call, scratch[i]);
		nold += old;
		if (!old) {
			struct hd_prepared_file file = { 0 };
			CHECK(!hd_prepared_open(&file, &sim.fs, "g.graph", true, &diag), "%s", diag.text);
			hd_prepared_close(&file);
			put_file(&sim.fs, "g.graph", bytes, len);
		}
		call += step;
	} while (call < 2000);
	assert_int_equal(err, HD_OK);
	CHECK(call > least && nold > least / step, "%u calls, %u left the old graph", (unsigned)call,
		(unsigned)nold);
	free(bytes);
	free(k);
	hd_fs_sim_finish(&sim);
}

static void a_full_disk_loses_nothing(void **state)
{
	(void)state;
	full_disk("0 1\n1 2\n3 4\n", 1, 30);
}

/* More edges than memory holds: sorted runs are among what fails. */
static void a_full_disk_while_runs_are_written_loses_nothing(void **state)
{
	char *text = malloc(1 << 20), *at = text;

	(void)state;
	for (uint32_t i = 0; i < 70000; i++)
		at += (size_t)snprintf(at, 64, "%u %u\n", i % 59, i * 7 % 60);
	full_disk(text, 9, 40);
	free(text);
}

/* What another process holds is neither read nor emptied. */
static void a_file_that_another_process_prepares_is_left_alone(void **state)
{
	struct hd_prepared_report report;
	struct hd_file other = { 0 };
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;
	size_t len;

	(void)state;
	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 60, false, 2);
	struct hd_prepare how = tg_how(k);
	put_text(&sim.fs, "g.graph.tmp", "of another process");
	assert_int_equal(hd_file_open(&sim.fs, "g.graph.tmp", HD_OPEN_WRITE, &other, &diag), HD_OK);
	assert_int_equal(hd_file_lock(&other, &diag), HD_OK);
	assert_int_equal(hd_prepare_graph(&how, &sim.fs, &report, &diag), HD_E_AGAIN);
	CHECK(strstr(diag.text, "another process prepares g.graph"), "%s", diag.text);
	uint8_t *bytes = tg_bytes(&sim.fs, "g.graph.tmp", &len);
	CHECK(len == 18 && !memcmp(bytes, "of another process", len), "%zu bytes", len);
	free(bytes);
	assert_int_equal(hd_file_close(&other, &diag), HD_OK);
	prepare(&sim.fs, &how);            /* it was killed: its file is taken */
	bytes = tg_bytes(&sim.fs, "g.graph", &len);
	file_says(k, bytes, len);
	free(bytes);
	free(k);
	hd_fs_sim_finish(&sim);
}

static const struct hd_fs_ops *sim_ops;
static bool a_third_begins;

/* Another process ends between the open and the lock, and a third one may begin. */
static int lock_late(struct hd_fs *fs, int id, bool shared)
{
	assert_int_equal(sim_ops->rename(fs, "g.graph.tmp", "g.graph"), 0);
	if (a_third_begins)
		CHECK(sim_ops->open(fs, NULL, "g.graph.tmp", HD_OPEN_WRITE | HD_OPEN_CREATE) >= 0, "no file");
	return sim_ops->file.lock(fs, id, shared);
}

static void a_lock_on_a_file_that_got_its_name_is_no_lock(void **state)
{
	struct hd_prepared_report report;
	struct hd_fs_sim sim;
	size_t len;

	(void)state;
	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 60, false, 2);
	struct hd_prepare how = tg_how(k);
	struct hd_fs_ops ops = *sim.fs.ops;
	sim_ops = sim.fs.ops;
	ops.file.lock = lock_late;
	sim.fs.ops = &ops;
	for (int third = 0; third < 2; third++) {
		struct hd_diag diag = { "" };
		a_third_begins = third;
		put_text(&sim.fs, "g.graph.tmp", "made by another process");
		assert_int_equal(hd_prepare_graph(&how, &sim.fs, &report, &diag), HD_E_AGAIN);
		CHECK(strstr(diag.text, "another process prepares g.graph"), "%s", diag.text);
		uint8_t *bytes = tg_bytes(&sim.fs, "g.graph", &len);
		CHECK(len == 23 && !memcmp(bytes, "made by another process", len), "%zu bytes", len);
		free(bytes);
	}
	free(k);
	hd_fs_sim_finish(&sim);
}

static void look_for_scratch(void *user, const char *what, uint64_t done, uint64_t all)
{
	struct hd_fs *fs = user;
	struct hd_stat stat;

	(void)done, (void)all;
	for (size_t i = 0; i < NSCRATCH - 1; i++)
		CHECK(hd_fs_stat(fs, scratch[i], &stat, NULL) == HD_E_NOTFOUND, "%s: %s would stay", what,
			scratch[i]);
}

static void a_killed_process_leaves_one_file_alone(void **state)
{
	struct hd_fs_sim sim;

	(void)state;
	hd_fs_sim_init(&sim);
	struct known *k = tg_make(&sim.fs, 60, true, 2);
	struct hd_prepare how = tg_how(k);
	how.progress = look_for_scratch;
	how.user = &sim.fs;
	prepare(&sim.fs, &how);
	free(k);
	hd_fs_sim_finish(&sim);
}

/* A value of vertex 3 becomes another one of equal length after the first reading. */
static void change_a_feature(void *user, const char *what, uint64_t done, uint64_t all)
{
	struct hd_fs *fs = user;
	struct hd_file file = { 0 };
	struct hd_diag diag = { "" };

	(void)all;
	if (strcmp(what, "cuts") != 0 || done != 1)
		return;
	CHECK(!hd_file_open(fs, "features.svm", HD_OPEN_WRITE, &file, &diag) && !hd_file_pwrite(&file, "7", 1,
		6 * 3 + 4, &diag) && !hd_file_close(&file, &diag), "%s", diag.text);
}

/* In the system's files: a mapping of simulated ones does not change. */
static void features_that_change_while_they_are_read_are_refused(void **state)
{
	char folder[] = "/tmp/heddle_graph_XXXXXX", was[HD_PATH_CAP];
	struct hd_fs fs;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_non_null(getcwd(was, sizeof was));
	assert_int_equal(chdir(folder), 0);
	hd_fs_real(&fs);
	put_text(&fs, "edges.txt", "0 1\n1 2\n2 3\n");
	put_text(&fs, "features.svm", "0 0:1\n1 0:2\n0 0:3\n1 0:4\n");
	put_text(&fs, "split.txt", "train 0 1 2 3\n");
	for (int change = 0; change < 2; change++) {
		struct hd_prepare how = tg_how(NULL);
		struct hd_prepared_report report;
		struct hd_diag diag = { "" };
		struct hd_stat stat;
		how.nintervals = 2;
		how.progress = change ? change_a_feature : NULL;
		how.user = &fs;
		how.out = change ? "bad.graph" : "good.graph";
		enum hd_err err = hd_prepare_graph(&how, &fs, &report, &diag);
		CHECK(err == (change ? HD_E_INTEGRITY : HD_OK), "%d: %s", (int)err, diag.text);
		CHECK(!change || strstr(diag.text, "features.svm was changed"), "%s", diag.text);
		CHECK(!hd_fs_stat(&fs, "good.graph", &stat, NULL), "it was made");
		assert_int_equal(hd_fs_stat(&fs, "bad.graph", &stat, NULL), HD_E_NOTFOUND);
	}
	assert_int_equal(chdir(was), 0);
	assert_int_equal(hd_fs_remove_tree(&fs, folder, NULL), HD_OK);
}

/* Before hours of work: none of the files that are missing is asked for. */
static void what_cannot_be_is_refused_before_it_is_read(void **state)
{
	static const struct { const char *out, *features; enum hd_split_with with; uint32_t nintervals;
		enum hd_err err; const char *says; } cases[] = {
		{ "g.graph", "none.svm", HD_SPLIT_AUTO, 3, HD_E_INVAL, "3 intervals: a power of two" },
		{ "g.graph", "none.svm", HD_SPLIT_AUTO, 8192, HD_E_INVAL, "8192 intervals: the most are 4096" },
		{ "nodir/x", "none.svm", HD_SPLIT_AUTO, 0, HD_E_NOTFOUND, "nodir/x" },
		{ "folder", "none.svm", HD_SPLIT_AUTO, 0, HD_E_INVAL, "folder is a folder" },
		{ "g.graph", "two.svm", HD_SPLIT_AUTO, 4, HD_E_INVAL, "4 intervals of 2 vertices: a power of two" },
		{ "g.graph", "none.svm", HD_SPLIT_METIS, 0, HD_E_REFUSED, "this build has no METIS" },
	};
	struct hd_fs_sim sim;

	(void)state;
	hd_fs_sim_init(&sim);
	put_folder(&sim.fs, "folder");
	put_text(&sim.fs, "two.svm", "0 0:1\n1 0:1\n");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_prepare how = { .edges = "none.txt", .features = cases[i].features,
			.split = "none.txt", .out = cases[i].out, .memory_bytes = 1 << 20,
			.with = cases[i].with, .nintervals = cases[i].nintervals };
		struct hd_prepared_report report;
		struct hd_diag diag = { "" };
		if (cases[i].with == HD_SPLIT_METIS && hd_split_metis_built())
			continue;
		enum hd_err err = hd_prepare_graph(&how, &sim.fs, &report, &diag);
		CHECK(err == cases[i].err && strstr(diag.text, cases[i].says), "case %zu: %d, '%s'", i,
			(int)err, diag.text);
	}
	hd_fs_sim_finish(&sim);
}

static void bad_input_is_refused_with_its_place(void **state)
{
	static const struct { const char *edges, *features, *split; uint32_t nclasses; enum hd_err err;
		const char *says; } cases[] = {
		{ "0 1\n", "0 0:1\n1 0:1\n", "val 1\n", 0, HD_E_INPUT, "no vertex of the training set has a label" },
		{ "0 1\n", "-1 0:1\n1 0:1\n", "train 0\n", 0, HD_E_INPUT, "no vertex of the training set" },
		{ "0 1\n", "-1 0:1\n-1 0:1\n", "train 0\n", 0, HD_E_INPUT,
			"no vertex has a label: there is nothing to train on; --labels FILE" },
		{ "0 1\n", "0 0:1\n3 0:1\n", "train 0\n", 3, HD_E_INPUT, "features.svm:2: label 3, of 3 classes" },
		{ "0 1\n", "0\n1\n", "train 0\n", 0, HD_E_INPUT, "no vertex has a feature" },
		{ "0 2\n", "0 0:1\n1 0:1\n", "train 0\n", 0, HD_E_INPUT, "edges.txt:1: vertex 2, but the features" },
		{ "0 1\n", "0 0:1\n1 0:1\n", "train 2\n", 0, HD_E_INPUT, "split.txt:1: vertex 2" },
		{ "0 1\n", "0 0:1\n1 0:1\n", "train 0\ntest 0\n", 0, HD_E_INPUT, "split.txt:2: vertex 0 is in" },
		{ "", "0 0:1\n", "train 0\n", 0, HD_E_INPUT, "edges.txt is empty" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hd_prepare how = tg_how(NULL);
		struct hd_prepared_report report;
		struct hd_diag diag = { "" };
		struct hd_fs_sim sim;
		struct hd_stat stat;

		hd_fs_sim_init(&sim);
		put_text(&sim.fs, "edges.txt", cases[i].edges);
		put_text(&sim.fs, "features.svm", cases[i].features);
		put_text(&sim.fs, "split.txt", cases[i].split);
		how.nclasses = cases[i].nclasses;
		enum hd_err err = hd_prepare_graph(&how, &sim.fs, &report, &diag);
		CHECK(err == cases[i].err && strstr(diag.text, cases[i].says), "case %zu: %d, '%s'", i,
			(int)err,
			diag.text);
		assert_int_equal(hd_fs_stat(&sim.fs, "g.graph", &stat, NULL), HD_E_NOTFOUND);
		hd_fs_sim_finish(&sim);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prepared_graph_is_what_was_given),
		cmocka_unit_test(the_bytes_follow_from_the_graph_alone),
		cmocka_unit_test(a_damaged_section_is_named),
		cmocka_unit_test(content_against_the_rules_is_refused),
		cmocka_unit_test(an_edge_of_one_end_alone_is_refused),
		cmocka_unit_test(a_full_disk_loses_nothing),
		cmocka_unit_test(a_full_disk_while_runs_are_written_loses_nothing),
		cmocka_unit_test(a_file_that_another_process_prepares_is_left_alone),
		cmocka_unit_test(a_lock_on_a_file_that_got_its_name_is_no_lock),
		cmocka_unit_test(a_killed_process_leaves_one_file_alone),
		cmocka_unit_test(features_that_change_while_they_are_read_are_refused),
		cmocka_unit_test(what_cannot_be_is_refused_before_it_is_read),
		cmocka_unit_test(bad_input_is_refused_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
