#include "checkpoint/ckpt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/failpoint.h"
#include "checkpoint/testing_ckpt.h"

static void count_bad(void *user, const char *folder, const char *why)
{
	CHECK(*why && strstr(why, "step-"), "%s: no reason", folder);
	++*(int *)user;
}

static void what_is_written_is_read_back_bit_for_bit(void **unused)
{
	struct hd_fs_sim sim;
	struct hd_ckpt_info info;

	(void)unused;
	hd_fs_sim_init(&sim);
	must_put(&sim.fs, 3, 0);
	assert_true(holds(&sim.fs, PARENT "/step-000000003", 3));
	static const char *const names[] = { "/run", PARENT, PARENT "/step-000000003" };
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(hd_ckpt_find(&sim.fs, names[i], UINT64_MAX, &info, NULL, NULL, NULL), HD_OK);
		assert_int_equal(info.step, 3);
		assert_int_equal(info.samples, 30);
		assert_int_equal(info.data_count, 60);
		assert_string_equal(info.model, "builtin:mlp");
		assert_string_equal(info.kernels, "portable");
	}
	hd_fs_sim_finish(&sim);
}

static void the_newest_stand_first_and_keep_n_stay(void **unused)
{
	struct hd_ckpt_info *list;
	struct hd_arena arena;
	struct hd_fs_sim sim;
	uint32_t n;

	(void)unused;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	for (int64_t step = 1; step <= 5; step++)
		must_put(&sim.fs, step, 3);
	assert_int_equal(hd_ckpt_list(&sim.fs, PARENT, &arena, &list, &n, NULL), HD_OK);
	assert_int_equal(n, 3);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(list[i].step, 5 - i);
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* One whose manifest cannot be read is not listed. */
static void a_list_names_those_with_a_manifest(void **unused)
{
	static const char *const manifests[] = { "{}", "", "x" };
	struct hd_ckpt_info *list;
	struct hd_arena arena;
	struct hd_fs_sim sim;
	uint32_t n;

	(void)unused;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	for (int64_t step = 1; step <= 3; step++)
		must_put(&sim.fs, step, 0);
	for (size_t i = 0; i < sizeof manifests / sizeof *manifests; i++) {
		spill(&sim.fs, PARENT "/step-000000002/MANIFEST.json", (const uint8_t *)manifests[i],
			strlen(manifests[i]));
		assert_int_equal(hd_ckpt_list(&sim.fs, PARENT, &arena, &list, &n, NULL), HD_OK);
		CHECK(n == 2 && list[0].step == 3 && list[1].step == 1, "\"%s\": %u", manifests[i], n);
	}
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

static const char *const files[] = { "model.safetensors", "optim.safetensors", "state.json",
	"MANIFEST.json" };
enum { NFILES = sizeof files / sizeof *files };

static void every_flipped_bit_is_refused(void **unused)
{
	struct hd_fs_sim sim;
	struct hd_arena arena;
	struct hd_ckpt_info info;

	(void)unused;
	for (int f = 0; f < NFILES; f++) {
		char path[200];
		size_t len;
		hd_fs_sim_init(&sim);
		hd_arena_init(&arena, 0);
		must_put(&sim.fs, 3, 0);
		snprintf(path, sizeof path, PARENT "/step-000000003/%s", files[f]);
		uint8_t *bytes = slurp(&sim.fs, path, &arena, &len);
		for (size_t bit = 0; bit < 8 * len; bit++) {
			struct hd_diag diag = { "" };
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			spill(&sim.fs, path, bytes, len);
			CHECK(hd_ckpt_verify(&sim.fs, PARENT "/step-000000003", &info, &diag) != HD_OK,
				"%s: bit %zu", files[f], bit);
			CHECK(strstr(diag.text, files[f]), "%s: bit %zu: %s", files[f], bit, diag.text);
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		spill(&sim.fs, path, bytes, len);
		assert_int_equal(hd_ckpt_verify(&sim.fs, PARENT "/step-000000003", &info, NULL), HD_OK);
		hd_arena_finish(&arena);
		hd_fs_sim_finish(&sim);
	}
}

static void every_cut_and_every_added_byte_is_refused(void **unused)
{
	struct hd_fs_sim sim;
	struct hd_arena arena;
	struct hd_ckpt_info info;

	(void)unused;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	must_put(&sim.fs, 3, 0);
	for (int f = 0; f < NFILES; f++) {
		char path[200];
		size_t len;
		snprintf(path, sizeof path, PARENT "/step-000000003/%s", files[f]);
		uint8_t *bytes = slurp(&sim.fs, path, &arena, &len);
		for (size_t cut = 0; cut < len; cut++) {
			spill(&sim.fs, path, bytes, cut);
			CHECK(hd_ckpt_verify(&sim.fs, PARENT "/step-000000003", &info, NULL) != HD_OK,
				"%s: cut at %zu", files[f], cut);
		}
		spill(&sim.fs, path, bytes, len + 1);        /* and the 0 behind it */
		CHECK(hd_ckpt_verify(&sim.fs, PARENT "/step-000000003", &info, NULL) != HD_OK,
			"%s: one byte more", files[f]);
		assert_int_equal(hd_fs_unlink(&sim.fs, path, NULL), HD_OK);
		CHECK(hd_ckpt_verify(&sim.fs, PARENT "/step-000000003", &info, NULL) != HD_OK, "%s: missing",
			files[f]);
		spill(&sim.fs, path, bytes, len);
	}
	assert_int_equal(hd_ckpt_verify(&sim.fs, PARENT "/step-000000003", &info, NULL), HD_OK);
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

static void a_bad_one_is_told_and_the_next_older_is_taken(void **unused)
{
	struct hd_fs_sim sim;
	struct hd_ckpt_info info;
	struct hd_diag diag = { "" };
	int bad = 0;

	(void)unused;
	hd_fs_sim_init(&sim);
	for (int64_t step = 1; step <= 3; step++)
		must_put(&sim.fs, step, 0);
	spill(&sim.fs, PARENT "/step-000000003/state.json", (const uint8_t *)"{}", 2);
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", UINT64_MAX, &info, count_bad, &bad, NULL), HD_OK);
	assert_int_equal(info.step, 2);
	assert_int_equal(bad, 1);
	assert_int_equal(hd_fs_unlink(&sim.fs, PARENT "/step-000000003/MANIFEST.json", NULL), HD_OK);
	bad = 0;
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", UINT64_MAX, &info, count_bad, &bad, NULL), HD_OK);
	CHECK(info.step == 2 && bad == 0, "a folder without a manifest does not exist");
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", 1, &info, count_bad, &bad, NULL), HD_OK);
	assert_int_equal(info.step, 1);
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", 9, &info, count_bad, &bad, &diag), HD_E_NOTFOUND);
	CHECK(strstr(diag.text, "step 9"), "%s", diag.text);
	spill(&sim.fs, PARENT "/step-000000002/state.json", (const uint8_t *)"{}", 2);
	spill(&sim.fs, PARENT "/step-000000001/state.json", (const uint8_t *)"{}", 2);
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", UINT64_MAX, &info, count_bad, &bad, NULL),
		HD_E_INTEGRITY);
	assert_int_equal(bad, 2);
	hd_fs_sim_finish(&sim);
}

static void a_missing_and_an_extra_tensor_are_named(void **unused)
{
	static const char *const names[] = { "a.weight", "a.bias", "a.weight.m", "run.step", "run.loss" };
	struct hd_fs_sim sim;
	struct hd_ckpt_info info;
	struct hd_diag diag;
	struct tiny t;

	(void)unused;
	hd_fs_sim_init(&sim);
	must_put(&sim.fs, 3, 0);
	for (int skip = 0; skip < 5; skip++) {
		diag = (struct hd_diag){ "" };
		tiny_init_without(&t, 9, skip, false);
		CHECK(hd_ckpt_read(&sim.fs, PARENT "/step-000000003", &t.state, &info,
			&diag) == HD_E_INTEGRITY, "without %s", names[skip]);
		CHECK(strstr(diag.text, names[skip]), "%s", diag.text);
		/* and the other way round: written without it, read with it */
		info = info_of(4);
		assert_int_equal(hd_ckpt_write(&sim.fs, "/other", &t.state, &info, 0, false, NULL), HD_OK);
		tiny_finish(&t);
		tiny_init(&t, 9);
		diag = (struct hd_diag){ "" };
		CHECK(hd_ckpt_read(&sim.fs, "/other/step-000000004", &t.state, &info,
			&diag) == HD_E_INTEGRITY, "without %s", names[skip]);
		CHECK(strstr(diag.text, names[skip]) && strstr(diag.text, "missing"), "%s", diag.text);
		tiny_finish(&t);
		assert_int_equal(hd_fs_remove_tree(&sim.fs, "/other", NULL), HD_OK);
	}
	tiny_init_without(&t, 9, -1, true);
	diag = (struct hd_diag){ "" };
	assert_int_equal(hd_ckpt_read(&sim.fs, PARENT "/step-000000003", &t.state, &info, &diag),
		HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "b.bias"), "%s", diag.text);
	tiny_finish(&t);
	hd_fs_sim_finish(&sim);
}

/* What may stand on the disk after anything went wrong while `now` was written over `before`:
 * the one or the other, whole, never anything else that is accepted. */
static void old_or_new(struct hd_fs *fs, int64_t before, int64_t now, const char *how, size_t where)
{
	struct hd_ckpt_info info;
	struct hd_diag diag = { "" };

	CHECK(hd_ckpt_find(fs, "/run", UINT64_MAX, &info, NULL, NULL, &diag) == HD_OK, "%s %zu: %s", how,
		where, diag.text);
	CHECK(info.step == (uint64_t)before || info.step == (uint64_t)now, "%s %zu: step %llu", how, where,
		(unsigned long long)info.step);
	CHECK(holds(fs, info.folder, (int64_t)info.step), "%s %zu: %s is garbage", how, where, info.folder);
}

struct coin { uint32_t pattern, seed; };

/* 0: none survives; 1: all; else by coin. */
static bool survives(void *user, size_t i)
{
	struct coin *c = user;

	if (c->pattern < 2)
		return c->pattern == 1;
	c->seed = c->seed * 1664525u + 1013904223u + (uint32_t)i;
	return c->seed >> 31;
}

/* The world ends after call k, for every k, and of what was not synced all, none or any part stays. */
static void a_crash_anywhere_leaves_the_old_or_the_new(void **unused)
{
	enum { PATTERNS = 8 };
	size_t crashes = 0, failed = 0;

	(void)unused;
	for (uint32_t pattern = 0; pattern < PATTERNS; pattern++)
		for (uint64_t k = 1;; k++) {
			struct coin coin = { pattern, (uint32_t)k * 7919u + pattern };
			struct hd_fs_sim sim;
			hd_fs_sim_init(&sim);
			must_put(&sim.fs, 1, 1);
			assert_int_equal(hd_fs_sync_folder(&sim.fs, "/run", NULL), HD_OK);
			assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
			uint64_t from = sim.calls;
			hd_fs_sim_fail(&sim, k, EIO, true);
			enum hd_err err = put_step(&sim.fs, 2, 1, NULL);
			bool beyond = sim.calls < from + k;
			hd_fs_sim_fail(&sim, 0, 0, false);
			hd_fs_sim_crash(&sim, survives, &coin);
			old_or_new(&sim.fs, 1, 2, "crash at call", k);
			crashes++;
			failed += err != HD_OK;
			if (beyond) {
				assert_int_equal(err, HD_OK);
				assert_true(holds(&sim.fs, PARENT "/step-000000002", 2));
				hd_fs_sim_finish(&sim);
				break;
			}
			/* the next run writes over the debris */
			must_put(&sim.fs, 2, 1);
			assert_true(holds(&sim.fs, PARENT "/step-000000002", 2));
			hd_fs_sim_finish(&sim);
		}
	CHECK(crashes > 200 && 2 * failed > crashes, "%zu of %zu crashes hit the writer", failed, crashes);
}

static void any_call_may_fail_and_the_older_one_stays(void **unused)
{
	static const int errors[] = { ENOSPC, EIO, EACCES };
	size_t tried = 0, failed = 0;

	(void)unused;
	for (size_t e = 0; e < 3; e++)
		for (int on = 0; on < 2; on++)
			for (uint64_t k = 1;; k++) {
				struct hd_diag diag = { "" };
				struct hd_fs_sim sim;
				hd_fs_sim_init(&sim);
				must_put(&sim.fs, 1, 0);
				uint64_t from = sim.calls;
				hd_fs_sim_fail(&sim, k, errors[e], on);
				enum hd_err err = put_step(&sim.fs, 2, 1, &diag);
				bool beyond = sim.calls < from + k;
				hd_fs_sim_fail(&sim, 0, 0, false);
				CHECK(err == HD_OK || strstr(diag.text, "/run"),
					"call %llu: no path in \"%s\"", (unsigned long long)k, diag.text);
				CHECK(err == HD_OK || holds(&sim.fs, PARENT "/step-000000001", 1),
					"call %llu: the older one is hurt", (unsigned long long)k);
				old_or_new(&sim.fs, 1, 2, "failure of call", k);
				tried++;
				failed += err != HD_OK;
				hd_fs_sim_finish(&sim);
				if (beyond)
					break;
			}
	CHECK(2 * failed > tried, "%zu of %zu failures hit the writer", failed, tried);
}

static void a_step_written_again_is_replaced_without_a_gap(void **unused)
{
	size_t tried = 0, failed = 0;

	(void)unused;
	for (uint64_t k = 1;; k++) {
		struct hd_ckpt_info info = info_of(5);
		struct coin coin = { (uint32_t)k % 8, (uint32_t)k };
		struct hd_fs_sim sim;
		struct tiny t;
		hd_fs_sim_init(&sim);
		must_put(&sim.fs, 5, 1);
		assert_int_equal(hd_fs_sync_folder(&sim.fs, "/run", NULL), HD_OK);
		assert_int_equal(hd_fs_sync_folder(&sim.fs, "/", NULL), HD_OK);
		tiny_init(&t, 5);
		t.w[0] = 99;
		info.lineage = 1;
		uint64_t from = sim.calls;
		hd_fs_sim_fail(&sim, k, EIO, true);
		enum hd_err err = hd_ckpt_write(&sim.fs, PARENT, &t.state, &info, 1, true, NULL);
		bool beyond = sim.calls < from + k;
		tried++;
		failed += err != HD_OK;
		hd_fs_sim_fail(&sim, 0, 0, false);
		hd_fs_sim_crash(&sim, survives, &coin);
		CHECK(hd_ckpt_find(&sim.fs, "/run", UINT64_MAX, &info, NULL, NULL, NULL) == HD_OK,
			"crash at call %llu", (unsigned long long)k);
		CHECK(!beyond || (err == HD_OK && info.lineage == 1),
			"the second of the step is not the one that stays");
		tiny_finish(&t);
		hd_fs_sim_finish(&sim);
		if (beyond)
			break;
	}
	CHECK(2 * failed > tried, "%zu of %zu crashes hit the writer", failed, tried);
}

#ifdef HD_FAILPOINTS
/* Every place named for checkpoints: the write fails (or the removal is put off), the old one stays. */
static void every_failpoint_leaves_a_whole_one(void **unused)
{
	static const enum hd_failpoint points[] = { HD_FP_CKPT_BEGIN, HD_FP_CKPT_WRITE_BEFORE,
		HD_FP_CKPT_WRITE_AFTER, HD_FP_CKPT_FSYNC,
		HD_FP_CKPT_MANIFEST_BEFORE, HD_FP_CKPT_MANIFEST_AFTER, HD_FP_CKPT_RENAME_BEFORE,
		HD_FP_CKPT_RENAME_AFTER, HD_FP_CKPT_DIRSYNC,
		HD_FP_CKPT_GC };
	static const char *const actions[] = { "err=ENOSPC", "short=10", "flip" };

	(void)unused;
	for (size_t p = 0; p < sizeof points / sizeof *points; p++)
		for (size_t a = 0; a < (hd_failpoint_has_bytes(points[p]) ? 3u : 1u); a++) {
			char spec[100];
			struct hd_diag diag = { "" };
			struct hd_fs_sim sim;
			hd_fs_sim_init(&sim);
			must_put(&sim.fs, 1, 0);
			snprintf(spec, sizeof spec, "%s:%s", hd_failpoint_name(points[p]), actions[a]);
			assert_int_equal(hd_failpoint_arm(spec, 1, NULL), HD_OK);
			enum hd_err err = put_step(&sim.fs, 2, 1, &diag);
			CHECK(hd_failpoint_hits(points[p]) > 0, "%s is not reached", spec);
			assert_int_equal(hd_failpoint_arm(NULL, 0, NULL), HD_OK);
			CHECK(a || points[p] == HD_FP_CKPT_GC || err == HD_E_REFUSED, "%s: %d", spec, err);
			assert_true(err == HD_OK || strstr(diag.text, "/run"));
			CHECK(points[p] != HD_FP_CKPT_GC || holds(&sim.fs, PARENT "/step-000000001", 1),
				"%s: removed all the same", spec);
			if (a == 0 || points[p] == HD_FP_CKPT_GC)
				old_or_new(&sim.fs, 1, 2, spec, 0);
			else
				CHECK(hd_ckpt_verify(&sim.fs, PARENT "/step-000000002",
					&(struct hd_ckpt_info){ 0 }, NULL) != HD_OK, "%s was accepted", spec);
			hd_fs_sim_finish(&sim);
		}
}

static void read_back_refuses_what_the_disk_spoiled(void **unused)
{
	struct hd_ckpt_info info = info_of(2);
	struct hd_fs_sim sim;
	struct tiny t;

	(void)unused;
	hd_fs_sim_init(&sim);
	must_put(&sim.fs, 1, 0);
	tiny_init(&t, 2);
	assert_int_equal(hd_failpoint_arm("ckpt.write.before:flip@1", 1, NULL), HD_OK);
	enum hd_err err = hd_ckpt_write(&sim.fs, PARENT, &t.state, &info, 1, true, NULL);
	assert_int_equal(hd_failpoint_arm(NULL, 0, NULL), HD_OK);
	assert_int_equal(err, HD_E_INTEGRITY);
	assert_true(holds(&sim.fs, PARENT "/step-000000001", 1));
	tiny_finish(&t);
	hd_fs_sim_finish(&sim);
}
#endif

/* A manifest that is sealed and true of its files, with another digest of the state. */
static void another_digest_than_the_manifest_s_is_refused(void **unused)
{
	static const char path[] = PARENT "/step-000000003/MANIFEST.json";
	struct hd_manifest manifest;
	struct hd_diag diag = { "" };
	struct hd_fs_sim sim;
	struct hd_arena arena;
	struct hd_text text;

	(void)unused;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	must_put(&sim.fs, 3, 0);
	assert_int_equal(hd_ckpt_manifest_read(&sim.fs, PARENT "/step-000000003", &arena, &manifest, NULL),
		HD_OK);
	manifest.info.digest.byte[15] ^= 1;
	hd_text_init(&text, &arena);
	assert_int_equal(hd_manifest_print(&manifest, &text, NULL), HD_OK);
	spill(&sim.fs, path, (const uint8_t *)text.at, text.len);
	assert_int_equal(hd_ckpt_verify(&sim.fs, PARENT "/step-000000003", &manifest.info, &diag),
		HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "digest"), "%s", diag.text);
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

static void a_tensor_in_the_wrong_file_is_named(void **unused)
{
	struct hd_fs_sim sim;
	struct hd_ckpt_info info;
	struct hd_diag diag = { "" };
	struct tiny t;

	(void)unused;
	hd_fs_sim_init(&sim);
	must_put(&sim.fs, 3, 0);
	tiny_init(&t, 9);
	hd_state_find(&t.state, "a.bias")->group = HD_STATE_OPTIM;
	assert_int_equal(hd_ckpt_read(&sim.fs, PARENT "/step-000000003", &t.state, &info, &diag),
		HD_E_INTEGRITY);
	CHECK(strstr(diag.text, "a.bias"), "%s", diag.text);
	tiny_finish(&t);
	hd_fs_sim_finish(&sim);
}

static void another_version_is_said(void **unused)
{
	static const char text[] = "{\"format\":\"heddle-checkpoint\",\"version\":2,\"more\":1}";
	struct hd_manifest manifest;
	struct hd_diag diag = { "" };
	struct hd_arena arena;

	(void)unused;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_manifest_parse(&manifest, &arena, "M", text, sizeof text - 1, &diag), HD_E_INPUT);
	CHECK(strstr(diag.text, "version 2") && strstr(diag.text, "reads version 1"), "%s", diag.text);
	hd_arena_finish(&arena);
}

/* A run, its folder of checkpoints, one of them, and what is none of these. */
static void a_path_names_the_folders_of_its_checkpoints(void **unused)
{
	static const struct { const char *path; enum hd_err err; uint32_t n; const char *first; } cases[] = {
		{ "/run", HD_OK, 3, PARENT "/step-000000003" }, { PARENT, HD_OK, 3, PARENT "/step-000000003" },
		{ PARENT "/step-000000002", HD_OK, 1, PARENT "/step-000000002" }, { "/empty", HD_E_NOTFOUND, 0, "/empty holds no checkpoint" },
		{ "/nowhere", HD_E_NOTFOUND, 0, "/nowhere" }, { "/file", HD_E_NOTFOUND, 0, "/file is a file: give a run directory or a checkpoint folder" },
	};
	char longest[200];
	struct hd_fs_sim sim;
	struct hd_ckpt_info info;

	(void)unused;
	hd_fs_sim_init(&sim);
	for (int64_t step = 1; step <= 3; step++)
		must_put(&sim.fs, step, 0);
	assert_int_equal(hd_fs_mkdir(&sim.fs, "/empty", NULL), HD_OK);
	assert_int_equal(hd_fs_mkdir(&sim.fs, PARENT "/step-of-dance", NULL), HD_OK);
	snprintf(longest, sizeof longest, PARENT "/step-%0100d", 9);
	assert_int_equal(hd_fs_mkdir(&sim.fs, longest, NULL), HD_OK);
	spill(&sim.fs, "/file", (const uint8_t *)"x", 1);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char **folders = NULL;
		struct hd_arena arena;
		struct hd_diag diag = { "" };
		uint32_t n = 0;
		hd_arena_init(&arena, 0);
		CHECK(hd_ckpt_folders(&sim.fs, cases[i].path, &arena, &folders, &n, &diag) == cases[i].err &&
			n == cases[i].n, "case %zu: %u", i, n);
		CHECK(cases[i].err ? strstr(diag.text, cases[i].first) != NULL : !strcmp(folders[0],
			cases[i].first), "case %zu: %s", i, diag.text);
		hd_arena_finish(&arena);
	}
	/* memory ends at each place in turn: all of them, or an error */
	for (int how = 0; how < 4; how++) {
		static const struct { const char *path; uint32_t n; bool list;
			} ways[] = { { PARENT, 3, false }, { PARENT, 3, true }, { "/empty", 0, true },
			{ PARENT "/step-000000002", 1, false } };
		enum hd_err err = HD_E_NOMEM;
		uint32_t refused = 0;
		for (size_t bytes = 8; err; bytes += 8) {
			struct hd_arena arena;
			const char **folders = NULL;
			struct hd_ckpt_info *list = NULL;
			uint32_t n = 0;
			hd_arena_init(&arena, bytes);
			err = ways[how].list ? hd_ckpt_list(&sim.fs, ways[how].path, &arena, &list, &n,
				NULL) :
				hd_ckpt_folders(&sim.fs, ways[how].path, &arena, &folders, &n, NULL);
			CHECK(err ? err == HD_E_NOMEM && !folders && !list : n == ways[how].n &&
				(folders || list), "way %d, %zu bytes: %d, %u", how,
				bytes, err, n);
			for (uint32_t i = 0; folders && i < n; i++)
				CHECK(folders[i], "way %d, %zu bytes: %u has no name", how, bytes, i);
			refused += err != HD_OK;
			hd_arena_finish(&arena);
		}
		assert_true(refused > 1);
	}
	/* a broken one, and no report is asked for */
	spill(&sim.fs, PARENT "/step-000000003/model.safetensors", (const uint8_t *)"x", 1);
	assert_int_equal(hd_ckpt_find(&sim.fs, "/run", UINT64_MAX, &info, NULL, NULL, NULL), HD_OK);
	assert_int_equal(info.step, 2);
	struct hd_arena arena;
	struct hd_ckpt_info *list;
	uint32_t n;
	hd_arena_init(&arena, 0);
	assert_int_equal(hd_ckpt_list(&sim.fs, "/nowhere", &arena, &list, &n, NULL), HD_E_NOTFOUND);
	struct hd_diag diag = { "" };
	assert_int_equal(hd_ckpt_find(&sim.fs, "/empty", UINT64_MAX, &info, NULL, NULL, &diag),
		HD_E_NOTFOUND);
	assert_string_equal(diag.text, "/empty holds no checkpoint");     /* of no step: none was asked for */
	assert_int_equal(hd_ckpt_find(&sim.fs, "/nowhere", UINT64_MAX, &info, NULL, NULL, NULL),
		HD_E_NOTFOUND);
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* A disk that fails is reported: it is not taken for a folder without checkpoints. */
static void a_disk_that_fails_is_not_taken_for_an_empty_one(void **unused)
{
	enum { ALL, NEWEST, WHERE };
	static const struct { const char *path; uint64_t from; int what; } asks[] = {
		{ "/run", 0, ALL }, { PARENT, 0, ALL }, { "/run", UINT64_MAX, NEWEST }, { PARENT, UINT64_MAX, NEWEST },
		{ "/run", 9, NEWEST }, { PARENT, 9, NEWEST }, { "/run", 0, WHERE }, { PARENT, 0, WHERE },
	};
	struct hd_fs_sim sim;

	(void)unused;
	hd_fs_sim_init(&sim);
	must_put(&sim.fs, 1, 0);
	must_put(&sim.fs, 2, 0);
	for (size_t i = 0; i < sizeof asks / sizeof *asks; i++)
		for (uint64_t k = 1; k == 1 || asks[i].what != WHERE; k++) {
			struct hd_diag diag = { "" };
			struct hd_ckpt_info info;
			struct hd_arena arena;
			const char **folders;
			char parent[HD_PATH_CAP];
			uint32_t n;
			hd_arena_init(&arena, 0);
			uint64_t from = sim.calls;
			hd_fs_sim_fail(&sim, k, EIO, true);
			enum hd_err err = asks[i].what == WHERE ? hd_ckpt_parent(&sim.fs, asks[i].path,
				parent, sizeof parent, &diag) :
				asks[i].what == ALL ? hd_ckpt_folders(&sim.fs, asks[i].path, &arena, &folders,
				&n, &diag) :
				hd_ckpt_find(&sim.fs, asks[i].path, asks[i].from, &info, NULL, NULL, &diag);
			bool beyond = sim.calls < from + k;
			hd_fs_sim_fail(&sim, 0, 0, false);
			hd_arena_finish(&arena);
			if (beyond)
				break;
			CHECK(err && err != HD_E_NOTFOUND && diag.text[0], "ask %zu, call %llu: %d %s", i,
				(unsigned long long)k, err, diag.text);
		}
	hd_fs_sim_finish(&sim);
}

/* The disk fails where it is asked for the folder, and goes on after that: this is no folder without
 * checkpoints. */
static void one_failure_is_not_taken_for_an_empty_folder(void **unused)
{
	struct hd_diag diag = { "" };
	const char **folders;
	struct hd_arena arena;
	struct hd_fs_sim sim;
	uint32_t n;

	(void)unused;
	hd_fs_sim_init(&sim);
	hd_arena_init(&arena, 0);
	must_put(&sim.fs, 1, 0);
	hd_fs_sim_fail(&sim, 2, EIO, false);              /* after the look for a manifest in it */
	enum hd_err err = hd_ckpt_folders(&sim.fs, PARENT, &arena, &folders, &n, &diag);
	CHECK(err && err != HD_E_NOTFOUND && err != HD_E_NOMEM, "%d: %s", (int)err, diag.text);
	hd_fs_sim_fail(&sim, 0, 0, false);
	assert_int_equal(hd_ckpt_folders(&sim.fs, PARENT, &arena, &folders, &n, NULL), HD_OK);
	hd_arena_finish(&arena);
	hd_fs_sim_finish(&sim);
}

/* By checkpoint.dir of the job, if that can be read; else ckpt; else the folder itself. */
static void the_job_says_where_its_checkpoints_lie(void **unused)
{
	static const struct { const char *job, *parent; } cases[] = {
		{ NULL, "/run/ckpt" }, { "{\"checkpoint\":{\"dir\":\"saved\"}}", "/run/saved" }, { "{\"checkpoint\":{\"dir\":\"lost\"}}", "/run" },
		{ "{\"checkpoint\":{\"dir\":1}}", "/run/ckpt" }, { "{\"checkpoint\":{}}", "/run/ckpt" }, { "{}", "/run/ckpt" }, { "{", "/run/ckpt" }, { "", "/run/ckpt" },
	};
	struct hd_fs_sim sim;
	char parent[100];
	struct hd_diag diag = { "" };

	(void)unused;
	hd_fs_sim_init(&sim);
	assert_int_equal(hd_fs_mkdirs(&sim.fs, "/run/ckpt", NULL), HD_OK);
	assert_int_equal(hd_fs_mkdirs(&sim.fs, "/run/saved", NULL), HD_OK);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (cases[i].job)
			spill(&sim.fs, "/run/job.resolved.json", (const uint8_t *)cases[i].job,
				strlen(cases[i].job));
		assert_int_equal(hd_ckpt_parent(&sim.fs, "/run", parent, sizeof parent, NULL), HD_OK);
		CHECK(!strcmp(parent, cases[i].parent), "case %zu: %s", i, parent);
	}
	assert_int_equal(hd_ckpt_parent(&sim.fs, "/run", parent, 4, &diag), HD_E_INVAL);
	assert_non_null(strstr(diag.text, "too long"));
	hd_fs_sim_finish(&sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back_bit_for_bit),
		cmocka_unit_test(the_newest_stand_first_and_keep_n_stay),
		cmocka_unit_test(a_list_names_those_with_a_manifest),
		cmocka_unit_test(a_path_names_the_folders_of_its_checkpoints),
		cmocka_unit_test(the_job_says_where_its_checkpoints_lie),
		cmocka_unit_test(a_disk_that_fails_is_not_taken_for_an_empty_one),
		cmocka_unit_test(one_failure_is_not_taken_for_an_empty_folder),
		cmocka_unit_test(every_flipped_bit_is_refused),
		cmocka_unit_test(every_cut_and_every_added_byte_is_refused),
		cmocka_unit_test(a_bad_one_is_told_and_the_next_older_is_taken),
		cmocka_unit_test(a_missing_and_an_extra_tensor_are_named),
		cmocka_unit_test(a_crash_anywhere_leaves_the_old_or_the_new),
		cmocka_unit_test(any_call_may_fail_and_the_older_one_stays),
		cmocka_unit_test(a_step_written_again_is_replaced_without_a_gap),
#ifdef HD_FAILPOINTS
		cmocka_unit_test(every_failpoint_leaves_a_whole_one),
		cmocka_unit_test(read_back_refuses_what_the_disk_spoiled),
#endif
		cmocka_unit_test(another_digest_than_the_manifest_s_is_refused),
		cmocka_unit_test(a_tensor_in_the_wrong_file_is_named),
		cmocka_unit_test(another_version_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
