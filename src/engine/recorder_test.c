#include "engine/testing.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/trace_file.h"
#include "sys/clock.h"
#include "sys/signal.h"
#include "sys/usage.h"
#include "plan/xfer.h"

/* The recorder's file, read as a stranger reads it: after the writer was killed. */

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/hd_flight_XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	return hd_fs_remove_tree(&fs, folder, NULL) ? -1 : 0;
}

static struct hd_recorder *open_recorder(uint32_t nranks, uint64_t nslots)
{
	static struct hd_fs fs;          /* the recorder's until its close */
	struct hd_recorder *recorder = NULL;
	struct hd_diag diag = { "" };

	hd_fs_real(&fs);
	struct hd_recorder_spec spec = { .fs = &fs, .folder = folder, .worker = 3, .nranks = nranks,
		.nslots = nslots, .job = { { 1, 2, 3 } } };
	CHECK(hd_recorder_open(&recorder, &spec, &diag) == HD_OK, "%s", diag.text);
	return recorder;
}

struct seen { uint64_t begun, ended, nbegun, nended, nops[64], nwaits, ncounts, counted; bool committed; };

static void read_back(const char *name, struct hd_flight_view *view, struct seen *seen,
	struct hd_arena *arena)
{
	char path[128];
	struct hd_diag diag = { "" };
	struct hd_fs fs;
	uint8_t *bytes, slot[64][HD_SLOT_BYTES];
	size_t len;

	hd_fs_real(&fs);
	snprintf(path, sizeof path, "%s/%s", folder, name);
	CHECK(hd_file_read_all(&fs, path, arena, 64 << 20, &bytes, &len, &diag) == HD_OK, "%s", diag.text);
	CHECK(hd_flight_parse(bytes, len, path, view, &diag) == HD_OK, "%s", diag.text);
	*seen = (struct seen){ .begun = UINT64_MAX, .ended = UINT64_MAX };
	for (uint32_t r = 0; r < view->info.nrings; r++) {
		struct hd_ring_reader reader;
		uint32_t n;
		hd_ring_read_begin(&reader, view->ring[r].memory, view->ring[r].nslots);
		while ((n = hd_ring_read(&reader, slot, 64)) > 0)
			for (uint32_t i = 0; i < n; i++) {
				struct hd_event e;
				if (!hd_event_get(slot[i], &e))
					continue;         /* an extension */
				if (e.kind == HD_EVENT_STEP_BEGIN) {
					seen->begun = e.arg;
					seen->nbegun++;
				} else if (e.kind == HD_EVENT_STEP_END) {
					seen->ended = e.arg;
					seen->nended++;
					seen->committed = e.instr == 1;
				} else if (e.kind == HD_EVENT_OP) {
					seen->nops[r]++;
					assert_string_not_equal(hd_names_text(view->names, view->names_used,
						e.name), "?");
				} else if (e.kind == HD_EVENT_COUNTER) {
					assert_true(!seen->ncounts ||
						e.t0 - seen->counted >= HD_RECORDER_COUNTED_NS);
					seen->counted = e.t0;
					seen->ncounts++;
				} else
					seen->nwaits += e.kind == HD_EVENT_WAIT;
			}
	}
}

static void train(uint32_t ndevices, uint64_t nslots, uint32_t nsteps, bool killed)
{
	struct hd_recorder *recorder = open_recorder(ndevices, nslots);
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = ndevices, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE, .recorder = recorder };
	struct hd_rig rig;

	hd_rig_open_on(&rig, hd_rig_mlp, 26, 13, NULL, &spec);
	for (uint32_t i = 0; i < nsteps; i++)
		hd_rig_step(&rig);
	if (killed)
		raise(SIGKILL);
	hd_rig_close(&rig);
	hd_recorder_close(recorder);
}

static void a_killed_process_leaves_its_last_steps(void **state)
{
	enum { NSTEPS = 7 };
	struct hd_flight_view view;
	struct hd_arena arena;
	struct seen seen;
	int status;

	(void)state;
	hd_arena_init(&arena, 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0)
		train(3, 4096, NSTEPS, true);
	assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
		WTERMSIG(status) == SIGKILL);
	read_back("3.hdfr", &view, &seen, &arena);
	assert_int_equal(view.state, HD_FLIGHT_RUNNING);
	assert_int_equal(view.info.pid, child);
	assert_int_equal(view.info.worker, 3);
	assert_true(seen.begun == NSTEPS - 1 && seen.ended == NSTEPS - 1 && seen.nended == NSTEPS &&
		seen.committed);
	/* per step: LD, F, B of 13 virtual nodes in all, and RED, NORM, STEP on each rank */
	assert_int_equal(seen.nops[0] + seen.nops[1] + seen.nops[2], NSTEPS * (3 * 13 + 3 * 3));
	hd_arena_finish(&arena);
}

/* Of short steps: read_back() looks at what lies between two counts. */
static void waits_for_a_processor_are_counted_now_and_then(void **state)
{
	struct hd_usage usage = HD_USAGE_CLOSED;
	struct hd_flight_view view;
	struct hd_arena arena;
	struct seen seen;
	uint64_t ran_ns, waited_ns, n = 0;

	(void)state;
	const bool counts = hd_usage_read(&usage, &ran_ns, &waited_ns);
	hd_usage_close(&usage);
	if (!counts)
		SKIP("the system does not count what threads wait for processors");
	struct hd_recorder *recorder = open_recorder(1, 1 << 16);
	const uint64_t began = hd_recorder_now(recorder);
	for (; n < 400 || hd_recorder_now(recorder) - began < 2 * HD_RECORDER_COUNTED_NS; n++) {
		const uint64_t step_began = hd_recorder_now(recorder);
		hd_recorder_step_begin(recorder, n);
		while (hd_recorder_now(recorder) - step_began < HD_RECORDER_COUNTED_NS / 200)
			;
		hd_recorder_step_end(recorder, n, true);
	}
	hd_recorder_close(recorder);
	hd_arena_init(&arena, 0);
	read_back("3.hdfr", &view, &seen, &arena);
	assert_true(seen.ncounts >= 2);
	hd_arena_finish(&arena);
}

static void a_small_ring_keeps_the_newest(void **state)
{
	struct hd_flight_view view;
	struct hd_arena arena;
	struct seen seen;

	(void)state;
	hd_arena_init(&arena, 0);
	train(1, 100, 20, false);
	read_back("3.hdfr", &view, &seen, &arena);
	assert_int_equal(view.state, HD_FLIGHT_FINISHED);
	assert_int_equal(view.ring[0].nslots, 128);
	assert_true(seen.ended == 19 && seen.nended >= 2 && seen.nended < 20);
	hd_arena_finish(&arena);
}

static void a_failed_step_ends_as_dropped(void **state)
{
	struct hd_recorder *recorder = open_recorder(2, 256);
	struct hd_worker_spec spec = { .kind = "cpu", .ndevices = 2, .nthreads = 1,
		.kernels = HD_KERNELS_PORTABLE, .recorder = recorder };
	struct hd_flight_view view;
	struct hd_step_record record;
	struct hd_diag diag = { "" };
	struct hd_rig rig;
	struct seen seen;

	(void)state;
	hd_rig_open_on(&rig, hd_rig_mlp, 26, 13, NULL, &spec);
	hd_rig_step(&rig);
	float *weights = hd_state_find(hd_worker_state(rig.worker), "fc1.bias")->at;
	weights[0] = (float)NAN;
	assert_int_equal(hd_worker_step(rig.worker, false, &record, &diag), HD_E_DIVERGED);
	read_back("3.hdfr", &view, &seen, &rig.arena);
	assert_true(seen.begun == 1 && seen.ended == 1 && !seen.committed && seen.nended == 2);
	hd_rig_close(&rig);
	hd_recorder_close(recorder);
}

static void older_recordings_are_kept_up_to_three(void **state)
{
	static const char *const names[] = { "3.hdfr", "3.hdfr.1", "3.hdfr.2", "3.hdfr.3" };
	struct hd_flight_view view;
	struct hd_arena arena;
	struct seen seen;
	char path[128];
	struct stat stat_of;

	(void)state;
	hd_arena_init(&arena, 0);
	for (uint32_t i = 1; i <= 6; i++)
		train(1, 4096, i, false);
	for (uint32_t i = 0; i < 4; i++) {
		read_back(names[i], &view, &seen, &arena);
		assert_int_equal(seen.nended, 6 - i);
	}
	snprintf(path, sizeof path, "%s/3.hdfr.4", folder);
	assert_true(stat(path, &stat_of) != 0);
	hd_arena_finish(&arena);
}

static void living_recorders_have_files_of_their_own(void **state)
{
	static const char *const names[] = { "3.hdfr", "4.hdfr", "5.hdfr" };
	struct hd_recorder *recorder[3];
	struct hd_flight_view view;
	struct hd_arena arena;
	struct seen seen;

	(void)state;
	hd_arena_init(&arena, 0);
	for (uint32_t i = 0; i < 3; i++)
		recorder[i] = open_recorder(1, 256);
	hd_recorder_close(recorder[1]);
	recorder[1] = open_recorder(1, 256);          /* the number is free again */
	for (uint32_t i = 0; i < 3; i++) {
		read_back(names[i], &view, &seen, &arena);
		assert_int_equal(view.state, HD_FLIGHT_RUNNING);
	}
	read_back("4.hdfr.1", &view, &seen, &arena);
	assert_int_equal(view.state, HD_FLIGHT_FINISHED);
	for (uint32_t i = 0; i < 3; i++)
		hd_recorder_close(recorder[i]);
	hd_arena_finish(&arena);
}

static void a_recorder_that_is_off_takes_everything(void **state)
{
	(void)state;
	hd_recorder_step_begin(NULL, 1);
	hd_recorder_op(NULL, 0, &(struct hd_recorder_op){ .began = 1, .op = HD_INS_F });
	hd_recorder_wait(NULL, 0, 1, HD_WAIT_DATA);
	hd_recorder_step_end(NULL, 1, true);
	hd_recorder_close(NULL);
	assert_int_equal(hd_recorder_now(NULL), 0);
}

/* The events of one lane, newest file. */
static uint32_t lane_events(const struct hd_flight_view *view, const char *lane, struct hd_event *event,
	struct hd_event_transfer *ext, uint32_t cap)
{
	uint8_t slot[64][HD_SLOT_BYTES];
	struct hd_ring_reader reader;
	uint32_t n = 0, got = 0;

	for (uint32_t r = 0; r < view->info.nrings; r++) {
		if (strcmp(view->info.lane[r].name, lane) != 0)
			continue;
		hd_ring_read_begin(&reader, view->ring[r].memory, view->ring[r].nslots);
		got = hd_ring_read(&reader, slot, 64);
	}
	for (uint32_t i = 0; i < got; i++)
		if (hd_event_get(slot[i], &event[n]) && n < cap) {
			if (event[n].flags & HD_EVENT_FLAG_EXT && i + 1 < got)
				(void)hd_event_get_transfer(slot[i + 1], &ext[n]);
			n++;
		}
	return n;
}

static void record_one_of_each(struct hd_recorder *recorder)
{
	hd_recorder_worker_set(recorder, 7);
	hd_recorder_transfer(recorder, &(struct hd_recorder_transfer){ .flow = 0xf10, .bytes = 4096,
		.began_ago = 9000, .gate_ago = 7000, .first_ago = 4000, .end_ago = 1000, .id = 12,
		.peer = UINT32_C(0x10000), .chunks = 3, .preempted = 70000, .xfer = HD_XFER_SUM,
		.class = HD_XFER_PLANNED, .primitive = 2 });
	hd_recorder_transfer(recorder, &(struct hd_recorder_transfer){ .flow = 0xf11, .bytes = 1,
		.began_ago = 500, .gate_ago = 400, .first_ago = 300, .end_ago = 0, .id = UINT32_MAX,
		.peer = 2, .class = HD_XFER_BULK, .received = true });
	/* an end before its begin, as by two looks at a clock: of no length */
	hd_recorder_transfer(recorder, &(struct hd_recorder_transfer){ .flow = 0xf12, .bytes = 1,
		.began_ago = 5, .gate_ago = 6, .first_ago = 7, .end_ago = 8, .peer = 2, .received = true });
	hd_recorder_read(recorder, 5, hd_recorder_now(recorder) - 2000, 77);
	hd_recorder_probe(recorder, 9, &(struct hd_burst_probe){ 100, 5000, 5040, 190 });
	hd_recorder_epoch(recorder, 4, "0004.plan");
	hd_recorder_note(recorder, "plan_refused", 3, 8);
	hd_recorder_mark(recorder, HD_RECORDER_RUN, HD_RECORDED_STOP, 1, 2);
	hd_recorder_span(recorder, HD_RECORDER_RUN, HD_RECORDED_CHECKPOINT, hd_recorder_now(recorder), 6);
}

static void check_transfers(const struct hd_flight_view *view)
{
	struct hd_event_transfer x[8];
	struct hd_event e[8];

	assert_int_equal(lane_events(view, "transfers", e, x, 8), 3);
	assert_true(e[2].duration == 0 && x[2].first_ns == 0);
	assert_true(e[0].kind == HD_EVENT_SEND && e[0].duration == 8000 && e[0].arg == 4096 &&
		e[0].instr == 12);
	assert_string_equal(hd_names_text(view->names, view->names_used, e[0].name), "sum");
	assert_true(x[0].gate_ns == 2000 && x[0].first_ns == 5000 && x[0].flow == 0xf10 &&
		x[0].peer == UINT16_MAX && x[0].chunks == 3 && x[0].preempted == UINT16_MAX &&
		x[0].class == HD_XFER_PLANNED && x[0].primitive == 2);
	assert_true(e[1].kind == HD_EVENT_RECV && e[1].duration == 500 && x[1].gate_ns == 0 &&
		x[1].first_ns == 200 && x[1].peer == 2 && x[1].flow == 0xf11);
	assert_string_equal(hd_names_text(view->names, view->names_used, e[1].name), "state");
	assert_int_equal(lane_events(view, "reader", e, x, 8), 1);
	assert_true(e[0].kind == HD_EVENT_READ && e[0].duration >= 2000 && e[0].arg == 77 &&
		e[0].instr == 5);
}

static void every_lane_keeps_what_its_thread_recorded(void **state)
{
	struct hd_recorder *recorder = open_recorder(2, 4096);
	struct hd_event_transfer x[8];
	struct hd_flight_view view;
	struct hd_event e[8];
	struct hd_arena arena;
	struct seen seen;

	(void)state;
	hd_arena_init(&arena, 0);
	record_one_of_each(recorder);
	read_back("3.hdfr", &view, &seen, &arena);
	assert_true(view.info.worker == 7 && view.info.nrings == 2 + HD_RECORDER_NLANES);
	assert_true(view.ring[0].nslots == 4096 && view.ring[2 + HD_RECORDER_CONTROL].nslots < 4096);
	check_transfers(&view);
	assert_int_equal(lane_events(&view, "control", e, x, 8), 3);
	assert_true(e[0].kind == HD_EVENT_CLOCK && e[0].t0 == 100 && e[0].duration == 90 &&
		e[0].arg == 5000);
	assert_true(e[1].kind == HD_EVENT_EPOCH && e[1].arg == 4);
	assert_true(e[2].kind == HD_EVENT_MARK && e[2].instr == 3 && e[2].arg == 8);
	assert_string_equal(hd_names_text(view.names, view.names_used, e[1].name), "0004.plan");
	assert_string_equal(hd_names_text(view.names, view.names_used, e[2].name), "plan_refused");
	assert_int_equal(lane_events(&view, "run", e, x, 8), 2);
	assert_true(e[0].kind == HD_EVENT_MARK && e[0].arg == 2 && e[1].kind == HD_EVENT_OP &&
		e[1].arg == 6);
	hd_recorder_close(recorder);
	hd_arena_finish(&arena);
}

static void a_coordinator_has_a_file_of_its_own_without_devices(void **state)
{
	struct hd_recorder *recorder = NULL;
	struct hd_event_transfer x[8];
	struct hd_flight_view view;
	struct hd_event e[8];
	struct hd_diag diag = { "" };
	struct hd_arena arena;
	struct seen seen;
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	hd_arena_init(&arena, 0);
	struct hd_recorder_spec spec = { .fs = &fs, .folder = folder, .worker = HD_RECORDER_COORDINATOR,
		.nslots = 1024 };
	CHECK(hd_recorder_open(&recorder, &spec, &diag) == HD_OK, "%s", diag.text);
	hd_recorder_step_begin(recorder, 1);          /* no device: nothing */
	record_one_of_each(recorder);
	read_back("coordinator.hdfr", &view, &seen, &arena);
	assert_true(view.info.nrings == HD_RECORDER_NLANES && seen.nbegun == 0);
	assert_int_equal(lane_events(&view, "transfers", e, x, 8), 0);
	assert_int_equal(lane_events(&view, "control", e, x, 8), 3);
	hd_recorder_close(recorder);
	hd_arena_finish(&arena);
}

static struct hd_recorder *open_traced(void)
{
	static struct hd_fs fs;
	static char traces[96];
	struct hd_recorder *recorder = NULL;
	struct hd_diag diag = { "" };

	hd_fs_real(&fs);
	snprintf(traces, sizeof traces, "%s/trace", folder);
	struct hd_recorder_spec spec = { .fs = &fs, .folder = folder, .worker = 3, .nranks = 1,
		.nslots = 4096, .traces = traces };
	CHECK(hd_recorder_open(&recorder, &spec, &diag) == HD_OK, "%s", diag.text);
	return recorder;
}

static void steps(struct hd_recorder *recorder, uint64_t first, uint64_t end)
{
	for (uint64_t step = first; step < end; step++) {
		hd_recorder_step_begin(recorder, step);
		hd_recorder_op(recorder, 0, &(struct hd_recorder_op){ .began = hd_recorder_now(recorder),
			.ended = hd_recorder_now(recorder), .op = HD_INS_F, .vn = (uint32_t)step });
		hd_recorder_step_end(recorder, step, true);
	}
}

/* Steps begun and ended in a trace, from the first to the last. */
static void traced(const char *name, uint64_t *first, uint64_t *last, uint64_t *nops, struct hd_arena *arena)
{
	struct hd_hdt_section section;
	struct hd_hdt_reader reader;
	struct hd_hdt_rings rings;
	struct hd_diag diag = { "" };
	char path[128];
	uint8_t *bytes;
	struct hd_fs fs;
	uint64_t n;
	size_t len;

	hd_fs_real(&fs);
	*first = *last = UINT64_MAX;
	*nops = 0;
	snprintf(path, sizeof path, "%s/trace/%s", folder, name);
	CHECK(hd_file_read_all(&fs, path, arena, 64 << 20, &bytes, &len, &diag) == HD_OK, "%s", diag.text);
	assert_int_equal(hd_hdt_begin(&reader, bytes, len, path, NULL), HD_OK);
	for (;;) {
		struct hd_event e;
		CHECK(hd_hdt_next(&reader, &section, &diag) == HD_OK, "%s", diag.text);
		if (!section.type)
			return;
		if (section.type != HD_HDT_RINGS)
			continue;
		assert_true(hd_hdt_rings_get(section.stored, section.raw_bytes, &rings, &n));
		assert_int_equal(rings.nlost, 0);
		for (uint64_t i = 0; i < n; i++) {
			if (!hd_event_get(section.stored + HD_HDT_RINGS_BYTES + i * HD_SLOT_BYTES, &e))
				continue;
			if (e.kind == HD_EVENT_STEP_BEGIN && *first == UINT64_MAX)
				*first = e.arg;
			if (e.kind == HD_EVENT_STEP_END)
				*last = e.arg;
			*nops += e.kind == HD_EVENT_OP;
		}
	}
}

static void a_window_of_steps_is_written_and_no_other(void **state)
{
	struct hd_recorder *recorder = open_traced();
	uint64_t first, last, nops;
	struct hd_arena arena;

	(void)state;
	hd_arena_init(&arena, 0);
	steps(recorder, 0, 50);
	hd_recorder_record(recorder, 60, 5);
	hd_recorder_record(recorder, 0, 0);           /* one at a time */
	steps(recorder, 50, 200);
	hd_recorder_close(recorder);
	traced("3.hdt", &first, &last, &nops, &arena);
	assert_true(first == 60 && last == 64 && nops == 5);
	recorder = open_traced();
	hd_recorder_record(recorder, 0, 0);
	steps(recorder, 7, 1000);
	hd_recorder_close(recorder);
	traced("3.hdt", &first, &last, &nops, &arena);
	assert_true(first == 7 && last == 999 && nops == 993);
	traced("3.hdt.1", &first, &last, &nops, &arena);
	assert_int_equal(last, 64);
	hd_arena_finish(&arena);
}

/* What cannot be written ends the trace, with words, and nothing else. */
static void a_trace_that_cannot_be_written_is_given_up(void **state)
{
	struct hd_recorder *recorder = open_traced();
	struct hd_recorder_said said = { "", "" };
	struct hd_flight_view view;
	struct hd_arena arena;
	struct hd_clock clock;
	struct seen seen;
	uint64_t first, last, nops;
	char path[96];

	(void)state;
	hd_arena_init(&arena, 0);
	hd_clock_real(&clock);
	snprintf(path, sizeof path, "%s/trace", folder);
	FILE *in_the_way = fopen(path, "w");
	assert_true(in_the_way && !fclose(in_the_way));
	hd_recorder_record(recorder, 0, 0);
	steps(recorder, 0, 9);
	while (!hd_recorder_said(recorder, &said))
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 1000000);
	CHECK(!strcmp(said.kind, "trace_ended") && strstr(said.text, path), "%s: %s", said.kind, said.text);
	steps(recorder, 9, 12);
	read_back("3.hdfr", &view, &seen, &arena);
	assert_true(seen.ended == 11 && seen.nended == 12);
	/* a request after that is one for another file */
	assert_int_equal(remove(path), 0);
	hd_recorder_record(recorder, 12, 3);
	steps(recorder, 12, 20);
	hd_recorder_close(recorder);
	traced("3.hdt", &first, &last, &nops, &arena);
	assert_true(first == 12 && last == 14 && nops == 3);
	hd_arena_finish(&arena);
}

static void a_copy_is_the_file_as_it_is(void **state)
{
	struct hd_recorder *recorder = open_traced();
	struct hd_recorder_said said = { "", "" };
	struct hd_flight_view view;
	struct hd_arena arena;
	struct hd_clock clock;
	struct seen seen;

	(void)state;
	hd_arena_init(&arena, 0);
	hd_clock_real(&clock);
	steps(recorder, 0, 9);
	assert_false(hd_recorder_said(recorder, &said));
	hd_recorder_dump(recorder);
	while (!hd_recorder_said(recorder, &said))
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 1000000);
	CHECK(!strcmp(said.kind, "snapshot") && strstr(said.text, "asked for: ") &&
		strstr(said.text, folder), "%s: %s", said.kind, said.text);
	read_back("snapshots/3.hdfr", &view, &seen, &arena);
	assert_true(seen.ended == 8 && seen.nended == 9 && view.state == HD_FLIGHT_RUNNING &&
		view.info.nrings == 1 + HD_RECORDER_NLANES);
	hd_recorder_close(recorder);
	hd_arena_finish(&arena);
}

static void wait_said(struct hd_recorder *recorder, struct hd_recorder_said *said)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	while (!hd_recorder_said(recorder, said))
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 1000000);
}

static void devices_that_find_no_lane_are_named(void **state)
{
	struct hd_recorder *recorder = open_recorder(70, 64);
	struct hd_recorder_said said = { "", "" };

	(void)state;
	wait_said(recorder, &said);
	CHECK(strstr(said.text, "of 70 devices") && strstr(said.text, "the first 58"), "%s", said.text);
	hd_recorder_close(recorder);
}

static void put_op(struct hd_recorder *r, uint32_t rank)
{
	const uint64_t now = hd_recorder_now(r);

	hd_recorder_op(r, rank, &(struct hd_recorder_op){ .began = now, .ended = now, .op = HD_INS_F });
}

/* A step that was dropped, and one that the state was set back behind: on every rank. */
static void a_step_that_is_begun_again_is_marked(void **state)
{
	static const struct { uint64_t step; bool committed, again; } row[] = {
		{ 4, true, false }, { 5, false, false }, { 5, true, true }, { 6, true, false },
		{ 5, true, true }, { 6, true, true }, { 7, true, false } };
	enum { N = sizeof row / sizeof row[0] };
	struct hd_recorder *recorder = open_recorder(2, 4096);
	struct hd_flight_view view;
	struct hd_arena arena;
	struct seen seen;

	(void)state;
	hd_arena_init(&arena, 0);
	for (size_t i = 0; i < N; i++) {
		hd_recorder_step_begin(recorder, row[i].step);
		for (uint32_t rank = 0; rank < 2; rank++)
			put_op(recorder, rank);
		hd_recorder_step_end(recorder, row[i].step, row[i].committed);
	}
	hd_recorder_close(recorder);
	read_back("3.hdfr", &view, &seen, &arena);
	for (uint32_t rank = 0; rank < 2; rank++) {
		struct hd_ring_reader reader;
		uint8_t slot[64][HD_SLOT_BYTES];
		size_t at = 0;
		hd_ring_read_begin(&reader, view.ring[rank].memory, view.ring[rank].nslots);
		const uint32_t n = hd_ring_read(&reader, slot, 64);
		for (uint32_t i = 0; i < n; i++) {
			struct hd_event e;
			if (!hd_event_get(slot[i], &e) || e.kind != HD_EVENT_OP)
				continue;
			CHECK(at < N && !!(e.flags & HD_EVENT_FLAG_REDONE) == row[at].again,
				"rank %u, row %zu", rank, at);
			at++;
		}
		assert_int_equal(at, N);
	}
	hd_arena_finish(&arena);
}

/* A window whose steps lap their ring some hundred times: sooner or later the reader is too late. */
static void what_a_trace_misses_is_said(void **state)
{
	struct hd_recorder *recorder = open_traced();
	struct hd_recorder_said said = { "", "" };
	uint64_t step = 0;

	(void)state;
	while (!hd_recorder_said(recorder, &said)) {
		hd_recorder_record(recorder, step, 1);
		hd_recorder_step_begin(recorder, step);
		for (uint32_t i = 0; i < 400000; i++)
			put_op(recorder, 0);
		hd_recorder_step_end(recorder, step++, true);
	}
	CHECK(!strcmp(said.kind, "trace_lost") && strstr(said.text, "overwritten before they were read"),
		"%s: %s", said.kind, said.text);
	hd_recorder_close(recorder);
}

/* Of a trace of all steps, which ends with the process: while somebody listens. */
static void what_a_trace_without_an_end_misses_is_said(void **state)
{
	struct hd_recorder *recorder = open_traced();
	struct hd_recorder_said said = { "", "" };
	struct hd_clock clock;

	(void)state;
	hd_clock_real(&clock);
	const int64_t until = hd_clock_now_ns(&clock) + INT64_C(30000000000);
	hd_recorder_record(recorder, 0, UINT64_MAX);
	for (uint64_t step = 0; !hd_recorder_said(recorder, &said) && hd_clock_now_ns(&clock) < until;
		step++) {
		hd_recorder_step_begin(recorder, step);
		for (uint32_t i = 0; i < 400000; i++)
			put_op(recorder, 0);
		hd_recorder_step_end(recorder, step, true);
	}
	CHECK(!strcmp(said.kind, "trace_lost"), "%s: %s", said.kind, said.text);
	hd_recorder_close(recorder);
}

/* The newest value of the counter; 0: there is none yet. */
static uint64_t stops_of(const char *name)
{
	struct hd_flight_view view;
	struct hd_arena arena;
	struct seen seen;
	uint8_t slot[64][HD_SLOT_BYTES];
	uint64_t ns = 0;
	uint32_t n;

	hd_arena_init(&arena, 0);
	read_back(name, &view, &seen, &arena);
	struct hd_ring_reader reader;
	const uint32_t beat = view.info.nrings - HD_RECORDER_NLANES + HD_RECORDER_BEAT;
	hd_ring_read_begin(&reader, view.ring[beat].memory, view.ring[beat].nslots);
	while ((n = hd_ring_read(&reader, slot, 64)) > 0)
		for (uint32_t i = 0; i < n; i++) {
			struct hd_event e;
			if (!hd_event_get(slot[i], &e))
				continue;
			if (e.kind == HD_EVENT_COUNTER && !strcmp(hd_names_text(view.names, view.names_used,
				e.name), "stops"))
				ns = e.arg;
		}
	hd_arena_finish(&arena);
	return ns;
}

/* Each for a tenth of what is an OP of its own. */
static void stops_for_short_are_counted(void **state)
{
	const int64_t enough = HD_RECORDER_STOPPED_NS;
	struct hd_clock clock;
	int64_t stopped = 0;
	int gate[2], status;
	char ready;

	(void)state;
	hd_clock_real(&clock);
	assert_int_equal(pipe(gate), 0);
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		(void)open_recorder(1, 1 << 16);
		_exit(write(gate[1], "r", 1) == 1 && pause() == -1);
	}
	assert_int_equal(read(gate[0], &ready, 1), 1);
	while ((int64_t)stops_of("3.hdfr") < enough && stopped < 500 * enough) {
		const int64_t began = hd_clock_now_ns(&clock);
		kill(child, SIGSTOP);
		hd_clock_wait_until(&clock, began + HD_RECORDER_STOPPED_NS / 10);
		kill(child, SIGCONT);
		stopped += hd_clock_now_ns(&clock) - began;
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 1000000);
	}
	kill(child, SIGKILL);
	assert_true(waitpid(child, &status, 0) == child);
	close(gate[0]);
	close(gate[1]);
	CHECK((int64_t)stops_of("3.hdfr") >= enough, "of %lld ms that it was stopped",
		(long long)(stopped / 1000000));
}

#ifdef HD_FAILPOINTS
/* By a clock that runs some thousand times as fast: five of its seconds are soon over. */
static void a_step_that_stands_still_is_copied(void **state)
{
	struct hd_recorder_said said = { "", "" };
	struct hd_flight_view view;
	struct hd_arena arena;
	struct hd_clock clock;
	struct seen seen;

	(void)state;
	hd_arena_init(&arena, 0);
	hd_clock_real(&clock);
	setenv("HD_TRACE_CLOCK", "0,1e9", 1);
	struct hd_recorder *recorder = open_traced();
	unsetenv("HD_TRACE_CLOCK");
	steps(recorder, 0, 20);
	hd_recorder_step_begin(recorder, 20);
	put_op(recorder, 0);
	while (!hd_recorder_said(recorder, &said))
		hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + 1000000);
	CHECK(!strcmp(said.kind, "snapshot") && strstr(said.text, "no step was committed for "), "%s: %s",
		said.kind, said.text);
	read_back("snapshots/3.hdfr", &view, &seen, &arena);
	assert_true(seen.begun == 20 && seen.ended == 19);
	hd_recorder_step_end(recorder, 20, true);
	hd_recorder_close(recorder);
	hd_arena_finish(&arena);
}
#endif

static void a_fault_leaves_a_mark_and_the_state(void **state)
{
	struct hd_event_transfer x[8];
	struct hd_flight_view view;
	struct hd_event e[8];
	struct hd_arena arena;
	struct seen seen;
	int status;

	(void)state;
	hd_arena_init(&arena, 0);
	pid_t child = fork();
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);         /* cmocka has one of its own */
		if (hd_signal_install(NULL))
			_exit(1);
		steps(open_traced(), 0, 3);
		abort();
	}
	assert_true(waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
		WTERMSIG(status) == SIGABRT);
	read_back("3.hdfr", &view, &seen, &arena);
	assert_int_equal(seen.ended, 2);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
	assert_int_equal(view.state, HD_FLIGHT_SIGNAL);
	assert_int_equal(lane_events(&view, "signals", e, x, 8), 1);
	assert_true(e[0].kind == HD_EVENT_MARK && e[0].instr == SIGABRT);
#endif
	(void)x;
	(void)e;
	hd_arena_finish(&arena);
}

static void a_folder_that_is_missing_is_refused(void **state)
{
	struct hd_recorder *recorder = NULL;
	struct hd_diag diag = { "" };
	struct hd_fs fs;

	(void)state;
	hd_fs_real(&fs);
	struct hd_recorder_spec spec = { .fs = &fs, .folder = "/tmp/hd_flight_none", .nranks = 1,
		.nslots = 64 };
	assert_int_equal(hd_recorder_open(&recorder, &spec, &diag), HD_E_NOTFOUND);
	assert_null(recorder);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_killed_process_leaves_its_last_steps, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(waits_for_a_processor_are_counted_now_and_then, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(a_small_ring_keeps_the_newest, make_folder, drop_folder),
		cmocka_unit_test_setup_teardown(a_failed_step_ends_as_dropped, make_folder, drop_folder),
		cmocka_unit_test_setup_teardown(older_recordings_are_kept_up_to_three, make_folder,
		drop_folder),
		cmocka_unit_test_setup_teardown(living_recorders_have_files_of_their_own, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(every_lane_keeps_what_its_thread_recorded, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(a_coordinator_has_a_file_of_its_own_without_devices,
			make_folder, drop_folder),
		cmocka_unit_test_setup_teardown(a_window_of_steps_is_written_and_no_other, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(a_trace_that_cannot_be_written_is_given_up, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(a_copy_is_the_file_as_it_is, make_folder, drop_folder),
		cmocka_unit_test_setup_teardown(devices_that_find_no_lane_are_named, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(what_a_trace_misses_is_said, make_folder, drop_folder),
		cmocka_unit_test_setup_teardown(what_a_trace_without_an_end_misses_is_said, make_folder,
		drop_folder),
		cmocka_unit_test_setup_teardown(a_step_that_is_begun_again_is_marked, make_folder,
			drop_folder),
		cmocka_unit_test_setup_teardown(stops_for_short_are_counted, make_folder, drop_folder),
#ifdef HD_FAILPOINTS
		cmocka_unit_test_setup_teardown(a_step_that_stands_still_is_copied, make_folder,
			drop_folder),
#endif
		cmocka_unit_test_setup_teardown(a_fault_leaves_a_mark_and_the_state, make_folder,
			drop_folder),
		cmocka_unit_test(a_recorder_that_is_off_takes_everything),
		cmocka_unit_test(a_folder_that_is_missing_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
