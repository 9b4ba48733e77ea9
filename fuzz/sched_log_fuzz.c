/* Any bytes are refused with a reason, or are a log whose setting keeps its limits; a log differs from
 * itself nowhere. */
#include <stdint.h>
#include <stdlib.h>

#include "clustersim/sched_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct hd_sched_log log;
	struct hd_sched_log_difference where;
	struct hd_arena arena;
	struct hd_diag diag = { "" };
	struct hd_listed_job job;

	hd_arena_init(&arena, 64u << 20);
	enum hd_err err = hd_sched_log_read(&log, "f", bytes, len, &arena, &diag);
	if (err && !diag.text[0])
		abort();
	if (!err) {
		size_t njobs = 0;
		while (log.setting.next(log.setting.source, &job))
			njobs++;
		if (njobs != log.list.n || !log.setting.ntypes || !log.policy.policy)
			abort();
	}
	if (hd_sched_log_differ((const char *)bytes, len, (const char *)bytes, len, &where))
		abort();
	hd_arena_finish(&arena);
	return 0;
}
