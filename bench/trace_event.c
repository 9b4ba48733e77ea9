/* trace_event.c -- what one event of a recorder takes, in ns: for bench/trace.sh, which builds it against the
 * libraries of the build it measures.
 *
 *	trace_event FOLDER [ROUNDS]
 *
 * A round makes each event some ten thousand times on end; printed is the least of all rounds, that of a
 * round that was not disturbed. `off` is the same call without a recorder. Rings are as long as a run's, so
 * that each event meets memory that was touched long ago. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sys/clock.h"
#include "sys/file.h"
#include "sys/usage.h"
#include "plan/ins.h"
#include "engine/recorder.h"

enum { EVENTS = 20000 };

/* It begins where the one before it ended. */
static void instruction(struct hd_recorder *r)
{
	static uint64_t began;
	const uint64_t ended = hd_recorder_now_of(r, 0);

	hd_recorder_op(r, 0, &(struct hd_recorder_op){ .began = began, .ended = ended, .bytes = 4096,
		.instr = 7, .vn = 3, .stage = UINT32_MAX, .op = HD_INS_F });
	began = ended;
}

static void look(struct hd_recorder *r) { (void)hd_recorder_now_of(r, 0); }

static void op_alone(struct hd_recorder *r)
{
	hd_recorder_op(r, 0, &(struct hd_recorder_op){ .began = 1000000, .ended = 1002000, .bytes = 4096,
		.instr = 7, .vn = 3, .stage = UINT32_MAX, .op = HD_INS_F });
}

static void no_wait(struct hd_recorder *r) { hd_recorder_wait(r, 0, hd_recorder_now_of(r, 0), HD_WAIT_DATA); }

static void rows_read(struct hd_recorder *r) { hd_recorder_read(r, 3, hd_recorder_now(r), 4096); }

static void transfer(struct hd_recorder *r)
{
	hd_recorder_transfer(r, &(struct hd_recorder_transfer){ .flow = 7, .bytes = 65536, .began_ago = 4000,
		.gate_ago = 3000, .first_ago = 2000, .end_ago = 100, .id = 3, .peer = 1, .chunks = 1,
		.xfer = 1, .class = 1 });
}

static void step(struct hd_recorder *r)
{
	static uint64_t number;

	hd_recorder_step_begin(r, number);
	hd_recorder_step_end(r, number++, true);
}

static void count(struct hd_recorder *r)
{
	static struct hd_usage usage = HD_USAGE_CLOSED;
	uint64_t ran_ns, waited_ns;

	if (r)
		(void)hd_usage_read(&usage, &ran_ns, &waited_ns);
}

static void nothing(struct hd_recorder *r) { (void)r; }

static const struct { const char *text; void (*act)(struct hd_recorder *r); } row[] = {
	{ "a look at the clock", look },
	{ "an instruction, alone", op_alone },
	{ "an instruction and its look", instruction },
	{ "a wait that was none", no_wait },
	{ "rows that were read", rows_read },
	{ "a transfer", transfer },
	{ "begin and end of a step", step },
	{ "a count of waits", count },
};
enum { ROWS = sizeof row / sizeof row[0] };

static double round_of(void (*act)(struct hd_recorder *r), struct hd_recorder *r)
{
	void (*volatile call)(struct hd_recorder *) = act;
	const uint64_t began = hd_clock_raw_ns();

	for (int i = 0; i < EVENTS; i++)
		call(r);
	return (double)(hd_clock_raw_ns() - began) / EVENTS;
}

int main(int argc, char **argv)
{
	struct hd_recorder *recorder = NULL;
	struct hd_diag diag = { "" };
	struct hd_fs fs;
	const int rounds = argc > 2 ? atoi(argv[2]) : 200;
	double least[2][ROWS], none = 1e9;

	hd_fs_real(&fs);
	const struct hd_recorder_spec spec = { .fs = &fs, .folder = argc > 1 ? argv[1] : ".", .nranks = 1,
		.nslots = HD_FLIGHT_SLOTS };
	if (hd_recorder_open(&recorder, &spec, &diag)) {
		fprintf(stderr, "trace_event: %s\n", diag.text);
		return 1;
	}
	for (int i = 0; i < rounds; i++) {
		const double ns = round_of(nothing, NULL);
		none = ns < none ? ns : none;
		for (int k = 0; k < 2 * ROWS; k++) {
			double *to = &least[k % 2][k / 2];
			const double took = round_of(row[k / 2].act, k % 2 ? recorder : NULL);
			*to = !i || took < *to ? took : *to;
		}
	}
	for (int k = 0; k < ROWS; k++)
		printf("| %s | %.1f | %.1f |\n", row[k].text, least[0][k] - none, least[1][k] - none);
	hd_recorder_close(recorder);
	return 0;
}
