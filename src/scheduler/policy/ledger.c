#include <string.h>

#include "base/alloc.h"
#include "scheduler/policy/int.h"

static uint64_t id_at(const struct hd_ledger *l, uint32_t i)
{
	uint64_t id;

	memcpy(&id, (const char *)l->at + i * l->size, sizeof id);
	return id;
}

static uint32_t place(const struct hd_ledger *l, uint64_t id)
{
	uint32_t lo = 0, hi = l->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (id_at(l, mid) < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void *hd_ledger_find(const struct hd_ledger *l, uint64_t id)
{
	uint32_t i = place(l, id);

	return i < l->n && id_at(l, i) == id ? (char *)l->at + i * l->size : NULL;
}

void *hd_ledger_add(struct hd_ledger *l, uint64_t id)
{
	uint32_t i = place(l, id);
	char *at = l->at;

	if (i < l->n && id_at(l, i) == id)
		return at + i * l->size;
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? 2 * l->cap : 16;
		char *more = hd_alloc(cap * l->size);
		if (!more)
			return NULL;
		if (l->n)
			memcpy(more, at, l->n * l->size);
		hd_free(at);
		l->at = at = more;
		l->cap = cap;
	}
	memmove(at + (i + 1) * l->size, at + i * l->size, (l->n - i) * l->size);
	memset(at + i * l->size, 0, l->size);
	memcpy(at + i * l->size, &id, sizeof id);
	l->n++;
	return at + i * l->size;
}

void hd_ledger_drop(struct hd_ledger *l, uint64_t id)
{
	uint32_t i = place(l, id);
	char *at = l->at;

	if (i == l->n || id_at(l, i) != id)
		return;
	l->n--;
	memmove(at + i * l->size, at + (i + 1) * l->size, (l->n - i) * l->size);
}

void hd_ledger_keep(struct hd_ledger *l, const struct hd_sched_state *state)
{
	uint32_t kept = 0;
	char *at = l->at;

	for (uint32_t i = 0; i < l->n; i++)
		if (hd_sched_find(state, id_at(l, i)) != HD_SCHED_NONE)
			memmove(at + kept++ * l->size, at + i * l->size, l->size);
	l->n = kept;
}

void hd_ledger_finish(struct hd_ledger *l)
{
	hd_free(l->at);
	l->at = NULL;
	l->n = l->cap = 0;
}
