#include "trace/names.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"

void hd_names_init(struct hd_names *names, char *table, uint32_t cap_bytes, _Atomic uint32_t *used)
{
	assert(cap_bytes >= 2);
	memset(names, 0, sizeof *names);
	names->table = table;
	names->used = used;
	names->cap_bytes = cap_bytes;
	memcpy(table, "?", 2);
	atomic_store_explicit(used, 2, memory_order_release);
}

static bool holds(const struct hd_names *names, uint32_t name, const char *text, size_t len)
{
	return memcmp(names->table + name, text, len) == 0 && names->table[name + len] == 0;
}

uint32_t hd_names_intern(struct hd_names *names, const char *text, size_t len)
{
	uint32_t used = atomic_load_explicit(names->used, memory_order_relaxed);
	const char *end = memchr(text, 0, len);

	if (end)
		len = (size_t)(end - text);
	if (len > HD_TRACE_NAME_MAX)
		len = HD_TRACE_NAME_MAX;
	uint32_t at = (uint32_t)hd_hash64(text, len) % HD_NAMES_INDEX;
	for (; names->index[at]; at = (at + 1) % HD_NAMES_INDEX)
		if (names->index[at] + len < used && holds(names, names->index[at], text, len))
			return names->index[at];
	/* one place of the index stays free, or the search above would not end */
	if (names->cap_bytes - used < len + 1 || names->nnames + 1 >= HD_NAMES_INDEX) {
		names->nrefused++;
		return 0;
	}
	memcpy(names->table + used, text, len);
	names->table[used + len] = 0;
	names->index[at] = used;
	names->nnames++;
	atomic_store_explicit(names->used, used + (uint32_t)len + 1, memory_order_release);
	return used;
}

const char *hd_names_text(const char *table, uint32_t used, uint32_t name)
{
	bool begins = name < used && (name == 0 || table[name - 1] == 0);

	return begins && memchr(table + name, 0, used - name) ? table + name : "?";
}
