/* Any bytes are refused with a reason, or are a state on which policies answer within its devices: those
 * without a solver, and of few jobs those with one. */
#include <stdint.h>
#include <stdlib.h>

#include "scheduler/sched_policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void try_policy(const char *name, const struct hd_sched_state *state, struct hd_arena *arena)
{
	struct hd_policy_setting set = { .lp_iterations = 2000 };
	struct hd_policy *policy = NULL;
	struct hd_shares out;

	if (hd_policy_parse(&set, name, NULL) || hd_policy_create(&policy, &set, NULL))
		abort();
	enum hd_err err = hd_policy_allocate(policy, state, arena, &out, NULL);
	if (err == HD_E_BUG)
		abort();
	hd_policy_destroy(policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char *const solved[] = { "las", "ftf", "makespan", "sum-packed", "cost",
		"hierarchy-packed", "heddle" };
	struct hd_arena arena;
	const struct hd_json *json;
	struct hd_sched_state state;
	struct hd_diag diag = { "" };

	hd_arena_init(&arena, 64u << 20);
	enum hd_err err = hd_json_parse(&arena, "f", (const char *)bytes, len, &json, &diag);
	if (!err)
		err = hd_sched_read(&state, json, NULL, &arena, &diag);
	if (err && !diag.text[0])
		abort();
	if (!err && state.njobs <= 64) {
		try_policy("isolated", &state, &arena);
		try_policy("fifo", &state, &arena);
		try_policy("gandiva", &state, &arena);
	}
	if (!err && state.njobs <= 8 && hd_policy_has_lp())
		for (size_t i = 0; i < sizeof solved / sizeof *solved; i++)
			try_policy(solved[i], &state, &arena);
	hd_arena_finish(&arena);
	return 0;
}
