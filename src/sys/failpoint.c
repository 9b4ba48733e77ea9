#include "sys/failpoint.h"

#include <assert.h>
#include <string.h>

static const struct { const char *name, *where; bool bytes; enum hd_fp_role role; enum hd_fp_phase phase;
	} points[] = {
#define X(id, name, bytes, role, phase, where) { name, where, bytes, HD_FP_##role, HD_FP_PHASE_##phase },
	HD_FAILPOINTS_TABLE(X)
#undef X
};

const char *hd_failpoint_name(enum hd_failpoint point) { return points[point].name; }
const char *hd_failpoint_where(enum hd_failpoint point) { return points[point].where; }
bool hd_failpoint_has_bytes(enum hd_failpoint point) { return points[point].bytes; }
enum hd_fp_role hd_failpoint_role(enum hd_failpoint point) { return points[point].role; }
enum hd_fp_phase hd_failpoint_phase(enum hd_failpoint point) { return points[point].phase; }

const char *hd_fp_phase_name(enum hd_fp_phase phase)
{
	static const char *const name[] = {
#define X(id, name) name,
		HD_FP_PHASES(X)
#undef X
	};

	return name[phase];
}

#ifndef HD_FAILPOINTS

bool hd_failpoint_built(void) { return false; }

enum hd_err hd_failpoint_arm(const char *spec, uint64_t seed, struct hd_diag *diag)
{
	(void)seed;
	if (!spec || !*spec)
		return HD_OK;
	return hd_fail(diag, HD_E_INVAL,
		"HD_FAIL=%.200s: this build has no failpoints; configure with -DHD_FAILPOINTS=ON", spec);
}

int hd_failpoint_hit(enum hd_failpoint point, void *bytes, size_t *len)
{
	(void)point, (void)bytes, (void)len;
	return 0;
}

int hd_failpoint_hit_key(enum hd_failpoint point, uint32_t key)
{
	(void)point, (void)key;
	return 0;
}
int hd_failpoint_hit_both(enum hd_failpoint point, uint32_t key, void *bytes, size_t *len)
{
	(void)point, (void)key, (void)bytes, (void)len;
	return 0;
}

uint64_t hd_failpoint_hits(enum hd_failpoint point) { (void)point; return 0; }
void hd_failpoint_watch(const char *folder) { (void)folder; }
void hd_failpoint_look(void) { }

#else

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
	{ "EAGAIN", EAGAIN }, { "ENOSYS", ENOSYS }, { "EPIPE", EPIPE }, { "ECONNRESET", ECONNRESET },
};

enum source { HD_FAIL_ENV, HD_FAIL_MINE, HD_FAIL_ANY, HD_FAIL_SOURCES };
struct armed_plan { enum action action; long argument; uint64_t nth; double p; bool keyed; uint32_t key;
	enum source source; };

/* The arming is per process by its nature: it models faults of the process. All of it, but what the
 * macros look at, under `turn`. */
atomic_bool hd_failpoint_live;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static struct armed_plan armed[HD_FP_COUNT];
static uint64_t hits[HD_FP_COUNT];
static uint64_t draw_seed;

enum { ORDER_BYTES = 4096, ORDER_PATH = 4096 };
static struct { char path[ORDER_PATH]; struct stat seen; bool is; char text[ORDER_BYTES];
	} order[HD_FAIL_SOURCES];

bool hd_failpoint_built(void) { return true; }

uint64_t hd_failpoint_hits(enum hd_failpoint point)
{
	pthread_mutex_lock(&turn);
	uint64_t n = hits[point];
	pthread_mutex_unlock(&turn);
	return n;
}

/* ---- the spec ---- */

struct spec { const char *whole, *at; struct hd_diag *diag; };

static enum hd_err bad(const struct spec *spec, const char *what)
{
	return hd_fail(spec->diag, HD_E_INVAL,
		"HD_FAIL, at \"%.60s\": %s; write name:action[#k][@n][/p], as ckpt.fsync:err=EIO@2", spec->at,
		what);
}

/* The length of the word at spec->at, up to one of `ends`. */
static size_t word(const struct spec *spec, const char *ends) { return strcspn(spec->at, ends); }

static bool is(const struct spec *spec, size_t len, const char *name) { return strlen(name) == len &&
	!memcmp(spec->at, name, len); }

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

static enum hd_err parse_argument(struct spec *spec, struct armed_plan *plan)
{
	size_t len = word(spec, "#@/;");

	if (plan->action == ERR)
		for (size_t i = 0; i < sizeof errnos / sizeof *errnos; i++)
			if (is(spec, len, errnos[i].name)) {
				plan->argument = errnos[i].error;
				spec->at += len;
				return HD_OK;
			}
	struct spec from = *spec;
	if (!take_number(spec, plan->action == ERR ? 4095 : 1000000000, &plan->argument) ||
		(plan->action == ERR && !plan->argument))
		return bad(&from, plan->action == ERR ? "not an errno that is known here" :
			"not a number from 0 to 1000000000");
	return HD_OK;
}

static enum hd_err parse_action(struct spec *spec, enum hd_failpoint point, struct armed_plan *plan)
{
	size_t len = word(spec, "=#@/;");

	for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
		if (!is(spec, len, actions[i].name))
			continue;
		if (actions[i].bytes && !points[point].bytes)
			return bad(spec, "this place carries no bytes: it takes kill, err=, delay=");
		if ((spec->at[len] == '=') != actions[i].argument)
			return bad(spec, actions[i].argument ? "the action needs =..." :
				"the action takes no =...");
		spec->at += len + actions[i].argument;
		plan->action = actions[i].action;
		return actions[i].argument ? parse_argument(spec, plan) : HD_OK;
	}
	return bad(spec, "no such action: kill, err=, delay=, short=, flip");
}

static enum hd_err parse_when(struct spec *spec, struct armed_plan *plan)
{
	long n = 0;

	if (*spec->at == '#') {
		struct spec from = *spec;
		spec->at++;
		if (!take_number(spec, UINT32_MAX, &n))
			return bad(&from, "after # comes a number");
		plan->keyed = true;
		plan->key = (uint32_t)n;
	}
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

static enum hd_err parse_one(struct spec *spec, struct armed_plan plans[HD_FP_COUNT])
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

static enum hd_err parse(const char *text, struct armed_plan plans[HD_FP_COUNT], struct hd_diag *diag)
{
	struct spec spec = { text ? text : "", text ? text : "", diag };

	while (*spec.at) {
		enum hd_err err = parse_one(&spec, plans);
		if (err)
			return err;
		spec.at += *spec.at == ';';
	}
	return HD_OK;
}

static void replace(const struct armed_plan plans[HD_FP_COUNT], uint64_t seed)
{
	bool any = false;

	for (size_t i = 0; i < HD_FP_COUNT; i++)
		any |= plans[i].action != NOTHING;
	pthread_mutex_lock(&turn);
	memcpy(armed, plans, sizeof armed);
	memset(hits, 0, sizeof hits);
	draw_seed = seed;
	pthread_mutex_unlock(&turn);
	atomic_store(&hd_failpoint_live, any);
}

enum hd_err hd_failpoint_arm(const char *text, uint64_t seed, struct hd_diag *diag)
{
	struct armed_plan plans[HD_FP_COUNT] = { 0 };
	enum hd_err err = parse(text, plans, diag);

	if (!err)
		replace(plans, seed);
	return err;
}

/* ---- orders ---- */

void hd_failpoint_watch(const char *folder)
{
	memset(order, 0, sizeof order);
	if (!folder)
		return;
	(void)!(snprintf(order[HD_FAIL_MINE].path, ORDER_PATH, "%s/%d", folder, (int)getpid()) < ORDER_PATH &&
		snprintf(order[HD_FAIL_ANY].path, ORDER_PATH, "%s/any", folder) < ORDER_PATH);
}

/* Whether the file is another one than last time; its text is read then. */
static bool changed(enum source source)
{
	struct stat now = { .st_size = 0 };
	int id = order[source].path[0] ? open(order[source].path, O_RDONLY | O_CLOEXEC) : -1;
	bool is = id >= 0 && !fstat(id, &now);
	bool other = is != order[source].is || now.st_ino != order[source].seen.st_ino ||
		now.st_mtim.tv_sec != order[source].seen.st_mtim.tv_sec
		|| now.st_mtim.tv_nsec != order[source].seen.st_mtim.tv_nsec;

	if (other) {
		ssize_t n = is ? read(id, order[source].text, ORDER_BYTES - 1) : 0;
		order[source].text[n > 0 ? n : 0] = 0;
		order[source].text[strcspn(order[source].text, "\n")] = 0;
		order[source].is = is;
		order[source].seen = now;
	}
	if (id >= 0)
		close(id);
	return other;
}

void hd_failpoint_look(void)
{
	struct armed_plan plans[HD_FP_COUNT] = { 0 };
	bool other = changed(HD_FAIL_MINE);

	other |= changed(HD_FAIL_ANY);
	if (!other)
		return;
	for (enum source source = HD_FAIL_MINE; source < HD_FAIL_SOURCES; source++) {
		struct armed_plan its[HD_FP_COUNT] = { 0 };
		struct hd_diag diag = { "" };
		if (parse(order[source].text, its, &diag)) {
			fprintf(stderr, "%s: %s\n", order[source].path, diag.text);
			continue;
		}
		for (size_t i = 0; i < HD_FP_COUNT; i++)
			if (its[i].action) {
				plans[i] = its[i];
				plans[i].source = source;
			}
	}
	replace(plans, 0);
}

/* The process that renames the order's file first is the one that dies. */
static bool claimed(enum hd_failpoint point, enum source source)
{
	char name[ORDER_PATH + 64];

	if (source == HD_FAIL_ENV)
		return true;
	snprintf(name, sizeof name, "%.*s/hit.%s.%d", (int)(strrchr(order[source].path,
		'/') - order[source].path), order[source].path,
		points[point].name, (int)getpid());
	return !rename(order[source].path, name);
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

/* What is armed here, if it is its turn. */
static struct armed_plan due(enum hd_failpoint point, bool keyed, uint32_t key)
{
	struct armed_plan plan;

	pthread_mutex_lock(&turn);
	plan = armed[point];
	if (plan.keyed && (!keyed || plan.key != key)) {
		plan.action = NOTHING;
	} else {
		uint64_t count = ++hits[point];
		if ((plan.nth && count != plan.nth) || (plan.p > 0 && !drawn(point, count, plan.p)))
			plan.action = NOTHING;
	}
	pthread_mutex_unlock(&turn);
	return plan;
}

static int carry_out(enum hd_failpoint point, const struct armed_plan *plan, void *bytes, size_t *len)
{
	switch (plan->action) {
	case NOTHING:
		break;
	case KILL:
		if (claimed(point, plan->source))
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

int hd_failpoint_hit(enum hd_failpoint point, void *bytes, size_t *len)
{
	const struct armed_plan plan = due(point, false, 0);

	return carry_out(point, &plan, bytes, len);
}

int hd_failpoint_hit_key(enum hd_failpoint point, uint32_t key) { return hd_failpoint_hit_both(point, key,
	NULL, NULL); }

int hd_failpoint_hit_both(enum hd_failpoint point, uint32_t key, void *bytes, size_t *len)
{
	const struct armed_plan plan = due(point, true, key);

	return carry_out(point, &plan, bytes, len);
}

#endif
