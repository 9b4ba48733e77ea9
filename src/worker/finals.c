#include "worker/finals.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

enum hd_err hd_finals_init(struct hd_finals *f, uint32_t nbuckets, void (*wake)(void *user), void *user,
	struct hd_diag *diag)
{
	*f = (struct hd_finals){ .words = (nbuckets + 63) / 64, .wake = wake, .user = user };
	f->bit     = hd_alloc(f->words * sizeof *f->bit);
	f->fetched = hd_alloc(f->words * sizeof *f->fetched);
	if (!f->bit || !f->fetched) {
		hd_free(f->bit);
		hd_free(f->fetched);
		*f = (struct hd_finals){ 0 };
		return hd_fail(diag, HD_E_NOMEM, "no memory for notes of %u buckets", nbuckets);
	}
	memset(f->bit, 0, f->words * sizeof *f->bit);
	hd_lock_init(&f->lock);
	return HD_OK;
}

void hd_finals_finish(struct hd_finals *f)
{
	if (!f->bit)
		return;
	hd_lock_finish(&f->lock);
	hd_free(f->bit);
	hd_free(f->fetched);
	*f = (struct hd_finals){ 0 };
}

void hd_finals_begin(struct hd_finals *f, const struct hd_finals_pass *pass)
{
	hd_lock_take(&f->lock);
	f->of = *pass;
	f->some = false;
	memset(f->bit, 0, f->words * sizeof *f->bit);
	hd_lock_give(&f->lock);
}

void hd_finals_note(struct hd_finals *f, uint32_t bucket)
{
	hd_lock_take(&f->lock);
	assert(bucket / 64 < f->words);
	bool first = !f->some;
	f->some = true;
	f->bit[bucket / 64] |= UINT64_C(1) << bucket % 64;
	hd_lock_give(&f->lock);
	if (first)
		f->wake(f->user);
}

const uint64_t *hd_finals_fetch(struct hd_finals *f, uint32_t round, struct hd_finals_pass *pass)
{
	hd_lock_take(&f->lock);
	bool some = f->some && f->of.round == round;
	*pass = f->of;
	if (some) {
		memcpy(f->fetched, f->bit, f->words * sizeof *f->bit);
		memset(f->bit, 0, f->words * sizeof *f->bit);
		f->some = false;
	}
	hd_lock_give(&f->lock);
	return some ? f->fetched : NULL;
}
