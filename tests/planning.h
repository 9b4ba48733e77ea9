/* testing.h -- what the tests of this room share: an arena that is made and dropped with each test, dice,
 * schedules by name and from text, chains of nodes, and published files. For tests only: what goes wrong
 * in here fails the test. */
#ifndef HD_TESTS_PLANNING_H
#define HD_TESTS_PLANNING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost/stage_costs.h"
#include "pipeline/generate.h"
#include "tests/shared_file.h"

/* Each test program has its own. The fixtures make and drop it. */
static struct hd_arena arena;

static inline int make_arena(void **state)
{
	(void)state;
	hd_arena_init(&arena, 0);
	return 0;
}

static inline int drop_arena(void **state)
{
	(void)state;
	hd_arena_finish(&arena);
	return 0;
}

/* The same numbers from the same start, on every machine. */
struct hd_dice { uint64_t at; };

static inline uint32_t hd_roll(struct hd_dice *d, uint32_t below)
{
	d->at = d->at * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)((d->at >> 33) % below);
}

/* v 0: the kind's own number of chunks. */
static inline struct hd_schedule hd_named_schedule(const char *name, uint32_t p, uint32_t m, uint32_t v)
{
	struct hd_schedule s = { .heading = name };
	struct hd_diag diag = { "" };
	const struct hd_schedule_ask ask = { .name = name, .p = p, .m = m, .v = v };

	CHECK(hd_schedule_make(&s, &ask, &arena, &diag) == HD_OK, "%s p %u m %u v %u: %s", name, p, m, v,
		diag.text);
	return s;
}

static inline struct hd_schedules hd_parsed_schedules(const char *text)
{
	struct hd_schedules all = { 0 };
	struct hd_diag diag = { "" };

	CHECK(hd_schedules_parse(&all, text, strlen(text), "s.txt", &arena, &diag) == HD_OK, "%s", diag.text);
	return all;
}

static inline struct hd_schedule hd_parsed_schedule(const char *text)
{
	struct hd_schedules all = hd_parsed_schedules(text);

	CHECK(all.len == 1, "%u schedules in %s", all.len, text);
	return all.at[0];
}

static inline const char *hd_printed_schedule(const struct hd_schedule *s)
{
	struct hd_text text;

	hd_text_init(&text, &arena);
	hd_schedule_print(s, &text);
	return text.at;
}

/* The text of a published file (tests/shared_file.h); NULL: there is none, and the test may SKIP. */
static inline char *hd_shared_text(const char *name)
{
	char path[512];
	size_t len;

	snprintf(path, sizeof path, "data/%s", name);
	return (char *)shared_bytes(path, &arena, &len);
}

/* n nodes n0, n1, ... in a row, one output each, that cost nothing yet; room for as many edges again. */
static inline struct hd_profile hd_chain_profile(uint32_t n)
{
	struct hd_profile p = { .method = HD_PROFILE_MODELLED, .device_kind = "", .device_name = "",
		.isa = "", .dtype = "", .ignored = "", .vn_size = 1,
		.threads = 1, .tensor_shards = 1, .nnodes = n,
		.node = hd_arena_take(&arena, n, sizeof *p.node), .nedges = n - 1,
		.edge = hd_arena_take(&arena, 2 * (size_t)n, sizeof *p.edge) };

	for (uint32_t i = 0; i < n; i++) {
		char *id = hd_arena_take(&arena, 16, 1);
		snprintf(id, 16, "n%u", i);
		p.node[i] = (struct hd_profile_node){ .id = id, .op = "op", .tied = "", .r_ns = -1,
			.out = hd_arena_take(&arena, 1, sizeof *p.node[i].out), .nouts = 1, .act_w = 1,
			.recompute_ok = true };
		if (i)
			p.edge[i - 1] = (struct hd_profile_edge){ i - 1, i, 0 };
	}
	return p;
}

static inline void hd_sums_of(struct hd_cut_sums *sums, struct hd_cuts *cuts, const struct hd_profile *p,
	struct hd_cuts_how how)
{
	struct hd_diag diag = { "" };

	CHECK(hd_cuts_make(cuts, p, how, "g", &arena, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_cut_sums_make(sums, p, cuts, &arena, &diag) == HD_OK, "%s", diag.text);
}

#endif
