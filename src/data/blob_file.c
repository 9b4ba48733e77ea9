#include "data/blob_file_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/clock.h"

/* Threads that read for whoever calls: a call is a batch of requests, each taken by one thread, the caller
 * among them. A thread reads into memory of its own, whole blocks where the file is read directly. */
enum { LOOK_MS = 1000 };

struct hd_pread_batch {
	const struct hd_request *request;
	uint32_t n, next, under_way, depth;
	uint32_t failed;                  /* the first in order that did; n: none */
	enum hd_err err;
	struct hd_diag diag;
	struct hd_pread_batch *after;
};

enum hd_err hd_pread_room(struct hd_pread_room *bounce, size_t len, struct hd_diag *diag)
{
	if (bounce->memory.len_bytes >= len)
		return HD_OK;
	hd_memory_give(&bounce->memory);
	return hd_memory_take(len, HD_MEMORY_LAZY, &bounce->memory, diag);
}

/* The request out of whole blocks; *got: how much of it there was. */
static enum hd_err read_from(const struct hd_file_store *f, const struct hd_direct *file,
	struct hd_pread_room *bounce,
	const struct hd_request *r, size_t *got, struct hd_diag *diag)
{
	const uint64_t align = file->align ? file->align : 1, before = r->offset % align;
	const struct hd_range *whole = r->range;
	const size_t len = (size_t)((before + r->len + align - 1) / align * align);

	*got = 0;
	if (align == 1 && r->nranges == 1 && whole->offset <= r->offset)
		return hd_direct_read(file, f->store.name, (char *)whole->into + (r->offset - whole->offset),
			r->len, (int64_t)r->offset, got, diag);
	enum hd_err err = hd_pread_room(bounce, len, diag);
	if (!err)
		err = hd_direct_read(file, f->store.name, bounce->memory.at, len,
			(int64_t)(r->offset - before),
			got, diag);
	if (err)
		return err;
	*got = *got > before ? *got - before : 0;
	*got = *got < r->len ? *got : r->len;
	if (*got == r->len)
		hd_ranges_put(r, r->offset, (char *)bounce->memory.at + before, r->len);
	return HD_OK;
}

enum hd_err hd_pread_one(const struct hd_file_store *f, struct hd_pread_room *bounce,
	const struct hd_request *r, struct hd_diag *diag)
{
	struct hd_diag why = { "" };
	size_t got;
	enum hd_err err = read_from(f, &f->file, bounce, r, &got, &why);

	if (!err && got == r->len)
		return HD_OK;
	if (err && err != HD_E_IO)
		return hd_fail(diag, err, "%s", why.text);
	why.text[0] = '\0';
	err = read_from(f, &f->buffered, bounce, r, &got, &why);
	if (err)
		return hd_fail(diag, err, "%.300s (byte %" PRIu64 ", tried twice)", why.text, r->offset);
	return got == r->len ? HD_OK : hd_fail(diag, HD_E_INTEGRITY,
		"%s ends at byte %" PRIu64 " where it had %"
		PRIu64 ": it was cut off while it is in use", f->store.name, r->offset + got,
		f->store.size_bytes);
}

/* The next request of the oldest batch that has room for one more in flight; under the lock. */
static struct hd_pread_batch *find(struct hd_file_store *f, const struct hd_pread_batch *only)
{
	for (struct hd_pread_batch *b = f->first; b; b = b->after)
		if (b->next < b->n && b->under_way < b->depth && (!only || b == only))
			return b;
	return NULL;
}

/* Under the lock, which it gives meanwhile. */
static void take_one(struct hd_file_store *f, struct hd_pread_batch *b, struct hd_pread_room *bounce)
{
	struct hd_diag diag = { "" };
	const uint32_t i = b->next++;

	b->under_way++;
	hd_lock_give(&f->lock);
	const int64_t began_ns = hd_clock_now_ns(&f->clock);
	enum hd_err err = hd_pread_one(f, bounce, &b->request[i], &diag);
	hd_blob_served(&f->store, hd_clock_now_ns(&f->clock) - began_ns);
	hd_lock_take(&f->lock);
	b->under_way--;
	if (err && i < b->failed) {
		b->failed = i;
		b->err = err;
		b->diag = diag;
	}
	if (err)
		b->next = b->n;           /* what is not under way is not begun */
	/* whichever thread is here goes on with the next request by itself: waking others for each would cost
	 * more than reading what is in memory */
	if (!b->under_way)
		hd_cond_wake(&f->done);
}

static void read_for_others(void *user)
{
	struct hd_pread_room bounce = { 0 };
	struct hd_file_store *f = user;
	struct hd_pread_batch *b;

	hd_lock_take(&f->lock);
	while (!f->closed)
		if ((b = find(f, NULL)))
			take_one(f, b, &bounce);
		else
			(void)hd_cond_wait(&f->work, &f->lock,
				hd_clock_now_ns(&f->clock) + LOOK_MS * HD_NS_PER_MS);
	hd_lock_give(&f->lock);
	hd_memory_give(&bounce.memory);
}

/* A depth that nothing reads at needs no thread. Fewer threads than asked for read the same. */
static void start_threads(struct hd_file_store *f, uint32_t want)
{
	while (f->nthreads < HD_PREAD_THREADS && f->nthreads < want) {
		if (hd_thread_start(&f->thread[f->nthreads], "hd-pread", -1, read_for_others, f, NULL))
			return;
		f->nthreads++;
	}
}

static enum hd_err read_by_threads(struct hd_file_store *f, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_diag *diag)
{
	struct hd_pread_batch own = { .request = request, .n = n, .depth = depth, .failed = n }, *b, **at;
	struct hd_pread_room bounce = { 0 };

	hd_lock_take(&f->lock);
	if (f->nspares)
		bounce = f->spare[--f->nspares];
	start_threads(f, (depth < n ? depth : n) - 1);
	for (at = &f->first; *at; at = &(*at)->after)
		;
	*at = &own;
	if (n > 1 && depth > 1)
		hd_cond_wake(&f->work);
	while (own.next < own.n || own.under_way)
		if ((b = find(f, &own)))
			take_one(f, b, &bounce);
		else
			(void)hd_cond_wait(&f->done, &f->lock,
				hd_clock_now_ns(&f->clock) + LOOK_MS * HD_NS_PER_MS);
	for (at = &f->first; *at != &own; at = &(*at)->after)
		;
	*at = own.after;
	if (f->nspares < HD_PREAD_SPARES) {
		f->spare[f->nspares++] = bounce;
		bounce = (struct hd_pread_room){ 0 };
	}
	hd_lock_give(&f->lock);
	hd_memory_give(&bounce.memory);
	return own.err ? hd_fail(diag, own.err, "%s", own.diag.text) : HD_OK;
}

static bool is_here(struct hd_file_store *f, void *into, size_t len, uint64_t offset)
{
	const int64_t began_ns = hd_clock_now_ns(&f->clock);
	const bool is = hd_direct_read_here(&f->file, into, len, (int64_t)offset);

	if (is)
		hd_blob_served(&f->store, hd_clock_now_ns(&f->clock) - began_ns);
	return is;
}

/* Each range is a request of its own: there is nothing to be gained by fewer. */
static bool file_read_here(struct hd_blob *store, const struct hd_range *range, uint32_t nranges)
{
	struct hd_file_store *f = (struct hd_file_store *)store;
	bool here = !f->file.align && !f->by_uring;

	for (uint32_t i = 0; i < nranges && here; i++)
		here = is_here(f, range[i].into, range[i].len, range[i].offset);
	return here;
}

/* How many of the requests, from the first on, were all in memory and are read; of few bytes alone. */
static uint32_t read_what_is_here(struct hd_file_store *f, const struct hd_request *request, uint32_t n)
{
	uint64_t bytes = 0;
	uint32_t k = 0;
	bool here = !f->file.align && !f->by_uring;

	for (uint32_t i = 0; i < n; i++)
		bytes += request[i].len;
	here = here && bytes <= HD_BLOB_HERE;
	for (; k < n && here; k += here)
		for (uint32_t i = 0; i < request[k].nranges && here; i++) {
			const struct hd_request *r = &request[k];
			const struct hd_range *range = &r->range[i];
			const uint64_t first = range->offset > r->offset ? range->offset : r->offset;
			const uint64_t range_end = range->offset + range->len, r_end = r->offset + r->len;
			const uint64_t end = range_end < r_end ? range_end : r_end;
			if (first < end)
				here = is_here(f, (char *)range->into + (first - range->offset),
					(size_t)(end - first), first);
		}
	return k;
}

/* What is in memory, and one at a time, is as well read by the caller. */
static enum hd_err file_read(struct hd_blob *store, const struct hd_request *request, uint32_t n,
	uint32_t depth, struct hd_diag *diag)
{
	struct hd_file_store *f = (struct hd_file_store *)store;
	enum hd_err err = f->by_uring && n > 1 && depth > 1 ? hd_blob_uring_read(f, request, n, depth, diag) :
		HD_E_REFUSED;
	const uint32_t k = err == HD_E_REFUSED ? read_what_is_here(f, request, n) : 0;

	if (k == n)
		return HD_OK;
	return err == HD_E_REFUSED ? read_by_threads(f, request + k, n - k, depth, diag) : err;
}

static void file_close(struct hd_blob *store)
{
	struct hd_file_store *f = (struct hd_file_store *)store;

	hd_lock_take(&f->lock);
	f->closed = true;
	hd_cond_wake(&f->work);
	hd_lock_give(&f->lock);
	for (uint32_t i = 0; i < f->nthreads; i++)
		hd_thread_join(&f->thread[i]);
	for (uint32_t i = 0; i < f->nspares; i++)
		hd_memory_give(&f->spare[i].memory);
	hd_blob_uring_close(f);
	hd_direct_close(&f->file);
	hd_direct_close(&f->buffered);
	hd_cond_finish(&f->done);
	hd_cond_finish(&f->work);
	hd_lock_finish(&f->lock);
	hd_free(f);
}

static const struct hd_blob_ops file_ops = { .name = "file", .read = file_read,
	.read_here = file_read_here, .close = file_close };

static bool wants_direct(const char *path, enum hd_blob_direct how, struct hd_diag *diag)
{
	struct hd_memory_info memory;
	struct hd_direct file;

	if (how != HD_DIRECT_AUTO || hd_direct_open(path, false, false, &file, diag))
		return how == HD_DIRECT_ALWAYS;
	hd_direct_close(&file);
	hd_memory_look(&memory);
	return (uint64_t)file.size_bytes > memory.free_bytes / 2;
}

enum hd_err hd_blob_file_open(struct hd_blob **store, const char *path, const struct hd_blob_rules *rules,
	struct hd_diag *diag)
{
	struct hd_file_store *f = hd_alloc(sizeof *f);

	if (!f)
		return hd_fail(diag, HD_E_NOMEM, "no memory to open %s", path);
	memset(f, 0, sizeof *f);
	f->store.ops = &file_ops;
	f->file.id = f->buffered.id = -1;
	snprintf(f->store.name, sizeof f->store.name, "%s", path);
	hd_clock_real(&f->clock);
	hd_lock_init(&f->lock);
	hd_cond_init(&f->work);
	hd_cond_init(&f->done);
	enum hd_err err = hd_direct_open(path, wants_direct(path, rules->direct, NULL),
		rules->direct == HD_DIRECT_ALWAYS, &f->file, diag);
	if (!err)
		err = hd_direct_open(path, false, false, &f->buffered, diag);
	if (err) {
		file_close(&f->store);
		return err;
	}
	f->store.size_bytes = (uint64_t)f->file.size_bytes;
	snprintf(f->store.version, sizeof f->store.version, "%" PRIu64 ".%" PRId64, f->file.inode,
		f->file.changed_wall_ns);
	f->by_uring = (rules->api == HD_API_URING || (rules->api == HD_API_AUTO && f->file.align)) &&
		hd_blob_uring_probe(f);
	f->store.by = f->by_uring ? "io_uring" : "threads";
	*store = &f->store;
	return HD_OK;
}
