#include "data/fair.h"

#include <assert.h>
#include <string.h>

static const char *const causes[] = {
	[HD_FAIR_NONE] = "none", [HD_FAIR_STALLED] = "the store stands still",
	[HD_FAIR_DEVICE] = "its path to the store, or its device",
	[HD_FAIR_SERVER] = "the server of some files", [HD_FAIR_PROCESSOR] = "its own processor",
	[HD_FAIR_DEPTH] = "it has few requests in flight",
};

const char *hd_fair_cause_text(enum hd_fair_cause cause) { return causes[cause]; }

static double share(const struct hd_fair_part *p)
{
	return p->delivered < p->demanded ? p->delivered / p->demanded : 1;
}

double hd_fair_jain(const struct hd_fair_window *w)
{
	double sum = 0, squares = 0, n = 0;

	for (uint32_t i = 0; i < w->nworkers; i++) {
		if (w->part[i].demanded <= 0)
			continue;
		const double y = share(&w->part[i]);
		n++;
		sum += y;
		squares += y * y;
	}
	return squares > 0 ? sum * sum / (n * squares) : 0;
}

/* The lower one of the middle; sorts in place. */
static double median(double *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = i; k && v[k] < v[k - 1]; k--) {
			const double other = v[k];
			v[k] = v[k - 1];
			v[k - 1] = other;
		}
	return n ? v[(n - 1) / 2] : 0;
}

/* Whether value `at` stands out, by rule 2. */
static bool is_slow(const double *value, uint32_t n, uint32_t at)
{
	double v[HD_FAIR_WORKERS], least = -1;

	if (n < 2)
		return false;
	if (n < 4) {
		for (uint32_t i = 0; i < n; i++)
			if (i != at && (least < 0 || value[i] < least))
				least = value[i];
		return value[at] > 1.5 * least && value[at] > 0;
	}
	memcpy(v, value, n * sizeof *v);
	const double middle = median(v, n);
	for (uint32_t i = 0; i < n; i++)
		v[i] = value[i] > middle ? value[i] - middle : middle - value[i];
	double mad = median(v, n);
	mad = mad > 0.05 * middle ? mad : 0.05 * middle;
	return value[at] > middle + 3 * mad && value[at] > 1.25 * middle;
}

static bool slow_service(const struct hd_fair_window *w, uint32_t at)
{
	double v[HD_FAIR_WORKERS];

	for (uint32_t i = 0; i < w->nworkers; i++)
		v[i] = w->part[i].service_s;
	return is_slow(v, w->nworkers, at);
}

static bool slow_waiting(const struct hd_fair_window *w, uint32_t at)
{
	double v[HD_FAIR_WORKERS];

	for (uint32_t i = 0; i < w->nworkers; i++)
		v[i] = w->part[i].waited_s;
	return is_slow(v, w->nworkers, at);
}

/* A group of files that is slow against the other groups, by this worker's own reading. */
static bool slow_files(const struct hd_fair_part *p, uint32_t group)
{
	double least = 0;

	for (uint32_t g = 0; g < HD_FAIR_FILES; g++)
		if (g != group && p->file_service_s[g] > 0 && (least <= 0 || p->file_service_s[g] < least))
			least = p->file_service_s[g];
	return least > 0 && p->file_service_s[group] > 1.5 * least;
}

/* Some group is slow at this worker and at most of those that read it: not beside their other groups alone,
 * whose times may be those of memory, but in at least half of the time that this one waits for it. */
static bool is_server(const struct hd_fair_window *w, uint32_t at)
{
	for (uint32_t g = 0; g < HD_FAIR_FILES; g++) {
		uint32_t readers = 0, slow = 0;
		if (!slow_files(&w->part[at], g))
			continue;
		for (uint32_t i = 0; i < w->nworkers; i++) {
			readers += w->part[i].file_service_s[g] > 0;
			slow += slow_files(&w->part[i], g) &&
				2 * w->part[i].file_service_s[g] >= w->part[at].file_service_s[g];
		}
		if (2 * slow > readers && readers > 1)
			return true;
	}
	return false;
}

static bool is_shallow(const struct hd_fair_window *w, uint32_t at)
{
	uint32_t deeper = 0, wants = 0;

	for (uint32_t i = 0; i < w->nworkers; i++) {
		wants += i != at && w->part[i].demanded > 0;
		deeper += i != at && w->part[i].demanded > 0 && w->part[i].depth > w->part[at].depth;
	}
	return 2 * deeper > wants;
}

static enum hd_fair_cause cause_of(const struct hd_fair_window *w, uint32_t at)
{
	if (is_server(w, at))
		return HD_FAIR_SERVER;
	if (slow_service(w, at))
		return HD_FAIR_DEVICE;
	return !slow_waiting(w, at) ? HD_FAIR_NONE : is_shallow(w, at) ? HD_FAIR_DEPTH : HD_FAIR_PROCESSOR;
}

#define UNFAIR 0.95
#define FAIR 0.98

void hd_fair_judge(const struct hd_fair_window *w, uint32_t n, const bool *was, struct hd_fair_found *found)
{
	uint32_t slow[HD_FAIR_WORKERS] = { 0 };

	assert(n >= 1 && n <= HD_FAIR_WINDOWS && w[0].nworkers <= HD_FAIR_WORKERS);
	const struct hd_fair_window *last = &w[n - 1];
	memset(found, 0, sizeof *found);
	found->jain = hd_fair_jain(last);
	found->stalled = found->jain <= 0;
	for (uint32_t k = 0; k < n; k++) {
		const double jain = hd_fair_jain(&w[k]);
		for (uint32_t i = 0; i < last->nworkers && jain > 0; i++) {
			const double below = was && was[i] ? FAIR : UNFAIR;
			slow[i] += jain < below && share(&w[k].part[i]) < below && (slow_service(&w[k], i) ||
				slow_waiting(&w[k], i) || is_server(&w[k], i));
		}
	}
	for (uint32_t i = 0; i < last->nworkers; i++) {
		found->flagged[i] = !found->stalled && slow[i] >= HD_FAIR_OF;
		found->cause[i] = found->stalled ? HD_FAIR_STALLED : found->flagged[i] ? cause_of(last, i) :
			HD_FAIR_NONE;
	}
}

/* ---- reactions ---- */

void hd_fair_init(struct hd_fair *fair)
{
	memset(fair, 0, sizeof *fair);
	fair->holds = HD_FAIR_WINDOWS;
}

static void remember(struct hd_fair *f, uint32_t n, const uint32_t *depth)
{
	if (f->any)
		return;
	f->any = true;
	memcpy(f->before, depth, n * sizeof *depth);
}

static bool undo(struct hd_fair *f, uint32_t n, uint32_t *depth)
{
	const bool changed = f->any && memcmp(depth, f->before, n * sizeof *depth) != 0;

	if (f->any)
		memcpy(depth, f->before, n * sizeof *depth);
	f->undone = f->undone || changed;
	f->any = false;
	f->last.act = HD_FAIR_STAY;
	memset(f->vain, 0, sizeof f->vain);
	memset(f->floor, 0, sizeof f->floor);
	return changed;
}

/* Of answers; NONE: there is none to give. */
enum { NONE = HD_FAIR_WORKERS };

/* The deepest worker that neither waits nor is flagged gives up half of its depth. */
static uint32_t lower(struct hd_fair *f, const struct hd_fair_window *w, const struct hd_fair_found *found,
	uint32_t *depth)
{
	uint32_t at = NONE;

	for (uint32_t i = 0; i < w->nworkers; i++)
		if (!found->flagged[i] && w->part[i].waited_s <= 0 && depth[i] / 2 > f->floor[i] &&
			depth[i] > 1 && (at == NONE || depth[i] > depth[at]))
			at = i;
	if (at != NONE)
		depth[at] /= 2;
	return at;
}

static bool by_depth(const struct hd_fair_found *found, uint32_t i)
{
	return found->flagged[i] && found->cause[i] != HD_FAIR_PROCESSOR;
}

static uint32_t deepen(const struct hd_fair_window *w, const struct hd_fair_found *found, uint32_t *depth)
{
	for (uint32_t i = 0; i < w->nworkers; i++)
		if (by_depth(found, i) && depth[i] * 2 <= w->part[i].knee) {
			depth[i] *= 2;
			return i;
		}
	return NONE;
}

/* The flagged one that got least of what it wanted. */
static uint32_t least_served(const struct hd_fair_window *w, const struct hd_fair_found *found)
{
	uint32_t at = NONE;

	for (uint32_t i = 0; i < w->nworkers; i++)
		if (found->flagged[i] && (at == NONE || share(&w->part[i]) < share(&w->part[at])))
			at = i;
	return at;
}

/* The last answer is taken back where it brought nothing. */
static void judge_last(struct hd_fair *f, double got, uint32_t *depth)
{
	const bool depths = f->last.act == HD_FAIR_LOWER || f->last.act == HD_FAIR_DEEPEN;

	if (depths && got < 1.05 * f->last_share) {
		f->vain[f->last.act] = true;
		depth[f->last.worker] = f->last_depth;
	}
	f->last.act = HD_FAIR_STAY;
}

static struct hd_fair_answer answer(struct hd_fair *f, const struct hd_fair_window *w,
	const struct hd_fair_found *found, uint32_t *depth)
{
	const uint32_t least = least_served(w, found);
	struct hd_fair_answer a = { HD_FAIR_STAY, NONE };
	uint32_t was[HD_FAIR_WORKERS];
	bool depths = false;

	for (uint32_t i = 0; i < w->nworkers; i++)
		depths = depths || by_depth(found, i);
	remember(f, w->nworkers, depth);
	if (f->undone && f->holds < HD_FAIR_LONGEST)
		f->holds *= 2;
	f->undone = false;
	judge_last(f, share(&w->part[least]), depth);
	memcpy(was, depth, w->nworkers * sizeof *was);
	if (depths && !f->vain[HD_FAIR_LOWER] && (a.worker = lower(f, w, found, depth)) != NONE)
		a.act = HD_FAIR_LOWER;
	else if (depths && !f->vain[HD_FAIR_DEEPEN] && (a.worker = deepen(w, found, depth)) != NONE)
		a.act = HD_FAIR_DEEPEN;
	else
		a = (struct hd_fair_answer){ HD_FAIR_MOVE, least };
	f->last = a;
	f->last_depth = was[a.worker];
	f->last_share = share(&w->part[least]);
	f->windows++;
	f->since = 0;
	return a;
}

struct hd_fair_answer hd_fair_react(struct hd_fair *f, const struct hd_fair_window *w,
	const struct hd_fair_found *found, uint32_t depth[HD_FAIR_WORKERS])
{
	bool any = false;

	f->since++;
	f->good = found->jain >= FAIR ? f->good + 1 : 0;
	for (uint32_t i = 0; i < w->nworkers; i++) {
		any = any || found->flagged[i];
		if (f->any && depth[i] < f->before[i] && w->part[i].waited_s > 0 && depth[i] > f->floor[i]) {
			f->floor[i] = depth[i];   /* here it began to wait: back, and not below again */
			depth[i] *= 2;
			return (struct hd_fair_answer){ HD_FAIR_BACK, i };
		}
	}
	if (f->good >= f->holds)
		return (struct hd_fair_answer){ undo(f, w->nworkers, depth) ? HD_FAIR_UNDO : HD_FAIR_STAY,
			NONE };
	if (!any || (f->windows && f->since < HD_FAIR_WINDOWS))
		return (struct hd_fair_answer){ HD_FAIR_STAY, NONE };
	return answer(f, w, found, depth);
}
