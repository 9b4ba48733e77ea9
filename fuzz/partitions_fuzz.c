/* A file of partitions is understood or refused with a sentence; what is understood is a setting that the
 * machine takes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/partitions.h"

/* As in yaml_fuzz.c: the library loses a buffer of a refused file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfyaml"; }

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct hd_pools pools = { 0 };
	struct hd_partitions partitions;
	struct hd_dispatch_partition is[HD_DISPATCH_PARTITIONS];
	struct hd_dispatch_limit limit[2];
	struct hd_dispatch *d = NULL;
	struct hd_diag diag = { "" };
	struct hd_arena arena;

	if (hd_pools_add(&pools, "fast:3:2", NULL) || hd_pools_add(&pools, "slow:4", NULL) ||
		hd_pools_open(&pools, NULL, NULL))
		abort();
	hd_arena_init(&arena, 64 << 20);
	enum hd_err err = hd_partitions_read(&partitions, "f", (const char *)bytes, len, &pools, &arena,
		&diag);
	if ((err && (!diag.text[0] || partitions.n)) || (!err && !partitions.n) ||
		(partitions.standard != HD_PARTITIONS_NONE && partitions.standard >= partitions.n))
		abort();
	for (uint32_t i = 0; i < partitions.n; i++) {
		is[i] = partitions.of[i].is;
		if (hd_partition_limits(&partitions.of[i], "ada", limit) > 2 ||
			hd_partitions_find(&partitions, is[i].name) != i)
			abort();
	}
	const struct hd_dispatch_setting set = { .policy = "fifo", .ntypes = pools.ntypes, .type = pools.type,
		.npartitions = partitions.n, .partition = is, .began_s = -1 };
	if (!err && hd_dispatch_create(&d, &set, NULL, &diag))
		abort();
	hd_dispatch_destroy(d);
	hd_arena_finish(&arena);
	return 0;
}
