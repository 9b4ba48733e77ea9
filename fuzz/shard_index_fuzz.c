/* An index that is accepted has samples inside its shard, and is printed as it was; a cache's note, likewise
 * read from a file that others may write, is read or refused. */
#include <stdlib.h>
#include <string.h>

#include "data/cache.h"
#include "data/shard_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const uint64_t size = 1 << 20;
	struct hd_shard_index index;
	struct hd_arena arena;
	struct hd_hash hash;
	uint64_t length;

	hd_arena_init(&arena, 0);
	if (hd_shard_index_parse(bytes, len, size, &arena, &index) == HD_OK) {
		size_t printed;
		for (uint64_t i = 0; i < index.n; i++)
			if (index.sample[i].offset + index.sample[i].len > size)
				abort();
		const uint8_t *again = hd_shard_index_print(&index, &arena, &printed);
		if (!again || printed != len || memcmp(again, bytes, len) != 0)
			abort();
	}
	(void)!hd_cache_parse((const char *)bytes, len, &length, &hash);
	hd_arena_finish(&arena);
	return 0;
}
