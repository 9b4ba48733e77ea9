#include "data/prefetch.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "sys/clock.h"
#include "sys/failpoint.h"
#include "sys/lock.h"
#include "sys/memory.h"
#include "sys/thread.h"
#include "data/step_rows.h"

/* A place is FREE, claimed by one reader (FILLING), or holds the rows of `step` until
 * its consumer gives it back. What is claimed but no longer wanted is dropped once filled. All of it
 * under the lock, except the rows themselves: they belong to the thread that claimed or took the place. */
enum place_state { FREE, FILLING, FULL };
#define NO_STEP UINT64_MAX
/* A FREE place keeps the step that was given back, so that it is not read again; NO_STEP: none was. */
struct prefetch_place { uint64_t step, nrows; enum place_state state; bool dropped; };

struct hd_prefetch {
	struct hd_prefetch_spec spec;
	uint64_t field_at[HD_MAX_FIELDS], spare_at, step_bytes;
	struct hd_memory memory;                         /* [depth, step_bytes] */
	struct prefetch_place *place;                             /* [depth, nvns], owned */
	/* [depth, nvns, per_vn], owned; NULL: not asked for */
	struct hd_sample *name;
	struct hd_lock lock;
	struct hd_cond freed, filled, more;              /* more: readers that are not needed yet */
	uint8_t *wanted;                                 /* [nvns], owned */
	uint64_t nplaces, nfree;                         /* of wanted virtual nodes; nfree: that are FREE */
	uint32_t nreaders, nactive, reach;               /* that have begun, that may read; steps ahead */
	uint32_t nwaiting;                               /* takers */
	int64_t fill_ns;                                 /* what filling a place takes, of late */
	/* the next to be claimed: readers go in this order */
	uint64_t next_step; uint32_t next_vn;
	enum hd_err err;                                 /* of the first failed read */
	struct hd_diag diag;
	bool closed;
	struct hd_clock clock;
	struct hd_thread thread[HD_PREFETCH_THREADS];
};

/* A step is an array per field, of the rows of all virtual nodes, and what each virtual node takes to
 * transform them: its bytes, and where the fields begin. false: beyond counting. */
static bool step_layout(const struct hd_prefetch_spec *spec, uint64_t field_at[HD_MAX_FIELDS],
	uint64_t *spare_at, uint64_t *step_bytes)
{
	uint64_t total = 0, bytes;

	for (uint32_t f = 0; f < spec->set->nfields; f++) {
		field_at[f] = total;
		if (!hd_mul_u64(spec->per_vn, spec->set->field[f].sample_bytes, &bytes) ||
			!hd_mul_u64(bytes, spec->nvns, &bytes)
		    || !hd_add_u64(bytes, HD_ALIGN - 1, &bytes)
		    || !hd_add_u64(total, bytes / HD_ALIGN * HD_ALIGN, &total))
			return false;
	}
	*spare_at = total;
	return hd_mul_u64(spec->nvns, hd_step_spare_bytes(spec->set), &bytes) &&
		hd_add_u64(total, bytes, step_bytes);
}

uint64_t hd_prefetch_bytes(const struct hd_prefetch_spec *spec)
{
	uint64_t field_at[HD_MAX_FIELDS], spare_at, bytes;

	return step_layout(spec, field_at, &spare_at, &bytes) ? bytes : UINT64_MAX;
}

static uint64_t place_index(const struct hd_prefetch *p, uint64_t step, uint32_t vn)
{
	assert(vn < p->spec.nvns);
	return step % p->spec.depth * p->spec.nvns + vn;
}

/* Places that may be held at once, of `reach` steps, and those that are. */
static uint64_t may_hold(const struct hd_prefetch *p) { return p->nplaces / p->spec.depth * p->reach; }
static uint64_t held(const struct hd_prefetch *p) { return p->nplaces - p->nfree; }

/* Readers that found nothing free sleep until half of the places are, or, while a taker waits, until any is:
 * each waking takes a core from a device for longer than it takes to copy the rows of a small virtual
 * node. */
static bool wakes(const struct hd_prefetch *p) { return p->nwaiting || held(p) <= may_hold(p) / 2; }

static uint8_t *rows_of(const struct hd_prefetch *p, uint64_t step, uint32_t vn, uint32_t field)
{
	uint64_t before = vn * p->spec.per_vn * p->spec.set->field[field].sample_bytes;

	return (uint8_t *)p->memory.at + step % p->spec.depth * p->step_bytes + p->field_at[field] + before;
}

static struct hd_sample *names_of(const struct hd_prefetch *p, uint64_t step, uint32_t vn)
{
	return p->name ? p->name + place_index(p, step, vn) * p->spec.per_vn : NULL;
}

/* The rows lie where rows_of() says; the place itself is the caller's to change. */
static enum hd_err fill_place(const struct hd_prefetch *p, uint64_t step, uint32_t vn, uint64_t *nrows,
	struct hd_diag *diag)
{
	const uint64_t spare = hd_step_spare_bytes(p->spec.set);
	struct hd_step_rows rows = { .set = p->spec.set, .split = p->spec.split, .sampler = p->spec.sampler,
		.step = step, .name = names_of(p, step, vn), .ahead = true };

	(void)HD_FAILPOINT(DATA_READ);
	hd_vn_rows(p->spec.per_vn, hd_sampler_rows(p->spec.sampler, step), vn, &rows.first, &rows.end);
	for (uint32_t f = 0; f < p->spec.set->nfields; f++)
		rows.out[f] = rows_of(p, step, vn, f);
	if (spare)
		rows.spare = (uint8_t *)p->memory.at + step % p->spec.depth * p->step_bytes + p->spare_at +
			vn * spare;
	*nrows = rows.end - rows.first;
	return hd_step_rows_read(&rows, diag);
}

static void pass_by(struct hd_prefetch *p)
{
	p->next_vn = (p->next_vn + 1) % p->spec.nvns;
	p->next_step += p->next_vn == 0;
}

/* The next place in order that is still to be filled; NULL: nothing is wanted. A place that is wanted
 * holds no step further than `depth` from its consumer's, so the search ends. */
static struct prefetch_place *next_place(struct hd_prefetch *p)
{
	while (p->nplaces) {
		struct prefetch_place *place = &p->place[place_index(p, p->next_step, p->next_vn)];
		if (p->wanted[p->next_vn] && (place->dropped || place->step != p->next_step))
			return place;
		pass_by(p);
	}
	return NULL;
}

/* Claims the next place, waiting until it is free; NULL: nothing more is to be read. Under the lock. */
static struct prefetch_place *claim(struct hd_prefetch *p, uint64_t *step, uint32_t *vn)
{
	for (;;) {
		struct prefetch_place *place = next_place(p);
		if (p->closed || p->err != HD_OK || (p->spec.end_step && p->next_step >= p->spec.end_step))
			return NULL;
		if (place && place->state == FREE && held(p) < may_hold(p)) {
			place->state = FILLING;
			p->nfree--;
			place->step = *step = p->next_step;
			*vn = p->next_vn;
			pass_by(p);
			return place;
		}
		(void)hd_cond_wait(&p->freed, &p->lock,
			hd_clock_now_ns(&p->clock) + (int64_t)p->spec.look_ms * HD_NS_PER_MS);
	}
}

/* What became of a place that was FILLING; under the lock. */
static void settle(struct hd_prefetch *p, struct prefetch_place *place, uint32_t vn, enum hd_err err,
	uint64_t nrows,
	const struct hd_diag *diag)
{
	if (place->dropped) {
		*place = (struct prefetch_place){ .step = NO_STEP };
		p->nfree += p->wanted[vn];
		hd_cond_wake(&p->freed);
	} else if (err == HD_OK) {
		place->nrows = nrows;
		place->state = FULL;
	} else if (p->err == HD_OK) {
		p->err = err;
		p->diag = *diag;
		hd_cond_wake(&p->freed);                 /* the other readers: end */
	}
}

static uint64_t now(const struct hd_prefetch *p) { return p->spec.filled ? p->spec.now(p->spec.user) : 0; }

/* Under the lock. */
static void tell(struct hd_prefetch *p, uint32_t vn, uint64_t began, uint64_t nrows)
{
	uint64_t bytes = 0;

	if (!p->spec.filled)
		return;
	for (uint32_t f = 0; f < p->spec.set->nfields; f++)
		bytes += nrows * p->spec.set->field[f].sample_bytes;
	p->spec.filled(p->spec.user, vn, began, bytes);
}

static void read_ahead(void *user)
{
	struct hd_prefetch *p = user;
	struct hd_diag diag = { "" };
	struct prefetch_place *place;
	uint64_t step, nrows = 0;
	uint32_t vn;

	hd_lock_take(&p->lock);
	for (const uint32_t own = p->nreaders++; own >= p->nactive && !p->closed;)
		(void)hd_cond_wait(&p->more, &p->lock,
			hd_clock_now_ns(&p->clock) + (int64_t)p->spec.look_ms * HD_NS_PER_MS);
	while ((place = claim(p, &step, &vn))) {
		hd_lock_give(&p->lock);
		const uint64_t began = now(p);
		const int64_t began_ns = hd_clock_now_ns(&p->clock);
		enum hd_err err = fill_place(p, step, vn, &nrows, &diag);
		hd_lock_take(&p->lock);
		p->fill_ns += (hd_clock_now_ns(&p->clock) - began_ns - p->fill_ns) / (p->fill_ns ? 4 : 1);
		if (!err)
			tell(p, vn, began, nrows);
		settle(p, place, vn, err, nrows, &diag);
		hd_cond_wake(&p->filled);
	}
	hd_lock_give(&p->lock);
}

static enum hd_err check_spec(struct hd_prefetch *p, struct hd_diag *diag)
{
	struct hd_prefetch_spec *spec = &p->spec;
	uint64_t step_bytes = hd_prefetch_bytes(spec);

	assert(spec->nvns > 0 && spec->per_vn > 0 && spec->split < spec->set->nsplits &&
		spec->nthreads <= HD_PREFETCH_THREADS);
	assert(!spec->filled == !spec->now);
	assert(spec->depth <= HD_PREFETCH_DEPTH &&
		spec->sampler->count <= spec->set->split[spec->split].count);
	spec->depth = spec->depth ? spec->depth : 2;
	spec->limit_ms = spec->limit_ms ? spec->limit_ms : HD_PREFETCH_LIMIT_MS;
	spec->look_ms = spec->look_ms ? spec->look_ms : 1000;
	if (spec->memory_bytes && spec->memory_bytes / spec->depth < step_bytes)
		spec->depth = spec->memory_bytes < step_bytes ? 1 :
			(uint32_t)(spec->memory_bytes / step_bytes);
	if (step_bytes >= SIZE_MAX / spec->depth)
		return hd_fail(diag, HD_E_INVAL, "the samples of one step are more than can be addressed: "
			"make batch.global smaller");
	(void)step_layout(spec, p->field_at, &p->spare_at, &p->step_bytes);
	p->nactive = spec->first_threads && spec->first_threads < spec->nthreads ? spec->first_threads :
		spec->nthreads;
	p->reach = spec->first_depth && spec->first_depth < spec->depth ? spec->first_depth : spec->depth;
	return HD_OK;
}

static void set_wanted(struct hd_prefetch *p, const uint8_t *wanted)
{
	p->nplaces = p->nfree = 0;
	for (uint32_t v = 0; v < p->spec.nvns; v++) {
		p->wanted[v] = !wanted || wanted[v];
		p->nplaces += p->wanted[v] ? p->spec.depth : 0;
	}
	for (uint64_t i = 0; i < (uint64_t)p->spec.depth * p->spec.nvns; i++)
		p->nfree += p->wanted[i % p->spec.nvns] && p->place[i].state == FREE;
}

void hd_prefetch_want(struct hd_prefetch *p, uint64_t step, const uint8_t *wanted)
{
	assert(!p->spec.end_step);
	hd_lock_take(&p->lock);
	for (uint64_t i = 0; i < (uint64_t)p->spec.depth * p->spec.nvns; i++) {
		struct prefetch_place *place = &p->place[i];
		bool keep = place->state != FREE && (!wanted || wanted[i % p->spec.nvns]) &&
			place->step >= step;
		if (place->state == FILLING)
			place->dropped = !keep;
		else if (!keep)
			*place = (struct prefetch_place){ .step = NO_STEP };
	}
	set_wanted(p, wanted);
	p->next_step = step;
	p->next_vn = 0;
	hd_cond_wake(&p->freed);
	hd_lock_give(&p->lock);
}

/* Rows of virtual nodes of others are never written to: with huge pages the ends of each array of a field
 * would hold as much again. */
static enum hd_memory_how how_taken(const struct hd_prefetch *p)
{
	for (uint32_t v = 0; v < p->spec.nvns; v++)
		if (!p->wanted[v])
			return HD_MEMORY_SMALL;
	return HD_MEMORY_LAZY;
}

static enum hd_err take_memory(struct hd_prefetch *p, struct hd_diag *diag)
{
	uint64_t nplaces = (uint64_t)p->spec.depth * p->spec.nvns;

	p->place = hd_alloc(nplaces * sizeof *p->place);
	p->wanted = hd_alloc(p->spec.nvns);
	p->name = p->spec.named ? hd_alloc(nplaces * p->spec.per_vn * sizeof *p->name) : NULL;
	if (!p->place || !p->wanted || (p->spec.named && !p->name))
		return hd_fail(diag, HD_E_NOMEM, "no memory for %" PRIu64 " places of the reader", nplaces);
	for (uint64_t i = 0; i < nplaces; i++)
		p->place[i] = (struct prefetch_place){ .step = NO_STEP };
	set_wanted(p, p->spec.wanted);
	return hd_memory_take(p->spec.depth * p->step_bytes, how_taken(p), &p->memory, diag);
}

enum hd_err hd_prefetch_create(struct hd_prefetch **prefetch, const struct hd_prefetch_spec *spec,
	struct hd_diag *diag)
{
	struct hd_prefetch *p = hd_alloc(sizeof *p);

	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory to read ahead");
	memset(p, 0, sizeof *p);
	p->spec = *spec;
	p->next_step = spec->first_step;
	hd_clock_real(&p->clock);
	hd_lock_init(&p->lock);
	hd_cond_init(&p->freed);
	hd_cond_init(&p->filled);
	hd_cond_init(&p->more);
	enum hd_err err = check_spec(p, diag);
	if (err == HD_OK)
		err = take_memory(p, diag);
	for (uint32_t i = 0; err == HD_OK && i < p->spec.nthreads; i++)
		err = hd_thread_start(&p->thread[i], "hd-read", -1, read_ahead, p, diag);
	if (err != HD_OK) {
		hd_prefetch_destroy(p);
		return err;
	}
	*prefetch = p;
	return HD_OK;
}

void hd_prefetch_close(struct hd_prefetch *p)
{
	hd_lock_take(&p->lock);
	p->closed = true;
	hd_cond_wake(&p->freed);
	hd_cond_wake(&p->filled);
	hd_cond_wake(&p->more);
	hd_lock_give(&p->lock);
}

void hd_prefetch_destroy(struct hd_prefetch *p)
{
	if (!p)
		return;
	hd_prefetch_close(p);
	for (uint32_t i = 0; i < HD_PREFETCH_THREADS; i++)
		hd_thread_join(&p->thread[i]);
	hd_cond_finish(&p->more);
	hd_cond_finish(&p->filled);
	hd_cond_finish(&p->freed);
	hd_lock_finish(&p->lock);
	hd_memory_give(&p->memory);
	hd_free(p->wanted);
	hd_free(p->name);
	hd_free(p->place);
	hd_free(p);
}

/* Whether nothing more will be read; under the lock. */
static enum hd_err ended(const struct hd_prefetch *p, uint64_t step, struct hd_diag *diag)
{
	if (p->err != HD_OK)
		return hd_fail(diag, p->err, "%s", p->diag.text);
	if (p->closed)
		return hd_fail(diag, HD_E_INTERRUPT, "reading was ended before step %" PRIu64, step);
	return HD_OK;
}

/* The taker reads for itself into a place that is free. Under the lock, which it gives meanwhile. */
static enum hd_err fill_here(struct hd_prefetch *p, struct prefetch_place *place, uint64_t step, uint32_t vn,
	struct hd_diag *diag)
{
	struct hd_diag failed = { "" };
	uint64_t nrows = 0;
	enum hd_err err = ended(p, step, diag);

	if (err != HD_OK)
		return err;
	place->state = FILLING;
	place->step = step;
	p->nfree -= p->wanted[vn];
	hd_lock_give(&p->lock);
	const uint64_t began = now(p);
	err = fill_place(p, step, vn, &nrows, &failed);
	hd_lock_take(&p->lock);
	if (!err)
		tell(p, vn, began, nrows);
	settle(p, place, vn, err, nrows, &failed);
	return err == HD_OK ? HD_OK : ended(p, step, diag);
}

static bool holds(const struct prefetch_place *place, uint64_t step) { return place->state == FULL &&
	place->step == step; }

/* A taker waits. Under the lock. */
static void grow(struct hd_prefetch *p)
{
	if (p->fill_ns < HD_PREFETCH_FAR_NS)
		return;
	p->reach = p->reach < p->spec.depth / 2 ? 2 * p->reach : p->spec.depth;
	if (p->nactive == p->spec.nthreads)
		return;
	p->nactive = p->nactive < p->spec.nthreads / 2 ? 2 * p->nactive : p->spec.nthreads;
	hd_cond_wake(&p->more);
}

/* Meanwhile, too: what reads looks at it, to see whether its reading is waited for. Under the lock. */
static void count_wait(struct hd_prefetch *p, int64_t *since_ns)
{
	const int64_t now_ns = p->spec.set->waited_ns ? hd_clock_now_ns(&p->clock) : 0;

	if (p->spec.set->waited_ns)
		*p->spec.set->waited_ns += now_ns - *since_ns;
	*since_ns = now_ns;
}

/* Waits until the place holds the step; without threads waits until it is free and fills it. Under the
 * lock. */
static enum hd_err wait_filled(struct hd_prefetch *p, struct prefetch_place *place, uint64_t step,
	uint32_t vn, int64_t *since_ns, struct hd_diag *diag)
{
	const bool ahead = p->spec.nthreads > 0 && p->wanted[vn];
	int64_t until_ns = 0;
	enum hd_err err;

	while (ahead ? !holds(place, step) : place->state != FREE) {
		if ((err = ended(p, step, diag)) != HD_OK)
			return err;
		if (until_ns == 0) {
			until_ns = hd_clock_now_ns(&p->clock) + (int64_t)p->spec.limit_ms * HD_NS_PER_MS;
			if (ahead)
				grow(p);
			hd_cond_wake(&p->freed);         /* whatever is free is wanted now */
		} else if (hd_clock_now_ns(&p->clock) >= until_ns) {
			return hd_fail(diag, HD_E_IO,
				"the samples of step %" PRIu64 ", virtual node %u were not read within %u "
				"s: is the disk or the network under %s stuck?",
				step, vn, p->spec.limit_ms / 1000, p->spec.set->about);
		}
		(void)hd_cond_wait(ahead ? &p->filled : &p->freed, &p->lock, until_ns);
		count_wait(p, since_ns);
	}
	return ahead ? HD_OK : fill_here(p, place, step, vn, diag);
}

enum hd_err hd_prefetch_take(struct hd_prefetch *p, uint64_t step, uint32_t vn,
	const void *input[HD_MAX_FIELDS], uint64_t *nrows,
	struct hd_diag *diag)
{
	struct prefetch_place *place = &p->place[place_index(p, step, vn)];

	assert(step >= p->spec.first_step && (!p->spec.end_step || step < p->spec.end_step));
	int64_t since_ns = p->spec.set->waited_ns ? hd_clock_now_ns(&p->clock) : 0;
	hd_lock_take(&p->lock);
	const bool waits = !holds(place, step);
	p->nwaiting += waits;
	enum hd_err err = wait_filled(p, place, step, vn, &since_ns, diag);
	p->nwaiting -= waits;
	if (waits)
		count_wait(p, &since_ns);
	if (err == HD_OK)
		*nrows = place->nrows;
	hd_lock_give(&p->lock);
	for (uint32_t f = 0; err == HD_OK && f < p->spec.set->nfields; f++)
		input[f] = rows_of(p, step, vn, f);
	return err;
}

bool hd_prefetch_ready(struct hd_prefetch *p, uint64_t step, uint32_t vn)
{
	const struct prefetch_place *place = &p->place[place_index(p, step, vn)];

	hd_lock_take(&p->lock);
	const bool ready = p->spec.nthreads > 0 && p->wanted[vn] ? holds(place, step) : place->state == FREE;
	hd_lock_give(&p->lock);
	return ready;
}

const struct hd_sample *hd_prefetch_names(const struct hd_prefetch *p, uint64_t step,
	uint32_t vn) { return names_of(p, step, vn); }

void hd_prefetch_done(struct hd_prefetch *p, uint64_t step, uint32_t vn)
{
	struct prefetch_place *place = &p->place[place_index(p, step, vn)];

	hd_lock_take(&p->lock);
	assert(place->state == FULL && place->step == step);
	place->state = FREE;
	p->nfree += p->wanted[vn];
	if (wakes(p) || p->spec.nthreads == 0 || !p->wanted[vn])
		hd_cond_wake(&p->freed);
	hd_lock_give(&p->lock);
}

uint32_t hd_prefetch_depth(const struct hd_prefetch *p)
{
	return p->spec.depth;
}
