#include "engine/recorder_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/num.h"
#include "sys/signal.h"

/* The thread behind a recording: the clock in the header, full traces, copies of the flight file. It reads
 * what others record as any reader does; nothing waits for it. */

enum { LOOK_NS = 1000000000, DRAIN_NS = 20000000, STALL_STEPS = 10, COPY_WORDS = HD_RECORDER_COPY };
#define STALL_NS UINT64_C(5000000000)

static void say(struct hd_recorder *r, const char *kind, const char *text)
{
	struct hd_recorder_back *b = &r->back;

	hd_lock_take(&b->lock);
	snprintf(b->said.kind, sizeof b->said.kind, "%.20s", kind);
	snprintf(b->said.text, sizeof b->said.text, "%.300s", text);
	hd_lock_give(&b->lock);
	atomic_store(&b->says, true);
}

bool hd_recorder_said(struct hd_recorder *r, struct hd_recorder_said *said)
{
	if (!r || !atomic_load_explicit(&r->back.says, memory_order_relaxed))
		return false;
	hd_lock_take(&r->back.lock);
	*said = r->back.said;
	atomic_store(&r->back.says, false);
	hd_lock_give(&r->back.lock);
	return true;
}

/* ---- files ---- */

static enum hd_err put(void *self, const void *bytes, size_t len, struct hd_diag *diag)
{
	return hd_file_write(self, bytes, len, diag);
}

static void header_now(struct hd_recorder *r, uint8_t header[HD_FLIGHT_HEADER_BYTES])
{
	const uint64_t now = hd_recorder_now(r);

	memcpy(header, r->header, HD_FLIGHT_HEADER_BYTES);
	hd_flight_header_update(header, atomic_load(&r->worker), atomic_load(&r->back.quit) ?
		HD_FLIGHT_FINISHED : HD_FLIGHT_RUNNING, (struct hd_tick){ now, now },
		hd_flight_names_used(r->memory.at));
}

static enum hd_err make_file(struct hd_recorder *r, const char *folder, const char *end, struct hd_file *file,
	struct hd_diag *diag)
{
	char path[HD_RECORDER_PATH];

	enum hd_err err = hd_fs_mkdirs(&r->back.fs, folder, diag);
	if (err)
		return err;
	hd_recorder_path(path, folder, r->its_number, end);
	hd_recorder_keep_older(&r->back.fs, path);
	return hd_file_open(&r->back.fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE | HD_OPEN_TRUNCATE, file, diag);
}

static enum hd_err begin_trace(struct hd_recorder *r, struct hd_diag *diag)
{
	struct hd_recorder_back *b = &r->back;
	const struct hd_drain_sink sink = { &b->file, put };
	uint8_t header[HD_FLIGHT_HEADER_BYTES];
	char meta[160], job[HD_HASH_HEX];
	struct hd_hash hash;

	/* nothing may follow what was cut off: another file */
	if (b->open && b->failed) {
		(void)!hd_file_close(&b->file, NULL);
		b->open = false;
	}
	b->failed = false;
	if (b->open) {
		hd_drain_again(b->drain);
		return HD_OK;
	}
	enum hd_err err = make_file(r, b->traces, ".hdt", &b->file, diag);
	if (err)
		return err;
	b->open = true;
	memcpy(hash.byte, r->info.job, sizeof hash.byte);
	hd_hash_hex(hash, job);
	snprintf(meta, sizeof meta, "{\"format\":1,\"job\":\"%s\",\"pid\":%" PRIu32 "}", job, r->info.pid);
	header_now(r, header);
	err = hd_drain_head(&sink, meta, diag);
	return err ? err : hd_drain_begin(b->drain, &sink, r->memory.at, &b->view, header, 0, diag);
}

static void end_window(struct hd_recorder *r)
{
	atomic_store(&r->window.first, UINT64_MAX);
	atomic_store(&r->window.from, 0);
	atomic_store(&r->window.to, 0);
	r->back.draining = false;
}

static void give_up(struct hd_recorder *r, const struct hd_diag *why)
{
	char text[sizeof why->text + 80];

	snprintf(text, sizeof text, "the trace ends here, the run goes on: %.200s", why->text);
	r->back.failed = true;
	end_window(r);
	say(r, "trace_ended", text);      /* last: what is asked for then is another one */
}

/* What the file has not, of all its windows; once more at the end of one where there is more. */
static void say_lost(struct hd_recorder *r)
{
	const uint64_t lost = hd_drain_lost(r->back.drain);
	char text[200];

	if (lost <= r->back.lost)
		return;
	r->back.lost = lost;
	snprintf(text, sizeof text, "the trace misses %" PRIu64 " events so far: they were overwritten "
		"before they were read; raise trace.flight_slots", lost);
	say(r, "trace_lost", text);
}

/* From the begin of the first step of a window to the end of its last one, or of the process. */
static void drain(struct hd_recorder *r)
{
	struct hd_recorder_back *b = &r->back;
	const uint64_t from = atomic_load_explicit(&r->window.from, memory_order_acquire);
	uint8_t header[HD_FLIGHT_HEADER_BYTES];
	struct hd_diag diag = { "" };
	enum hd_err err = HD_OK;

	if (!from || atomic_load(&r->window.first) == UINT64_MAX)
		return;
	const bool over = atomic_load_explicit(&r->window.to, memory_order_acquire) || b->quit;
	if (!b->draining)
		err = begin_trace(r, &diag);
	b->draining = true;
	err = err ? err : hd_drain_pass(b->drain, from, &r->window.to, &diag);
	if (!err && over) {
		header_now(r, header);
		err = hd_drain_process(b->drain, header, &diag);
	}
	if (err) {
		give_up(r, &diag);
		return;
	}
	if (over || !b->lost)             /* that of a window that ends with the process comes too late */
		say_lost(r);
	if (over)
		end_window(r);
}

/* ---- copies of the flight file ---- */

static enum hd_err copy_words(const uint8_t *from, size_t len, uint64_t *buffer, struct hd_file *file,
	struct hd_diag *diag)
{
	const _Atomic uint64_t *word = (const _Atomic uint64_t *)(const void *)from;
	enum hd_err err = HD_OK;

	for (size_t at = 0; at < len / 8 && !err; at += COPY_WORDS) {
		const size_t n = len / 8 - at < COPY_WORDS ? len / 8 - at : COPY_WORDS;
		for (size_t i = 0; i < n; i++)
			buffer[i] = atomic_load_explicit(&word[at + i], memory_order_acquire);
		err = hd_file_write(file, buffer, n * 8, diag);
	}
	return err;
}

/* Header, names as far as they are whole, rings. */
static enum hd_err copy_flight(struct hd_recorder *r, struct hd_file *file, struct hd_diag *diag)
{
	const uint8_t *at = r->memory.at;
	_Alignas(8) uint8_t header[HD_FLIGHT_HEADER_BYTES];
	uint32_t used;

	header_now(r, header);
	used = hd_flight_names_used(header);
	enum hd_err err = hd_file_write(file, header, sizeof header, diag);
	err = err ? err : hd_file_write(file, at + HD_FLIGHT_HEADER_BYTES, used, diag);
	memset(r->back.buffer, 0, sizeof r->back.buffer);
	for (size_t left = HD_NAMES_BYTES - used; left && !err;) {
		const size_t n = left < sizeof r->back.buffer ? left : sizeof r->back.buffer;
		err = hd_file_write(file, r->back.buffer, n, diag);
		left -= n;
	}
	const size_t rings = HD_FLIGHT_HEADER_BYTES + HD_NAMES_BYTES;
	return err ? err : copy_words(at + rings, r->bytes - rings, r->back.buffer, file, diag);
}

static void snapshot(struct hd_recorder *r, const char *why)
{
	char folder[HD_RECORDER_PATH], text[HD_RECORDER_PATH + 160];
	struct hd_diag diag = { "" };
	struct hd_file file;

	snprintf(folder, sizeof folder, "%.900s/" HD_RECORDER_SNAPSHOTS, r->folder);
	enum hd_err err = make_file(r, folder, ".hdfr", &file, &diag);
	if (!err) {
		err = copy_flight(r, &file, &diag);
		enum hd_err closed = hd_file_close(&file, err ? NULL : &diag);
		err = err ? err : closed;
	}
	if (err)
		snprintf(text, sizeof text, "%s: no copy of the recording: %.200s", why, diag.text);
	else
		snprintf(text, sizeof text, "%s: the recording of the last steps is copied to %s", why,
			folder);
	say(r, "snapshot", text);
}

/* In a step that takes much longer than those before. Once a step. */
static void look_at_step(struct hd_recorder *r)
{
	const uint64_t began = atomic_load_explicit(&r->pace.began, memory_order_relaxed),
		usual = atomic_load_explicit(&r->pace.usual_ns, memory_order_relaxed),
		most = usual * STALL_STEPS > STALL_NS ? usual * STALL_STEPS : STALL_NS;
	const uint64_t now = hd_recorder_now(r);
	char why[80];

	if (!began || !usual || began == r->back.stalled || now < began || now - began < most)
		return;
	r->back.stalled = began;
	snprintf(why, sizeof why, "no step was committed for %.1f s", (double)(now - began) * 1e-9);
	snapshot(r, why);
}

/* ---- the thread ---- */

static void window(struct hd_recorder *r, uint64_t first, uint64_t end, uint64_t count)
{
	if (!r->back.traces[0] || atomic_load(&r->window.first) != UINT64_MAX)
		return;
	atomic_store(&r->window.from, 0);
	atomic_store(&r->window.to, 0);
	atomic_store(&r->window.end, end);
	atomic_store(&r->window.count, count);
	atomic_store(&r->window.first, first);
}

/* What is not understood is taken away as well: it would be read for ever. */
static void look_for_request(struct hd_recorder *r)
{
	struct hd_fs *fs = &r->back.fs;
	char path[HD_RECORDER_PATH], text[32] = "";
	struct hd_file file;
	struct hd_stat stat;
	size_t got = 0;
	uint64_t n = 0;

	snprintf(path, sizeof path, "%.900s/" HD_RECORDER_ASK, r->back.traces);
	/* opening what is no file (a FIFO) may wait for ever */
	if (hd_fs_stat(fs, path, &stat, NULL) || stat.kind != HD_FILE_REGULAR ||
		hd_file_open(fs, path, HD_OPEN_READ, &file, NULL))
		return;
	(void)!hd_file_read(&file, text, sizeof text - 1, &got, NULL);
	(void)!hd_file_close(&file, NULL);
	(void)!hd_fs_unlink(fs, path, NULL);
	if (!strcmp(text, "dump"))
		snapshot(r, "asked for");
	else if (strncmp(text, "record ", 7) != 0 || hd_num_u64(text + 7, UINT32_MAX, &n, NULL) || !n)
		say(r, "warning", "trace/" HD_RECORDER_ASK " is no request that is known");
	else if (atomic_load(&r->window.first) != UINT64_MAX)
		say(r, "warning", "a trace is being made: the request for another is dropped");
	else
		window(r, 0, UINT64_MAX, n);
}

static void look(struct hd_recorder *r)
{
	const uint64_t now = hd_recorder_now(r);
	const int dumps = hd_signal_dumps();

	hd_flight_tick(&r->flight, (struct hd_tick){ now, now });
	if (!hd_ticks_usable())           /* the kernel has changed its mind */
		hd_ticks_forget(&r->ticks);
	look_at_step(r);
	if (dumps != r->back.dumps)
		snapshot(r, "SIGQUIT");
	r->back.dumps = dumps;
	if (r->back.asked)
		look_for_request(r);
}

/* It should have woken at `due`. What it is late by it stood still, but for what it waited for a processor.
 * */
static void beat(struct hd_recorder *r, struct hd_clock *clock, int64_t due)
{
	struct hd_recorder_back *b = &r->back;
	const int64_t late_ns = hd_clock_now_ns(clock) - due;
	const uint64_t before_ns = b->waited_ns;
	uint64_t ran_ns;

	if (!hd_usage_read(&b->usage, &ran_ns, &b->waited_ns))
		b->waited_ns = before_ns;
	const int64_t still_ns = late_ns - (int64_t)(b->waited_ns - before_ns);
	b->stops_ns += still_ns >= HD_RECORDER_LATE_NS ? (uint64_t)still_ns : 0;
	if (still_ns >= HD_RECORDER_STOPPED_NS)
		hd_recorder_span(r, HD_RECORDER_BEAT, HD_RECORDED_STOPPED, hd_recorder_now(r) -
			(uint64_t)late_ns, 0);
}

static void put_count(struct hd_recorder *r, enum hd_recorder_name name, uint64_t at, uint64_t ns)
{
	hd_ring_put_event(hd_recorder_ring(r, HD_RECORDER_BEAT), &(struct hd_event){ .t0 = at, .arg = ns,
		.kind = HD_EVENT_COUNTER, .name = r->name[name] });
}

/* While it does not grow nothing is written; then the last time at which it had not is. */
static void count(struct hd_recorder *r, struct hd_recorder_count *c, enum hd_recorder_name name,
	uint64_t now, uint64_t ns)
{
	if (ns == c->ns) {
		c->before = now;
		return;
	}
	if (c->before)
		put_count(r, name, c->before, c->ns);
	*c = (struct hd_recorder_count){ .ns = ns };
	put_count(r, name, now, ns);
}

static void look_at_counts(struct hd_recorder *r)
{
	struct hd_recorder_back *b = &r->back;
	const uint64_t now = hd_recorder_now(r);
	uint64_t said;

	if (b->counted && now - b->counted < HD_RECORDER_HELD_NS)
		return;
	b->counted = now;
	count(r, &b->stops_count, HD_RECORDED_STOPS, now, b->stops_ns);
	if (!hd_throttle_read(&said))
		return;
	hd_throttle_grow(&b->held, said, now);
	count(r, &b->held_count, HD_RECORDED_HELD, now, b->held.ns);
}

static void run(void *user)
{
	struct hd_recorder *r = user;
	struct hd_recorder_back *b = &r->back;
	struct hd_clock clock;
	int64_t looked = 0;
	const bool ticks = hd_ticks_usable();

	hd_clock_real(&clock);
	if (ticks)
		hd_ticks_measure(&r->ticks);
	hd_lock_take(&b->lock);
	for (bool quit = false; !quit;) {
		const int64_t now = hd_clock_now_ns(&clock);
		const bool window = atomic_load(&r->window.first) != UINT64_MAX;
		if (!b->quit && !b->dump) {
			const int64_t due = now + (window ? DRAIN_NS : HD_RECORDER_BEAT_NS);
			(void)hd_cond_wait(&b->woken, &b->lock, due);
			beat(r, &clock, due);
		}
		quit = b->quit;
		const bool dump = b->dump;
		b->dump = false;
		hd_lock_give(&b->lock);
		if (ticks)
			hd_ticks_measure(&r->ticks);
		look_at_counts(r);        /* without the lock: files that may be slow to read */
		drain(r);
		if (dump)
			snapshot(r, "asked for");
		if (hd_clock_now_ns(&clock) - looked >= LOOK_NS) {
			looked = hd_clock_now_ns(&clock);
			look(r);
		}
		hd_lock_take(&b->lock);
	}
	hd_lock_give(&b->lock);
}

enum hd_err hd_recorder_back_start(struct hd_recorder *r, const struct hd_recorder_spec *spec,
	struct hd_diag *diag)
{
	struct hd_recorder_back *b = &r->back;

	b->drain = hd_alloc(sizeof *b->drain);
	if (!b->drain)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the flight recorder");
	hd_fs_real(&b->fs);
	b->usage = HD_USAGE_CLOSED;
	hd_lock_init(&b->lock);
	hd_cond_init(&b->woken);
	snprintf(b->traces, sizeof b->traces, "%.900s", spec->traces ? spec->traces : "");
	b->asked = spec->asked && spec->traces;
	atomic_store(&r->window.first, UINT64_MAX);
	b->dumps = hd_signal_dumps();
	enum hd_err err = hd_flight_parse(r->memory.at, r->bytes, r->folder, &b->view, diag);
	memcpy(r->header, r->memory.at, sizeof r->header);
	if (spec->nranks > r->nranks) {
		char text[160];
		snprintf(text, sizeof text, "of %" PRIu32 " devices of this worker the first %" PRIu32 " are "
			"recorded: a recording has no more lanes", spec->nranks, r->nranks);
		say(r, "warning", text);
	}
	return err ? err : hd_thread_start_small(&b->thread, "recorder", run, r, diag);
}

void hd_recorder_back_end(struct hd_recorder *r)
{
	struct hd_recorder_back *b = &r->back;

	if (!b->drain)
		return;
	hd_lock_take(&b->lock);
	b->quit = true;
	hd_cond_wake(&b->woken);
	hd_lock_give(&b->lock);
	hd_thread_join(&b->thread);
	hd_usage_close(&b->usage);
	if (b->open)
		(void)!hd_file_close(&b->file, NULL);
	hd_free(b->drain);
	hd_cond_finish(&b->woken);
	hd_lock_finish(&b->lock);
}

static void wake(struct hd_recorder *r, bool dump)
{
	hd_lock_take(&r->back.lock);
	r->back.dump |= dump;
	hd_cond_wake(&r->back.woken);
	hd_lock_give(&r->back.lock);
}

void hd_recorder_record(struct hd_recorder *r, uint64_t first, uint64_t nsteps)
{
	if (!r)
		return;
	window(r, first, nsteps ? first + nsteps : UINT64_MAX, 0);
	wake(r, false);
}

void hd_recorder_dump(struct hd_recorder *r)
{
	if (r)
		wake(r, true);
}
