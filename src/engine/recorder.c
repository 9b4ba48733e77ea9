#include "engine/recorder_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sys/process.h"

enum { PATH_CAP = HD_RECORDER_PATH, NAME_CAP = PATH_CAP + 16, LIVING = 1024,
       TRANSFER_LOW = 1024, LANE_LOW = 64 };

static uint32_t slots_of(uint64_t asked)
{
	uint64_t n = HD_RING_SLOTS_LOW;

	while (n < asked && n < HD_RING_SLOTS_HIGH)
		n *= 2;
	return (uint32_t)n;
}

static void name_of(const char *path, int age, char name[NAME_CAP])
{
	if (age)
		snprintf(name, NAME_CAP, "%s.%d", path, age);
	else
		snprintf(name, NAME_CAP, "%s", path);
}

/* What cannot be moved away stays in the way: then opening the new one says so. */
void hd_recorder_keep_older(struct hd_fs *fs, const char *path)
{
	char from[NAME_CAP], to[NAME_CAP];
	struct hd_stat stat;

	for (int age = HD_RECORDER_KEEP; age > 0; age--) {
		name_of(path, age - 1, from);
		name_of(path, age, to);
		if (hd_fs_stat(fs, from, &stat, NULL) || hd_fs_rename(fs, from, to, NULL))
			continue;
	}
}

/* "coordinator", or a number. */
void hd_recorder_path(char path[HD_RECORDER_PATH], const char *folder, uint32_t number, const char *end)
{
	if (number == HD_RECORDER_COORDINATOR)
		snprintf(path, PATH_CAP, "%.900s/coordinator%s", folder, end);
	else
		snprintf(path, PATH_CAP, "%.900s/%" PRIu32 "%s", folder, number, end);
}

/* The lowest number from the worker's own on that no living recorder of the folder has: its lock goes with
 * its process. Where the file system knows no locks, the worker's own. A folder has one coordinator. */
static uint32_t take_number(struct hd_recorder *r, const struct hd_recorder_spec *spec)
{
	char path[PATH_CAP];

	for (uint32_t n = spec->worker; n - spec->worker < LIVING && spec->worker != HD_RECORDER_COORDINATOR;
		n++) {
		hd_recorder_path(path, r->folder, n, ".lock");
		if (hd_file_open(spec->fs, path, HD_OPEN_WRITE | HD_OPEN_CREATE, &r->number, NULL))
			break;
		enum hd_err err = hd_file_lock(&r->number, NULL);
		if (!err)
			return n;
		(void)!hd_file_close(&r->number, NULL);
		if (err != HD_E_AGAIN)
			break;
	}
	return spec->worker;
}

/* Of few events: short, but for a while of them. */
static uint32_t lane_slots(uint32_t nslots, uint32_t part, uint32_t low)
{
	const uint32_t n = nslots / part;

	return n > low ? n : nslots < low ? nslots : low;
}

static void describe_lanes(struct hd_flight_info *info, uint32_t nranks, uint32_t nslots)
{
	static const struct { uint16_t kind, index; const char *name; uint32_t part; } lane[] = {
#define X(id, kind, index, name, part, about) { HD_LANE_##kind, index, name, part },
		HD_RECORDER_LANES(X)
#undef X
	};

	info->nrings = nranks + HD_RECORDER_NLANES;
	for (uint32_t r = 0; r < nranks; r++) {
		info->lane[r] = (struct hd_flight_lane){ .kind = HD_LANE_DEVICE, .index = (uint16_t)r };
		snprintf(info->lane[r].name, sizeof info->lane[r].name, "dev %u", r);
	}
	for (uint32_t i = 0; i < HD_RECORDER_NLANES; i++) {
		struct hd_flight_lane *to = &info->lane[nranks + i];
		*to = (struct hd_flight_lane){ .kind = lane[i].kind, .index = lane[i].index };
		info->nslots[nranks + i] = lane_slots(nslots, lane[i].part,
			lane[i].kind == HD_LANE_TRANSFER ? TRANSFER_LOW : LANE_LOW);
		snprintf(to->name, sizeof to->name, "%s", lane[i].name);
	}
}

static void describe(struct hd_recorder *r, const struct hd_recorder_spec *spec, uint32_t nslots)
{
	struct hd_clock clock;
	struct hd_proc_self self;
	const uint64_t now = hd_recorder_now(r);

	hd_clock_real(&clock);
	hd_proc_self(&self);
	r->info = (struct hd_flight_info){
		.worker = spec->worker, .pid = self.pid, .clock = HD_FLIGHT_CLOCK_MONOTONIC_RAW,
		.realtime_ns = hd_clock_wall_ns(&clock), .boottime_ns = hd_clock_boot_ns(), .trace_time = now,
		.first = { now, now }, .latest = { now, now },
	};
	memcpy(r->info.job, spec->job.byte, sizeof r->info.job);
	memcpy(r->info.boot, self.boot, sizeof r->info.boot);
	describe_lanes(&r->info, r->nranks, nslots);
}

static void intern(struct hd_recorder *r, uint32_t *to, const char *text)
{
	*to = hd_names_intern(&r->flight.names, text, strlen(text));
}

static void intern_names(struct hd_recorder *r)
{
#define X(id, number, text, fields, about) intern(r, &r->ins[number], text);
	HD_INS(X)
#undef X
#define X(id, number, text, about) intern(r, &r->xfer[number], text);
	HD_XFERS(X)
#undef X
#define X(id, text) intern(r, &r->name[HD_RECORDED_##id], text);
	HD_RECORDER_NAMES(X)
#undef X
}

/* Rule 5. */
static void bend_clock(struct hd_recorder *r, uint32_t number)
{
	r->started = hd_clock_raw_ns();
#ifdef HD_FAILPOINTS
	const char *bent = getenv("HD_TRACE_CLOCK");
	char *end = NULL;
	const long long offset = bent ? strtoll(bent, &end, 10) : 0;
	const double ppm = bent && *end == ',' ? strtod(end + 1, NULL) : 0;

	r->offset_ns = (int64_t)offset * (int64_t)(uint32_t)(number + 1);
	r->rate = ppm * 1e-6 * (uint32_t)(number + 1);
#else
	(void)number;
#endif
}

/* In a handler. The ring of signals has no other writer. */
static void on_fault(void *recorder, int number)
{
	struct hd_recorder *r = recorder;

	hd_recorder_mark(r, HD_RECORDER_SIGNAL, HD_RECORDED_SIGNAL, (uint32_t)number, 0);
	hd_flight_state_set(r->memory.at, HD_FLIGHT_SIGNAL);
}

enum hd_err hd_recorder_open(struct hd_recorder **recorder, const struct hd_recorder_spec *spec,
	struct hd_diag *diag)
{
	enum { RANKS = HD_FLIGHT_RINGS - HD_RECORDER_NLANES };
	const uint32_t nslots = slots_of(spec->nslots);
	struct hd_recorder *r = hd_alloc(sizeof *r);
	char path[PATH_CAP];

	if (!r)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the flight recorder");
	*r = (struct hd_recorder){ .usage = HD_USAGE_CLOSED, .nranks = spec->nranks < RANKS ? spec->nranks :
		RANKS };
	enum hd_err err = hd_recorder_place(r, spec->folder, diag);
	r->its_number = err ? 0 : take_number(r, spec);
	r->worker = spec->worker;
	bend_clock(r, r->its_number);
	hd_recorder_path(path, r->folder, r->its_number, ".hdfr");
	describe(r, spec, nslots);
	r->bytes = hd_flight_bytes_of(&r->info, nslots);
	if (!err)
		hd_recorder_keep_older(spec->fs, path);
	err = err ? err : hd_memory_share(path, r->bytes, &r->memory, diag);
	if (!err) {
		hd_flight_format(&r->flight, r->memory.at, &r->info, nslots);
		intern_names(r);
		err = hd_recorder_back_start(r, spec, diag);
	}
	if (err) {
		hd_recorder_close(r);
		return err;
	}
	r->fatal = (struct hd_signal_fatal){ on_fault, r };
	hd_signal_fatal_set(&r->fatal);
	err = hd_signal_dump_take(diag);
	if (err) {
		hd_recorder_close(r);
		return err;
	}
	r->dumps = true;
	*recorder = r;
	return HD_OK;
}

void hd_recorder_close(struct hd_recorder *r)
{
	if (!r)
		return;
	if (r->fatal.act)
		hd_signal_fatal_set(NULL);
	if (r->dumps)
		hd_signal_dump_give();
	hd_recorder_back_end(r);
	if (r->memory.at)
		hd_flight_state_set(r->memory.at, HD_FLIGHT_FINISHED);
	hd_memory_give(&r->memory);
	hd_usage_close(&r->usage);
	(void)!hd_file_close(&r->number, NULL);
	hd_free(r);
}

void hd_recorder_worker_set(struct hd_recorder *r, uint32_t worker)
{
	if (!r)
		return;
	hd_flight_worker_set(r->memory.at, worker);
	atomic_store(&r->worker, worker);
}

static uint64_t bent(const struct hd_recorder *r, uint64_t now)
{
	if (!r->offset_ns && r->rate == 0)
		return now;
	return now + (uint64_t)r->offset_ns + (uint64_t)(int64_t)((double)(now - r->started) * r->rate);
}

uint64_t hd_recorder_now(const struct hd_recorder *r)
{
	if (!r)
		return 0;
	return bent(r, hd_clock_raw_ns());
}

uint64_t hd_recorder_look(struct hd_recorder *r, uint32_t ring)
{
	return bent(r, hd_ticks_ns(&r->look[ring].at, &r->ticks));
}

uint64_t hd_recorder_now_of(struct hd_recorder *r, uint32_t rank)
{
	return r && rank < r->nranks ? hd_recorder_look(r, rank) : hd_recorder_now(r);
}

static void put(struct hd_recorder *r, uint32_t rank, const struct hd_event *event)
{
	if (rank < r->nranks)
		hd_ring_put_event(&r->flight.ring[rank], event);
}

void hd_recorder_step_begin(struct hd_recorder *r, uint64_t step)
{
	if (!r)
		return;
	const uint64_t now = hd_recorder_now_of(r, 0);
	if (step >= atomic_load_explicit(&r->window.first, memory_order_acquire) &&
		!atomic_load_explicit(&r->window.from, memory_order_relaxed)) {
		const uint64_t count = atomic_load_explicit(&r->window.count, memory_order_relaxed);
		if (count)
			atomic_store_explicit(&r->window.end, step + count, memory_order_relaxed);
		atomic_store_explicit(&r->window.from, now, memory_order_release);
	}
	atomic_store_explicit(&r->pace.began, now, memory_order_relaxed);
	atomic_store_explicit(&r->again, step < r->begun_end, memory_order_relaxed);
	r->begun_end = step < r->begun_end ? r->begun_end : step + 1;
	put(r, 0, &(struct hd_event){ .t0 = now, .arg = step, .kind = HD_EVENT_STEP_BEGIN });
}

/* The median of the last ones, once there are as many. */
static void pace(struct hd_recorder *r, uint64_t took)
{
	uint64_t sorted[HD_RECORDER_USUAL];

	r->pace.took[r->pace.n++ % HD_RECORDER_USUAL] = took;
	if (r->pace.n % HD_RECORDER_USUAL)
		return;
	for (uint32_t i = 0, k; i < HD_RECORDER_USUAL; i++) {
		for (k = i; k && sorted[k - 1] > r->pace.took[i]; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = r->pace.took[i];
	}
	atomic_store_explicit(&r->pace.usual_ns, sorted[HD_RECORDER_USUAL / 2], memory_order_relaxed);
}

/* A read costs what a hundred events do: of short steps some go without. */
static void count_waits(struct hd_recorder *r, uint64_t now)
{
	uint64_t ran_ns, waited_ns;

	if (now - r->counted < HD_RECORDER_COUNTED_NS || !r->nranks)
		return;
	r->counted = now;
	if (hd_usage_read(&r->usage, &ran_ns, &waited_ns))
		put(r, 0, &(struct hd_event){ .t0 = now, .arg = waited_ns, .kind = HD_EVENT_COUNTER,
			.name = r->name[HD_RECORDED_WAITED] });
}

void hd_recorder_step_end(struct hd_recorder *r, uint64_t step, bool committed)
{
	if (!r)
		return;
	const uint64_t now = hd_recorder_now_of(r, 0), began = atomic_load_explicit(&r->pace.began,
		memory_order_relaxed);
	put(r, 0, &(struct hd_event){ .t0 = now, .arg = step, .instr = committed,
		.kind = HD_EVENT_STEP_END });
	count_waits(r, now);
	if (committed && began)
		pace(r, now - began);
	atomic_store_explicit(&r->pace.began, 0, memory_order_relaxed);
	if (committed && step + 1 >= atomic_load_explicit(&r->window.end, memory_order_relaxed) &&
		atomic_load_explicit(&r->window.from, memory_order_relaxed) &&
		!atomic_load_explicit(&r->window.to, memory_order_relaxed))
		atomic_store_explicit(&r->window.to, now, memory_order_release);
}

void hd_recorder_op(struct hd_recorder *r, uint32_t rank, const struct hd_recorder_op *op)
{
	if (r)
		put(r, rank, &(struct hd_event){ .t0 = op->began, .duration = op->ended - op->began,
			.arg = hd_work_arg(op->bytes, op->vn, op->stage), .name = r->ins[op->op],
			.instr = op->instr, .flags = (uint8_t)(op->flags |
				(atomic_load_explicit(&r->again, memory_order_relaxed) ?
				HD_EVENT_FLAG_REDONE : 0)), .kind = HD_EVENT_OP });
}

void hd_recorder_work(struct hd_recorder *r, uint32_t rank, enum hd_recorder_name name, uint64_t began)
{
	if (r)
		put(r, rank, &(struct hd_event){ .t0 = began, .duration = hd_recorder_now_of(r, rank) - began,
			.arg = hd_work_arg(0, UINT32_MAX, UINT32_MAX), .name = r->name[name],
			.instr = UINT32_MAX, .kind = HD_EVENT_OP });
}

static void wait_of(struct hd_recorder *r, uint32_t rank, uint64_t began, uint64_t ended, uint64_t arg)
{
	if (r && ended - began >= HD_WAIT_FELT_NS)
		put(r, rank, &(struct hd_event){ .t0 = began, .duration = ended - began, .arg = arg,
			.kind = HD_EVENT_WAIT });
}

void hd_recorder_waited(struct hd_recorder *r, uint32_t rank, uint64_t began, uint64_t ended,
	enum hd_wait reason)
{
	wait_of(r, rank, began, ended, hd_wait_arg(reason, 0));
}

void hd_recorder_wait(struct hd_recorder *r, uint32_t rank, uint64_t began, enum hd_wait reason)
{
	wait_of(r, rank, began, hd_recorder_now_of(r, rank), hd_wait_arg(reason, 0));
}

void hd_recorder_wait_for(struct hd_recorder *r, uint32_t rank, uint64_t began, uint32_t transfer)
{
	wait_of(r, rank, began, hd_recorder_now_of(r, rank), hd_wait_arg(HD_WAIT_TRANSFER, transfer));
}
