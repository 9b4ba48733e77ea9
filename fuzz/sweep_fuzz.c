/* Any bytes are refused with a reason, or are a sweep all of whose trials have values and whose rungs ascend;
 * behind a 0 they are its record. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sweep/draw.h"
#include "sweep/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* As in yaml_fuzz.c: the library loses a buffer of a refused file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

static struct hd_trials trials;

static void replay(const struct hd_sweep *s, const uint64_t *rung, uint32_t n, const char *text, size_t len)
{
	const struct hd_hash none = { { 0 } };
	struct hd_diag diag = { "" };
	bool began = false;
	enum hd_err err = hd_sweep_replay("r", text, len, &none, s, rung, n, &trials, &began, &diag);

	if (err && !diag.text[0])
		abort();
	if (!err && began && hd_trials_steps(&trials) > rung[n - 1] * s->ntrials && !trials.nrunning &&
		s->ntrials == 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint8_t *zero = len ? memchr(bytes, 0, len) : NULL;
	const size_t file = zero ? (size_t)(zero - bytes) : len;
	uint64_t rung[HD_SWEEP_RUNGS];
	struct hd_diag diag = { "" };
	struct hd_sweep_value room;
	struct hd_arena arena;
	struct hd_sweep s;
	uint32_t n = 0;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_sweep_parse(&s, "f", (const char *)bytes, file, &arena, &diag);
	if (err && !diag.text[0])
		abort();
	for (uint32_t i = 0; !err && i < s.ntrials; i++)
		for (uint32_t a = 0; a < s.naxes; a++)
			if (!*hd_sweep_value(&s, i, a, &room))
				abort();
	if (!err && !hd_sweep_rungs(&s, 100000, rung, &n, NULL)) {
		for (uint32_t k = 1; k < n; k++)
			if (rung[k] <= rung[k - 1])
				abort();
		replay(&s, rung, n, zero ? (const char *)zero + 1 : "", zero ? len - file - 1 : 0);
	}
	hd_arena_finish(&arena);
	return 0;
}
