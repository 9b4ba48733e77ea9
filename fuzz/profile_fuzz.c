/* Any bytes are refused with a sentence, or are a profile that prints, reads back and prints to the same
 * bytes; its cuts and a partition of them are found or refused, the same by both searches. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "planner/partition.h"
#include "planner/planner.h"
#include "planner/steady.h"

enum { BUDGET = 256 << 20, CUTS_MOST = 60, NODES_MOST = 200, PLANNED_CUTS = 12 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void print_back(const struct hd_profile *p, struct hd_arena *arena)
{
	struct hd_profile again;
	struct hd_text one, two;

	hd_text_init(&one, arena);
	hd_text_init(&two, arena);
	hd_profile_print(p, &one);
	if (one.full || hd_profile_read(&again, one.at, one.len, "f", arena, NULL))
		abort();
	hd_profile_print(&again, &two);
	if (two.full || one.len != two.len || memcmp(one.at, two.at, one.len) != 0)
		abort();
}

static void partition(const struct hd_cuts *cuts, struct hd_part_how how, struct hd_arena *arena)
{
	struct hd_partition part[2];
	struct hd_text text[2];
	enum hd_err err[2];

	for (int i = 0; i < 2; i++) {
		struct hd_diag diag = { "" };
		how.search = i ? HD_PART_BOUND : HD_PART_RECURRENCE;
		err[i] = hd_part_solve(&part[i], cuts, &how, arena, &diag);
		if (err[i] == HD_E_BUG || (err[i] && !diag.text[0]))
			abort();
		hd_text_init(&text[i], arena);
		if (!err[i])
			hd_part_print(&part[i], how.nlevels, &text[i]);
	}
	if (err[0] != err[1] || (!err[0] && (part[0].time_s != part[1].time_s ||
		strcmp(text[0].at, text[1].at) != 0)))
		abort();
}

/* Fill and steady state, and a whole plan of a small model: found, or refused with a sentence. */
static void plan(const struct hd_profile *p, const struct hd_cuts *cuts, size_t seed, struct hd_arena *arena)
{
	const struct hd_cluster_level level = { "l", 1 + (uint32_t)(seed % 4), 1e9,
		(int64_t)(seed % 7) * 1000 };
	struct hd_steady_table table;
	struct hd_cut_sums sums;
	struct hd_cluster cluster;
	struct hd_steady steady;
	struct hd_auto chosen;
	struct hd_arena scratch;
	struct hd_diag diag = { "" };

	hd_arena_init(&scratch, BUDGET);
	if (hd_cut_sums_make(&sums, p, cuts, arena, NULL) ||
		hd_steady_table_make(&table, &sums, HD_STEADY_CUTS, arena, NULL) ||
	    hd_cluster_make(&cluster, &level, 1, (struct hd_cluster_kind){ "k", 1,
	    seed & 1 ? (int64_t)1 << (seed % 40) : 0 }, arena, NULL))
		goto out;
	if (hd_steady_solve(&steady, &table, &(struct hd_steady_how){ .m = 1 + (uint32_t)(seed % 9),
		.cluster = &cluster }, arena, &scratch,
		&diag) == HD_E_BUG)
		abort();
	diag = (struct hd_diag){ "" };
	if (cuts->n <= PLANNED_CUTS) {
		enum hd_err err = hd_plan_auto(&chosen, &sums, &cluster,
			&(struct hd_auto_ask){ .vns = 1 + (uint32_t)(seed % 5) }, arena, &diag);
		if (err == HD_E_BUG || (err && !diag.text[0]))
			abort();
	}
out:
	hd_arena_finish(&scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_arena arena;
	struct hd_profile p;
	struct hd_cuts cuts;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, BUDGET);
	enum hd_err err = hd_profile_read(&p, (const char *)bytes, len, "f", &arena, &diag);
	if (err && !diag.text[0])
		abort();
	if (!err)
		print_back(&p, &arena);
	for (int compress = 0; compress < 2 && !err && p.nnodes <= NODES_MOST; compress++) {
		if (hd_cuts_make(&cuts, &p, (struct hd_cuts_how){ CUTS_MOST, compress }, "f", &arena, &diag))
			continue;
		for (uint32_t v = 0; v < HD_NPART_VARIANTS; v++)
			partition(&cuts, (struct hd_part_how){ .variant = (enum hd_part_variant)v,
				.nlevels = 1, .level = { { 1 + (uint32_t)(len % 9),
				1e9 } }, .fewer = len & 1 }, &arena);
		plan(&p, &cuts, len, &arena);
	}
	hd_arena_finish(&arena);
	return 0;
}
