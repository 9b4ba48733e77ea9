#include "sys/failpoint.h"

#include <assert.h>
#include <string.h>

static const struct { const char *name, *where; bool bytes; } points[] = {
#define X(id, name, bytes, where) { name, where, bytes },
	HD_FAILPOINTS_TABLE(X)
#undef X
};

const char *hd_failpoint_name(enum hd_failpoint point) { return points[point].name; }
const char *hd_failpoint_where(enum hd_failpoint point) { return points[point].where; }
bool hd_failpoint_has_bytes(enum hd_failpoint point) { return points[point].bytes; }

#ifndef HD_FAILPOINTS

bool hd_failpoint_built(void) { return false; }

enum hd_err hd_failpoint_arm(const char *spec, uint64_t seed, struct hd_diag *diag)
{
	(void)seed;
	if (!spec || !*spec)
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL, "HD_FAIL=%.200s: this build has no failpoints; configure with -DHD_FAILPOINTS=ON", spec);
}

int hd_failpoint_hit(enum hd_failpoint point, void *bytes, size_t *len)
{
	(void)point, (void)bytes, (void)len;
	return 0;
}

uint64_t hd_failpoint_hits(enum hd_failpoint point) { (void)point; return 0; }

#else

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/philox.h"
#include "sys/clock.h"

enum action { NOTHING, KILL, ERR, DELAY, SHORT, FLIP };

/* name, how its argument is read, whether the place must carry bytes */
static const struct { const char *name; enum action action; bool argument, bytes; } actions[] = {
	{ "kill",  KILL,  false, false },
	{ "err",   ERR,   true,  false },
	{ "delay", DELAY, true,  false },
	{ "short", SHORT, true,  true },
	{ "flip",  FLIP,  false, true },
};

static const struct { const char *name; int error; } errnos[] = {
	{ "ENOSPC", ENOSPC }, { "EIO", EIO }, { "EACCES", EACCES }, { "EPERM", EPERM }, { "EROFS", EROFS }, { "EMFILE", EMFILE },
	{ "ENFILE", ENFILE }, { "ENOENT", ENOENT }, { "EEXIST", EEXIST }, { "ENOMEM", ENOMEM }, { "EDQUOT", EDQUOT }, { "EINTR", EINTR },
	{ "EAGAIN", EAGAIN }, { "EPIPE", EPIPE }, { "ECONNRESET", ECONNRESET },
};

struct plan { enum action action; long argument; uint64_t nth; double p; };

/* The arming is per process by its nature: it models what befalls the process. Written by
 * hd_failpoint_arm() before threads start, then only `hits` changes. */
atomic_bool hd_failpoint_live;
static struct plan armed[HD_FP_COUNT];
static _Atomic uint64_t hits[HD_FP_COUNT];
static uint64_t draw_seed;

bool hd_failpoint_built(void) { return true; }
uint64_t hd_failpoint_hits(enum hd_failpoint point) { return hits[point]; }

/* ---- the spec ---- */

struct spec { const char *whole, *at; struct hd_diag *diag; };

static enum hd_err bad(const struct spec *spec, const char *what)
{
	return hd_fail(spec->diag, HD_E_INVAL, "HD_FAIL, at \"%.60s\": %s; write name:action[@n][/p], as ckpt.fsync:err=EIO@2", spec->at, what);
}

/* The length of the word at spec->at, up to one of `ends`. */
static size_t word(const struct spec *spec, const char *ends) { return strcspn(spec->at, ends); }

static bool is(const struct spec *spec, size_t len, const char *name) { return strlen(name) == len && !memcmp(spec->at, name, len); }

static bool take_number(struct spec *spec, long most, long *number)
{
	char *rest;

	if (*spec->at < '0' || *spec->at > '9')
		return false;
	errno = 0;
	*number = strtol(spec->at, &rest, 10);
	spec->at = rest;
	return !errno && *number <= most;
}

static enum hd_err parse_argument(struct spec *spec, struct plan *plan)
{
	size_t len = word(spec, "@/;");

	if (plan->action == ERR)
		for (size_t i = 0; i < sizeof errnos / sizeof *errnos; i++)
			if (is(spec, len, errnos[i].name)) {
				plan->argument = errnos[i].error;
				spec->at += len;
				return HD_OK;
			}
	struct spec from = *spec;
	if (!take_number(spec, plan->action == ERR ? 4095 : 1000000000, &plan->argument) || (plan->action == ERR && !plan->argument))
		return bad(&from, plan->action == ERR ? "not an errno that is known here" : "not a number from 0 to 1000000000");
	return HD_OK;
}

static enum hd_err parse_action(struct spec *spec, enum hd_failpoint point, struct plan *plan)
{
	size_t len = word(spec, "=@/;");

	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
		if (!is(spec, len, actions[i].name))
			continue;
		if (actions[i].bytes && !points[point].bytes)
			return bad(spec, "this place carries no bytes: it takes kill, err=, delay=");
		if ((spec->at[len] == '=') != actions[i].argument)
			return bad(spec, actions[i].argument ? "the action needs =..." : "the action takes no =...");
		spec->at += len + actions[i].argument;
		plan->action = actions[i].action;
		return actions[i].argument ? parse_argument(spec, plan) : HD_OK;
	}
	return bad(spec, "no such action: kill, err=, delay=, short=, flip");
}

static enum hd_err parse_when(struct spec *spec, struct plan *plan)
{
	long n = 0;

	if (*spec->at == '@') {
		struct spec from = *spec;
		spec->at++;
		if (!take_number(spec, 1000000000, &n) || !n)
			return bad(&from, "after @ comes a number from 1");
		plan->nth = (uint64_t)n;
	}
	if (*spec->at == '/') {
		char *rest;
		plan->p = strtod(spec->at + 1, &rest);
		if (!(plan->p > 0 && plan->p < 1))
			return bad(spec, "after / comes a probability between 0 and 1");
		spec->at = rest;
	}
	return HD_OK;
}

static enum hd_err parse_one(struct spec *spec, struct plan plans[HD_FP_COUNT])
{
	size_t len = word(spec, ":;");
	unsigned point = 0;

	while (point < HD_FP_COUNT && !is(spec, len, points[point].name))
		point++;
	if (point == HD_FP_COUNT)
		return bad(spec, "no such failpoint");
	if (plans[point].action)
		return bad(spec, "this failpoint is named twice");
	if (spec->at[len] != ':')
		return bad(spec, "the action is missing");
	spec->at += len + 1;
	enum hd_err err = parse_action(spec, point, &plans[point]);
	if (!err)
		err = parse_when(spec, &plans[point]);
	if (!err && *spec->at && *spec->at != ';')
		err = bad(spec, "this is too much");
	return err;
}

enum hd_err hd_failpoint_arm(const char *text, uint64_t seed, struct hd_diag *diag)
{
	struct plan plans[HD_FP_COUNT] = { 0 };
	struct spec spec = { text ? text : "", text ? text : "", diag };
	bool any = *spec.at;

	while (*spec.at) {
		enum hd_err err = parse_one(&spec, plans);
		if (err)
			return err;
		spec.at += *spec.at == ';';
	}
	atomic_store(&hd_failpoint_live, false);
	memcpy(armed, plans, sizeof armed);
	for (size_t i = 0; i < HD_FP_COUNT; i++)
		hits[i] = 0;
	draw_seed = seed;
	atomic_store(&hd_failpoint_live, any);
	return HD_OK;
}

/* ---- a place is reached ---- */

/* A pure function of seed, place and count: a failing seed fails again. */
static bool drawn(enum hd_failpoint point, uint64_t count, double p)
{
	uint32_t counter[4] = { (uint32_t)count, (uint32_t)(count >> 32), (uint32_t)point, 0 };
	struct hd_philox block = hd_philox(counter, hd_philox_key(draw_seed, HD_RNG_USER));

	return block.word[0] * 0x1p-32 < p;
}

static void wait_ms(long ms)
{
	struct hd_clock clock;

	hd_clock_real(&clock);
	hd_clock_wait_until(&clock, hd_clock_now_ns(&clock) + ms * HD_NS_PER_MS);
}

int hd_failpoint_hit(enum hd_failpoint point, void *bytes, size_t *len)
{
	const struct plan *plan = &armed[point];
	uint64_t count = ++hits[point];

	if (plan->action == NOTHING || (plan->nth && count != plan->nth) || (plan->p > 0 && !drawn(point, count, plan->p)))
		return 0;
	switch (plan->action) {
	case NOTHING:
		break;
	case KILL:
		raise(SIGKILL);
		break;
	case ERR:
		return (int)plan->argument;
	case DELAY:
		wait_ms(plan->argument);
		break;
	case SHORT:
		if (*len > (size_t)plan->argument)
			*len = (size_t)plan->argument;
		break;
	case FLIP:
		if (*len)
			((unsigned char *)bytes)[*len / 2] ^= 1;
		break;
	}
	return 0;
}

#endif
