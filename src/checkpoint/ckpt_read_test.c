/* What a reader of checkpoints refuses, and its messages: files are changed and sealed again, so that the
 * check is tested, not the seal. */
#include "checkpoint/ckpt.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/safetensors.h"
#include "checkpoint/testing_ckpt.h"

#define AT PARENT "/step-000000003"

static const char *const data_files[] = { "model.safetensors", "optim.safetensors", "state.json" };

/* The manifest of AT made true again of its files as they are. `digest`: of the state; NULL: the one that
 * was written. */
static void seal(struct hd_fs *fs, const struct hd_manifest *was, const struct hd_hash *digest)
{
	struct hd_manifest m = *was;
	struct hd_arena arena;
	struct hd_text text;
	char path[200];
	size_t len;

	hd_arena_init(&arena, 0);
	m.info.len_bytes = 0;
	for (int i = 0; i < HD_CKPT_NFILES; i++) {
		snprintf(path, sizeof path, AT "/%s", data_files[i]);
		const uint8_t *bytes = slurp(fs, path, &arena, &len);
		m.file[i].len_bytes = len;
		m.info.len_bytes += len;
		assert_int_equal(hd_sha256(bytes, len, &m.file[i].sha256, NULL), HD_OK);
	}
	m.info.digest = digest ? *digest : m.info.digest;
	hd_text_init(&text, &arena);
	assert_int_equal(hd_manifest_print(&m, &text, NULL), HD_OK);
	spill(fs, AT "/" HD_CKPT_MANIFEST, (const uint8_t *)text.at, text.len);
	hd_arena_finish(&arena);
}

struct byte_buffer { uint8_t bytes[1 << 20]; size_t len; };

static enum hd_err put_bytes(void *context, const void *bytes, uint64_t len, struct hd_diag *diag)
{
	struct byte_buffer *b = context;

	(void)diag;
	assert_true(len <= sizeof b->bytes - b->len);
	memcpy(b->bytes + b->len, bytes, len);
	b->len += len;
	return HD_OK;
}

/* A checkpoint of step 3 in AT, whose model file holds these tensors instead. */
struct forged { struct hd_fs_sim sim; struct hd_arena arena; struct hd_manifest manifest; };

static void forge(struct forged *f, const struct hd_st_tensor *tensor, uint32_t n)
{
	static struct byte_buffer b;

	hd_fs_sim_init(&f->sim);
	hd_arena_init(&f->arena, 0);
	must_put(&f->sim.fs, 3, 0);
	assert_int_equal(hd_ckpt_manifest_read(&f->sim.fs, AT, &f->arena, &f->manifest, NULL), HD_OK);
	if (!n)
		return;
	b.len = 0;
	assert_int_equal(hd_safetensors_write(tensor, n, NULL, 0, &f->arena, put_bytes, &b, NULL), HD_OK);
	spill(&f->sim.fs, AT "/model.safetensors", b.bytes, b.len);
	seal(&f->sim.fs, &f->manifest, NULL);
}

static void forged_finish(struct forged *f)
{
	hd_arena_finish(&f->arena);
	hd_fs_sim_finish(&f->sim);
}

/* What a reader says; where it fails *info stays as it was. */
static enum hd_err load(struct forged *f, struct hd_state *state, struct hd_diag *diag)
{
	struct hd_ckpt_info info, before;

	memset(&info, 0xa5, sizeof info);
	before = info;
	*diag = (struct hd_diag){ "" };
	enum hd_err err = hd_ckpt_load(&f->sim.fs, AT, &f->arena, state, &info, diag);
	CHECK(err ? !memcmp(&info, &before, sizeof info) && *diag->text : info.step == 3, "%d %s", (int)err,
		diag->text);
	return err;
}

static void a_tensor_that_no_state_can_hold_is_named(void **unused)
{
	static const float six[6] = { 1, 2, 3, 4, 5, 6 };
	static const struct { struct hd_st_tensor tensor; const char *says; } cases[] = {
		{ { "half", HD_ST_F16, 1, { 3 }, six, NULL, 6 }, "tensor 'half' has no name, more than 6 extents, or a type not computed with" },
		{ { "deep", HD_ST_F32, 7, { 1, 1, 1, 1, 1, 1, 6 }, six, NULL, 24 }, "tensor 'deep' has no name, more than 6 extents" },
		{ { "", HD_ST_F32, 1, { 6 }, six, NULL, 24 }, "tensor '' has no name" },
		{ { "a.weight.m", HD_ST_F32, 2, { 2, 3 }, six, NULL, 24 }, "tensor 'a.weight.m' stands in another file of the checkpoint too" },
	};
	struct hd_diag diag;
	struct forged f;
	struct hd_state state;

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		forge(&f, &cases[i].tensor, 1);
		CHECK(load(&f, &state, &diag) == HD_E_INTEGRITY, "case %zu: %s", i, diag.text);
		CHECK(strstr(diag.text, cases[i].says) && strstr(diag.text, AT "/"), "case %zu: %s", i,
			diag.text);
		forged_finish(&f);
	}
}

/* Six extents, none at all, no bytes, and numbers of two bytes: all come back. */
static void tensors_of_every_kind_come_back(void **unused)
{
	static const uint16_t halves[3] = { 0x3f80, 0xc000, 0x0001 };     /* 1, -2, the least above 0 */
	static const uint32_t wide[3] = { 0x3f800000, 0xc0000000, 0x00010000 };
	static const float six[6] = { 1, 2, 3, 4, 5, 6 }, one = 7;
	const struct hd_st_tensor tensors[] = { { "half", HD_ST_BF16, 1, { 3 }, halves, NULL, 6 },
		{ "many", HD_ST_F32, 6, { 1, 2, 1, 3, 1, 1 }, six, NULL, 24 },
		{ "none", HD_ST_F32, 2, { 0, 5 }, six, NULL, 0 }, { "scalar", HD_ST_F32, 0, { 0 }, &one, NULL, 4 } };
	struct hd_diag diag;
	struct forged f;
	struct hd_state state;

	(void)unused;
	forge(&f, tensors, 4);
	assert_int_equal(load(&f, &state, &diag), HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "the digest of what it holds is"), "%s", diag.text);
	struct hd_hash digest = hd_state_digest(&state);
	seal(&f.sim.fs, &f.manifest, &digest);
	CHECK(load(&f, &state, &diag) == HD_OK, "%s", diag.text);
	/* the slot and the counters stand in other files */
	assert_int_equal(state.nentries, 4 + 3);
	const struct hd_state_entry *half = hd_state_find(&state, "half"),
		*many = hd_state_find(&state, "many");
	assert_true(half->bf16 && half->dtype == HD_F32 && half->len_bytes == 12 &&
		!memcmp(half->at, wide, 12));
	assert_true(!many->bf16 && many->rank == 6 && many->dim[1] == 2 && many->dim[3] == 3 &&
		!memcmp(many->at, six, 24));
	assert_true(hd_state_find(&state, "none")->len_bytes == 0 &&
		hd_state_find(&state, "none")->dim[1] == 5);
	assert_true(!memcmp(hd_state_find(&state, "scalar")->at, &one, 4) &&
		hd_state_find(&state, "scalar")->rank == 0);
	forged_finish(&f);
}

/* The longest piece that was read at once. */
static int64_t (*true_read)(struct hd_fs *fs, int id, void *bytes, size_t len, int64_t offset);
static size_t longest;

static int64_t measured_read(struct hd_fs *fs, int id, void *bytes, size_t len, int64_t offset)
{
	longest = len > longest ? len : longest;
	return true_read(fs, id, bytes, len, offset);
}

/* A tensor of many segments is read by segments and has the digest of all its bytes. */
static void what_is_larger_than_a_segment_comes_in_pieces(void **unused)
{
	enum { SEGMENT = 65536, N = 2 * SEGMENT + 5 };
	static const int64_t lens[] = { 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT, N };
	static uint16_t halves[N];
	static float floats[N];
	struct hd_fs_ops ops;
	struct hd_diag diag;
	struct hd_state state;
	struct forged f;

	(void)unused;
	for (int i = 0; i < N; i++) {
		halves[i] = (uint16_t)(0x3f80 + i % 300);
		floats[i] = (float)i / 3;
	}
	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		const uint64_t n = (uint64_t)lens[i];
		const struct hd_st_tensor tensors[] = { { "half", HD_ST_BF16, 1, { n }, halves, NULL, 2 * n },
			{ "whole", HD_ST_F32, 1, { n }, floats, NULL, 4 * n } };
		forge(&f, tensors, 2);
		ops = *f.sim.fs.ops;
		true_read = ops.file.read;
		ops.file.read = measured_read;
		f.sim.fs.ops = &ops;
		assert_int_equal(load(&f, &state, &diag), HD_E_INTEGRITY);
		struct hd_hash digest = hd_state_digest(&state);       /* of the bytes in memory */
		seal(&f.sim.fs, &f.manifest, &digest);
		longest = 0;
		CHECK(load(&f, &state, &diag) == HD_OK, "%d: %s", (int)n, diag.text);
		CHECK(longest <= 4 * SEGMENT, "%zu bytes at once", longest);
		const uint32_t *half = hd_state_find(&state, "half")->at;
		for (uint64_t k = 0; k < n; k++)
			CHECK(half[k] == (uint32_t)halves[k] << 16, "%d of %d", (int)k, (int)n);
		CHECK(!memcmp(hd_state_find(&state, "whole")->at, floats, 4 * n), "%d", (int)n);
		forged_finish(&f);
	}
}

/* That a header is damaged is reported, not what its damage looks like. */
static void damage_is_reported_before_what_it_looks_like(void **unused)
{
	struct hd_diag diag;
	struct hd_state state;
	struct forged f;
	size_t len;

	(void)unused;
	for (size_t at = 0; at < 120; at++) {
		forge(&f, NULL, 0);
		uint8_t *bytes = slurp(&f.sim.fs, AT "/model.safetensors", &f.arena, &len);
		bytes[at] ^= 1;
		spill(&f.sim.fs, AT "/model.safetensors", bytes, len);
		CHECK(load(&f, &state, &diag) == HD_E_INTEGRITY && strstr(diag.text, "SHA-256"),
			"byte %zu: %s", at, diag.text);
		forged_finish(&f);
	}
}

/* ---- files that are not what the manifest says ---- */

static void a_file_that_is_missing_is_no_checkpoint_that_is_missing(void **unused)
{
	struct hd_diag diag;
	struct forged f;
	struct hd_state state;
	char path[200];

	(void)unused;
	for (int i = 0; i < HD_CKPT_NFILES; i++) {
		forge(&f, NULL, 0);
		snprintf(path, sizeof path, AT "/%s", data_files[i]);
		assert_int_equal(hd_fs_unlink(&f.sim.fs, path, NULL), HD_OK);
		CHECK(load(&f, &state, &diag) == HD_E_INTEGRITY && strstr(diag.text, path), "%s", diag.text);
		forged_finish(&f);
	}
}

/* Before its memory is asked for. */
static void a_size_that_the_disk_has_not_is_refused_first(void **unused)
{
	static const int64_t other[] = { -1, 1, INT64_C(1) << 50 };
	struct hd_diag diag;
	struct forged f;
	struct hd_state state;
	struct hd_text text;

	(void)unused;
	for (int i = 0; i < HD_CKPT_NFILES; i++)
		for (size_t k = 0; k < 3; k++) {
			forge(&f, NULL, 0);
			struct hd_manifest m = f.manifest;
			m.file[i].len_bytes += (uint64_t)other[k];
			m.info.len_bytes += (uint64_t)other[k];
			hd_text_init(&text, &f.arena);
			assert_int_equal(hd_manifest_print(&m, &text, NULL), HD_OK);
			spill(&f.sim.fs, AT "/" HD_CKPT_MANIFEST, (const uint8_t *)text.at, text.len);
			CHECK(load(&f, &state, &diag) == HD_E_INTEGRITY, "%s", diag.text);
			char says[100];
			snprintf(says, sizeof says, "%s: %llu bytes, its manifest says %llu", data_files[i],
				(unsigned long long)f.manifest.file[i].len_bytes,
				(unsigned long long)m.file[i].len_bytes);
			CHECK(strstr(diag.text, says), "%s", diag.text);
			forged_finish(&f);
		}
}

/* A file that changes between the look at its size and the reading. */
static int (*true_stat)(struct hd_fs *fs, const char *path, bool follow, struct hd_stat *stat);
static const char *lied_of;
static int64_t lied_size;

static int lying_stat(struct hd_fs *fs, const char *path, bool follow, struct hd_stat *stat)
{
	int answer = true_stat(fs, path, follow, stat);

	if (!strstr(path, lied_of))
		return answer;
	*stat = (struct hd_stat){ .kind = HD_FILE_REGULAR, .size_bytes = lied_size };
	return 0;
}

static void a_file_that_changes_while_it_is_read_is_refused(void **unused)
{
	struct hd_fs_ops lies;
	struct hd_diag diag;
	struct forged f;
	struct hd_state state;
	struct hd_arena arena;
	char path[200], says[100];
	size_t len;

	(void)unused;
	for (int i = 0; i < HD_CKPT_NFILES; i++)
		for (int how = 0; how < 4; how++) {       /* gone, a byte less, one more, as it was */
			forge(&f, NULL, 0);
			hd_arena_init(&arena, 0);
			snprintf(path, sizeof path, AT "/%s", data_files[i]);
			const uint8_t *bytes = slurp(&f.sim.fs, path, &arena, &len);
			if (how)
				spill(&f.sim.fs, path, bytes,
					len + (size_t)how - (how < 3 ? 2 : 3) + (how == 2));
			else
				assert_int_equal(hd_fs_unlink(&f.sim.fs, path, NULL), HD_OK);
			lies = *f.sim.fs.ops;
			true_stat = lies.stat;
			lies.stat = lying_stat;
			f.sim.fs.ops = &lies;
			lied_of = data_files[i];
			lied_size = (int64_t)len;
			enum hd_err err = load(&f, &state, &diag);
			CHECK(err == (how < 3 ? HD_E_INTEGRITY : HD_OK), "%s, %d: %d %s", data_files[i], how,
				(int)err, diag.text);
			if (how == 1)
				snprintf(says, sizeof says, "%s: only %zu bytes, its manifest says %zu",
					data_files[i], len - 1, len);
			else
				snprintf(says, sizeof says,
					how ? "%s: more than %zu bytes, its manifest says" : "%s",
					data_files[i], len);
			CHECK(!err || strstr(diag.text, says), "%s, %d: %s", data_files[i], how, diag.text);
			hd_arena_finish(&arena);
			forged_finish(&f);
		}
}

/* Also into a state that is there: an error of the disk is none of the checkpoint. */
static void any_call_that_fails_is_told(void **unused)
{
	struct hd_diag diag;
	struct forged f;
	struct hd_state state;
	struct hd_ckpt_info info;
	uint64_t nreported = 0;

	(void)unused;
	for (int way = 0; way < 4; way++)
		for (uint64_t k = 1;; k++) {
			struct tiny t;
			forge(&f, NULL, 0);
			tiny_init(&t, 9);
			uint64_t from = f.sim.calls;
			hd_fs_sim_fail(&f.sim, k, EIO, way & 1);
			enum hd_err err = way & 2 ? hd_ckpt_read(&f.sim.fs, AT, &t.state, &info, &diag) :
				load(&f, &state, &diag);
			bool beyond = f.sim.calls < from + k;
			CHECK(beyond ? err == HD_OK : err != HD_OK && err != HD_E_NOTFOUND &&
				err != HD_E_INTEGRITY, "call %d: %d %s", (int)k, (int)err,
				diag.text);
			nreported += !beyond;
			tiny_finish(&t);
			forged_finish(&f);
			if (beyond)
				break;
		}
	assert_true(nreported > 40);
}

/* At each place in turn, and of a table whose memory is bounded. */
static void memory_that_ends_is_told(void **unused)
{
	struct hd_diag diag;
	struct forged f;
	struct hd_state state;
	struct hd_ckpt_info info;
	uint32_t refused = 0;

	(void)unused;
	forge(&f, NULL, 0);
	enum hd_err err = HD_E_NOMEM;
	for (uint64_t n = 1; err; n++) {
		hd_arena_finish(&f.arena);
		hd_alloc_arm(n);
		err = load(&f, &state, &diag);
		hd_alloc_arm(0);
		CHECK(!err || err == HD_E_NOMEM, "request %d: %d %s", (int)n, (int)err, diag.text);
		refused += err != HD_OK;
	}
	assert_true(refused >= 4);
	assert_int_equal(state.nentries, 5);
	forged_finish(&f);

	forge(&f, NULL, 0);                               /* also of a file without a byte */
	spill(&f.sim.fs, AT "/model.safetensors", (const uint8_t *)"", 0);
	seal(&f.sim.fs, &f.manifest, NULL);
	hd_arena_finish(&f.arena);
	hd_alloc_arm(0);
	assert_int_equal(load(&f, &state, &diag), HD_E_INPUT);
	uint64_t requests = hd_alloc_count();
	for (uint64_t n = 1; n <= requests; n++) {
		hd_arena_finish(&f.arena);
		hd_alloc_arm(n);
		CHECK(load(&f, &state, &diag) == HD_E_NOMEM, "request %d of %d: %s", (int)n, (int)requests,
			diag.text);
	}
	hd_alloc_arm(0);
	forged_finish(&f);

	static const float many[700];
	forge(&f, &(struct hd_st_tensor){ "a.big", HD_ST_F32, 1, { 700 }, many, NULL, sizeof many }, 1);
	struct hd_arena arena;
	hd_arena_init(&arena, 1000);
	diag = (struct hd_diag){ "" };
	assert_int_equal(hd_ckpt_load(&f.sim.fs, AT, &arena, &state, &info, &diag), HD_E_NOMEM);
	CHECK(strstr(diag.text, "no memory for tensor 'a.big' (2800 bytes)"), "%s", diag.text);
	hd_arena_finish(&arena);
	forged_finish(&f);
}

/* ---- the folder ---- */

static void a_folder_is_of_the_step_that_its_name_says(void **unused)
{
	static const struct { const char *folder; bool ok; } cases[] = {
		{ PARENT "/step-000000003", true }, { PARENT "/step-000000004", false }, { PARENT "/step-000000003.old", true }, { "/keep", true },
		{ PARENT "/step-000000004.old", false }, { "step-000000003", true }, { "step-000000004", false }, { "/step-000000004/it", true } };
	struct hd_manifest manifest;
	struct hd_diag diag;
	struct forged f;

	(void)unused;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char path[300];
		size_t len;
		forge(&f, NULL, 0);
		uint8_t *bytes = slurp(&f.sim.fs, AT "/" HD_CKPT_MANIFEST, &f.arena, &len);
		assert_int_equal(hd_fs_mkdirs(&f.sim.fs, cases[i].folder, NULL), HD_OK);
		snprintf(path, sizeof path, "%s/" HD_CKPT_MANIFEST, cases[i].folder);
		spill(&f.sim.fs, path, bytes, len);
		diag = (struct hd_diag){ "" };
		enum hd_err err = hd_ckpt_manifest_read(&f.sim.fs, cases[i].folder, &f.arena, &manifest,
			&diag);
		CHECK(err == (cases[i].ok ? HD_OK : HD_E_INTEGRITY), "%s: %s", cases[i].folder, diag.text);
		CHECK(cases[i].ok ? !strcmp(manifest.info.folder, cases[i].folder) : !!strstr(diag.text,
			"the folder was renamed"), "%s", diag.text);
		forged_finish(&f);
	}
}

static void a_path_that_would_be_cut_is_refused(void **unused)
{
	struct hd_manifest manifest;
	struct hd_diag diag = { "" };
	struct forged f;
	char folder[sizeof manifest.info.folder + 1], path[600];
	size_t len;

	(void)unused;
	for (size_t n = sizeof manifest.info.folder - 1; n <= sizeof manifest.info.folder; n++) {
		forge(&f, NULL, 0);
		uint8_t *bytes = slurp(&f.sim.fs, AT "/" HD_CKPT_MANIFEST, &f.arena, &len);
		memset(folder, 'x', n);
		for (size_t i = 0; i < n; i += 100)
			folder[i] = '/';
		folder[n] = 0;
		assert_int_equal(hd_fs_mkdirs(&f.sim.fs, folder, NULL), HD_OK);
		snprintf(path, sizeof path, "%s/" HD_CKPT_MANIFEST, folder);
		spill(&f.sim.fs, path, bytes, len);
		bool fits = n < sizeof manifest.info.folder;
		assert_int_equal(hd_ckpt_manifest_read(&f.sim.fs, folder, &f.arena, &manifest, &diag),
			fits ? HD_OK : HD_E_INVAL);
		CHECK(fits || strstr(diag.text, "is longer than 511 bytes"), "%s", diag.text);
		forged_finish(&f);
	}
}

/* ---- into a state ---- */

/* Each in one respect another than this model's. */
static void a_tensor_of_another_type_or_shape_is_named(void **unused)
{
	static const struct { enum hd_dtype dtype; uint8_t rank; int64_t dim[2]; enum hd_state_group group;
		} cases[] = {
		{ HD_I32, 2, { 2, 3 }, HD_STATE_MODEL }, { HD_F32, 1, { 2 }, HD_STATE_MODEL }, { HD_F32, 2, { 2, 3 }, HD_STATE_OPTIM },
		{ HD_F32, 2, { 3, 2 }, HD_STATE_MODEL }, { HD_F32, 2, { 2, 2 }, HD_STATE_MODEL }, { HD_F32, 2, { 2, 3 }, HD_STATE_MODEL } };
	struct hd_ckpt_info info, before;
	struct forged f;
	struct tiny t;

	(void)unused;
	forge(&f, NULL, 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hd_diag diag = { "" };
		tiny_init(&t, 9);
		struct hd_state_entry *e = hd_state_find(&t.state, "a.weight");
		e->dtype = (uint8_t)cases[i].dtype;
		e->rank = cases[i].rank;
		memcpy(e->dim, cases[i].dim, sizeof cases[i].dim);
		e->group = (uint8_t)cases[i].group;
		memset(&info, 0xa5, sizeof info);
		before = info;
		bool same = i + 1 == sizeof cases / sizeof *cases;
		assert_int_equal(hd_ckpt_read(&f.sim.fs, AT, &t.state, &info, &diag),
			same ? HD_OK : HD_E_INTEGRITY);
		CHECK(same || strstr(diag.text, "tensor 'a.weight' has another type or shape"),
			"case %zu: %s", i, diag.text);
		CHECK(same ? info.step == 3 : !memcmp(&info, &before, sizeof info) && t.step == 9,
			"case %zu: something was read", i);
		tiny_finish(&t);
	}
	forged_finish(&f);
}

/* Two entries share their memory, so the second overwrites the first: the final check sees it. */
static void memory_that_does_not_hold_what_was_read_is_seen(void **unused)
{
	struct hd_ckpt_info info, before;
	struct hd_diag diag = { "" };
	struct forged f;
	struct tiny t;

	(void)unused;
	forge(&f, NULL, 0);
	tiny_init(&t, 9);
	hd_state_find(&t.state, "a.weight")->at = t.m;
	memset(&info, 0xa5, sizeof info);
	before = info;
	assert_int_equal(hd_ckpt_read(&f.sim.fs, AT, &t.state, &info, &diag), HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "memory fails?") && !memcmp(&info, &before, sizeof info), "%s", diag.text);
	tiny_finish(&t);
	forged_finish(&f);
}

/* ---- finding ---- */

/* The first that is renamed out of sight in such a run of calls; 0: none. */
static uint64_t first_rename(const struct hd_fs_sim *sim, uint64_t from)
{
	for (size_t i = from; i < sim->n_log; i++)
		if (sim->log[i].call == HD_FS_RENAME)
			return i + 1 - from;
	return 0;
}

/* The newest goes first: where that fails the older ones stay, and it is reported. */
static void a_drop_ends_at_the_first_that_cannot_go(void **unused)
{
	uint64_t rename = 0;

	(void)unused;
	for (int fails = 0; fails < 2; fails++) {
		struct hd_fs_sim sim;
		uint32_t removed = 77;
		hd_fs_sim_init(&sim);
		for (int64_t step = 1; step <= 4; step++)
			must_put(&sim.fs, step, 0);
		assert_int_equal(sim.calls, sim.n_log);
		uint64_t from = sim.calls;
		if (fails)
			hd_fs_sim_fail(&sim, rename, EIO, false);
		enum hd_err err = hd_ckpt_drop_after(&sim.fs, "/run", 1, &removed, NULL);
		rename = first_rename(&sim, from);
		assert_true(rename > 0);
		CHECK(fails ? err && removed == 0 : !err && removed == 3, "%d, %u removed", (int)err,
			removed);
		for (int64_t step = 1; step <= 4; step++) {
			char folder[100];
			snprintf(folder, sizeof folder, PARENT "/step-%09d", (int)step);
			CHECK(holds(&sim.fs, folder, step) == (fails || step == 1), "step %d", (int)step);
		}
		hd_fs_sim_finish(&sim);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tensor_that_no_state_can_hold_is_named),
		cmocka_unit_test(tensors_of_every_kind_come_back),
		cmocka_unit_test(what_is_larger_than_a_segment_comes_in_pieces),
		cmocka_unit_test(damage_is_reported_before_what_it_looks_like),
		cmocka_unit_test(a_file_that_is_missing_is_no_checkpoint_that_is_missing),
		cmocka_unit_test(a_size_that_the_disk_has_not_is_refused_first),
		cmocka_unit_test(a_file_that_changes_while_it_is_read_is_refused),
		cmocka_unit_test(any_call_that_fails_is_told),
		cmocka_unit_test(memory_that_ends_is_told),
		cmocka_unit_test(a_folder_is_of_the_step_that_its_name_says),
		cmocka_unit_test(a_path_that_would_be_cut_is_refused),
		cmocka_unit_test(a_tensor_of_another_type_or_shape_is_named),
		cmocka_unit_test(memory_that_does_not_hold_what_was_read_is_seen),
		cmocka_unit_test(a_drop_ends_at_the_first_that_cannot_go),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
