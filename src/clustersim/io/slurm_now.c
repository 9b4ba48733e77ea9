/* Columns of a fixed width: a cell that Slurm does not cut to it shifts the line, which is refused. */
#define _GNU_SOURCE
#include "clustersim/slurm_now.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/utf8.h"
#include "clustersim/io/sacct.h"

enum { COLUMNS = 21, TEXT = 260, GPU = 64 };

struct lines {
	const char *name;
	const uint8_t *at, *end;
	uint64_t line;
	const char *format;
	char cell[COLUMNS][TEXT];
};

static enum hd_err bad(const struct lines *l, struct hd_diag *diag, const char *what)
{
	return hd_fail(diag, HD_E_INPUT, "%s:%llu: %s; it is -O %s that is read here", l->name,
		(unsigned long long)l->line, what, l->format);
}

/* Without the blanks around it, and without what would end up in a terminal. */
static void copy(char to[TEXT], const uint8_t *from, size_t len)
{
	size_t n = 0;

	while (len && from[len - 1] == ' ')
		len--;
	for (; len && *from == ' '; len--)
		from++;
	for (size_t step; n < len && n < TEXT - 1; n += step) {
		step = hd_utf8_len((const char *)from + n, len - n);
		if (!step || n + step > TEXT - 1 || from[n] < 0x20 || from[n] == 0x7f) {
			to[n] = '?';
			step = 1;
			continue;
		}
		memcpy(to + n, from + n, step);
	}
	to[n] = 0;
}

/* The next line that is not empty, cut by the widths in its format. */
static bool next(struct lines *l, enum hd_err *err, struct hd_diag *diag)
{
	const uint8_t *line, *stop;
	size_t len, from = 0;

	do {
		if (l->at == l->end)
			return false;
		line = l->at;
		stop = memchr(line, '\n', (size_t)(l->end - line));
		l->at = stop ? stop + 1 : l->end;
		len = (size_t)((stop ? stop : l->end) - line);
		len -= len && line[len - 1] == '\r';
		l->line++;
	} while (!len);
	const char *at = l->format;
	for (int k = 0; k < COLUMNS && at; k++) {
		size_t width = strtoul(strchr(at, ':') + 1, NULL, 10);
		if (from >= len) {
			*err = bad(l, diag, "the line ends before its last column");
			return false;
		}
		copy(l->cell[k], line + from, len - from < width ? len - from : width);
		from += width;
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	while (from < len && line[from] == ' ')
		from++;
	if (from < len)
		*err = bad(l, diag, "the line goes on behind its last column");
	return !*err;
}

static const char *keep(struct hd_arena *arena, const char *text) { return hd_arena_text(arena, text,
	strlen(text)); }

/* ---- nodes ---- */

enum { NODE, STATE_COMPACT, PARTITION_NAME, GRES, GRES_USED, AVAILABLE, MAX_TIME, TIER, FACTOR,
	PREEMPT_MODE };

static bool usable(const char *state)
{
	static const char *const words[] = { "idle", "mix", "alloc", "plnd", "idle-", "mix-", "alloc-" };

	for (size_t k = 0; k < sizeof words / sizeof *words; k++)
		if (!strcasecmp(words[k], state))
			return true;
	return false;
}

static enum hd_preempted preempted_of(const char *mode)
{
	return !strncasecmp(mode, "REQUEUE", 7) ? HD_PREEMPTED_REQUEUE :
		!strncasecmp(mode, "CANCEL", 6) ? HD_PREEMPTED_CANCEL : HD_PREEMPTED_NOT;
}

/* What a partition is, by the line at hand. */
static enum hd_err partition_of(struct hd_slurm_partition *p, const struct lines *l, struct hd_arena *arena,
	struct hd_diag *diag)
{
	const bool endless = !strcasecmp(l->cell[MAX_TIME], "infinite");
	uint64_t tier;

	*p = (struct hd_slurm_partition){ .name = keep(arena, l->cell[PARTITION_NAME]),
		.state = keep(arena, l->cell[AVAILABLE]), .limit_s = INFINITY,
		.preempted = preempted_of(l->cell[PREEMPT_MODE]) };
	if (!p->name || !p->state)
		return hd_fail(diag, HD_E_NOMEM, "no memory for partitions");
	if (!*p->name)
		return bad(l, diag, "a partition without a name");
	if (hd_num_u64(l->cell[TIER], UINT32_MAX, &tier, NULL) ||
		hd_num_f64(l->cell[FACTOR], 0, UINT32_MAX, &p->factor, NULL))
		return bad(l, diag, "the tier or the factor of its partition is no number");
	if (!endless && !sacct_limit(l->cell[MAX_TIME], &p->limit_s))
		return bad(l, diag, "the time limit of its partition is none");
	p->tier = (uint32_t)tier;
	return HD_OK;
}

static enum hd_err partition_bit(struct hd_slurm_now *live, struct hd_arena *arena, uint64_t *bit,
	const struct lines *l, struct hd_diag *diag)
{
	struct hd_slurm_partitions *all = &live->partitions;
	enum hd_err err = HD_OK;
	uint32_t k = 0;

	while (k < all->n && strcmp(all->at[k].name, l->cell[PARTITION_NAME]) != 0)
		k++;
	if (k == HD_SLURM_PARTITIONS)
		return bad(l, diag, "more than 64 partitions");
	if (k == all->n && !(err = partition_of(&all->at[k], l, arena, diag)))
		all->n++;
	*bit = UINT64_C(1) << k;
	return err;
}

static enum hd_err read_node(struct hd_slurm_now *live, const struct lines *l, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char gpu[GPU], of_used[GPU];
	const double n = sacct_gpus(l->cell[GRES], gpu), used = sacct_gpus(l->cell[GRES_USED], of_used);
	uint64_t bit = 0;
	enum hd_err err = partition_bit(live, arena, &bit, l, diag);

	if (err)
		return err;
	if (!*l->cell[NODE])
		return bad(l, diag, "a node without a name");
	if (n < 0 || used < 0 || n > HD_LIVE_NODE_GPUS || used > n)
		return bad(l, diag, "its GPUs are no number, too many, or fewer than are used");
	if (!(n > 0))
		return HD_OK;
	for (uint32_t k = 0; k < live->nnodes; k++)
		if (!strcmp(live->node[k].name, l->cell[NODE])) {
			live->node[k].partitions |= bit;
			return HD_OK;
		}
	if (live->nnodes == HD_LIVE_NODES)
		return bad(l, diag, "more than 65536 nodes");
	struct hd_slurm_node *node = &live->node[live->nnodes++];
	*node = (struct hd_slurm_node){ .name = keep(arena, l->cell[NODE]), .gpu = keep(arena, *gpu ? gpu :
		"gpu"),
		.state = keep(arena, l->cell[STATE_COMPACT]), .gpus = (uint32_t)n, .used = (uint32_t)used,
		.partitions = bit, .usable = usable(l->cell[STATE_COMPACT]) };
	return node->name && node->gpu && node->state ? HD_OK : hd_fail(diag, HD_E_NOMEM,
		"%s: no memory for its nodes", l->name);
}

static int by_type(const void *a, const void *b)
{
	const struct hd_slurm_node *x = a, *y = b;
	int by = strcmp(x->gpu, y->gpu);

	if (!by)
		by = (x->partitions > y->partitions) - (x->partitions < y->partitions);
	return by ? by : strcmp(x->name, y->name);
}

/* "a100", or "a100@long+short" where others of it are elsewhere. */
static const char *type_name(const struct hd_slurm_now *live, const struct hd_slurm_node *node,
	struct hd_arena *arena)
{
	struct hd_text name;
	bool split = false, first = true;

	for (uint32_t k = 0; k < live->nnodes; k++)
		split |= !strcmp(live->node[k].gpu, node->gpu) && live->node[k].partitions !=
			node->partitions;
	if (!split)
		return node->gpu;
	hd_text_init(&name, arena);
	hd_text_addf(&name, "%s@", node->gpu);
	for (uint32_t k = 0; k < live->partitions.n; k++)
		if (node->partitions >> k & 1) {
			hd_text_addf(&name, "%s%s", first ? "" : "+", live->partitions.at[k].name);
			first = false;
		}
	return name.full ? NULL : name.at;
}

/* Types in order of names, as rounds want them. */
static int by_type_name(const void *a, const void *b)
{
	const struct hd_slurm_node *x = a, *y = b;
	int by = strcmp(x->type_name, y->type_name);

	return by ? by : strcmp(x->name, y->name);
}

static enum hd_err make_types(struct hd_slurm_now *live, const char *name, struct hd_arena *arena,
	struct hd_diag *diag)
{
	qsort(live->node, live->nnodes, sizeof *live->node, by_type);
	for (uint32_t k = 0; k < live->nnodes; k++) {
		struct hd_slurm_node *node = &live->node[k];
		const char *type = type_name(live, node, arena);
		if (!type)
			return hd_fail(diag, HD_E_NOMEM, "%s: no memory for its types", name);
		node->type_name = type;
	}
	qsort(live->node, live->nnodes, sizeof *live->node, by_type_name);
	for (uint32_t k = 0; k < live->nnodes; k++) {
		struct hd_slurm_node *node = &live->node[k];
		if (!k || strcmp(node->type_name, live->node[k - 1].type_name) != 0) {
			if (live->ntypes == HD_SCHED_TYPES)
				return hd_fail(diag, HD_E_INPUT, "%s: more than %d types of GPUs and sets of "
					"partitions", name, HD_SCHED_TYPES);
			live->partitions.gpu[live->ntypes] = node->gpu;
			live->partitions.in[live->ntypes] = node->partitions;
			live->type[live->ntypes++] = (struct hd_sched_type){ .name = node->type_name };
		}
		node->type = live->ntypes - 1;
		live->type[node->type].n += node->gpus;
	}
	return HD_OK;
}

static size_t count_lines(const uint8_t *bytes, size_t len)
{
	size_t n = 1;

	for (size_t k = 0; k < len; k++)
		n += bytes[k] == '\n';
	return n;
}

enum hd_err hd_slurm_nodes(struct hd_slurm_now *live, const char *name, const uint8_t *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct lines *l = hd_arena_take(arena, 1, sizeof *l);
	enum hd_err err = HD_OK;

	*live = (struct hd_slurm_now){ .node = hd_arena_take(arena, count_lines(bytes, len), sizeof
		*live->node),
		.now_s = -INFINITY };
	if (!l || !live->node)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to read it", name);
	*l = (struct lines){ .name = name, .at = bytes, .end = bytes + len, .format = HD_LIVE_SINFO };
	while (!err && next(l, &err, diag))
		err = read_node(live, l, arena, diag);
	if (!err && !live->nnodes)
		return hd_fail(diag, HD_E_INPUT, "%s: no node has GPUs (a Gres of gpu)", name);
	return err ? err : make_types(live, name, arena, diag);
}

/* ---- jobs ---- */

enum { ID, TASK, STATE, USER, ACCOUNT, PARTITION, SUBMIT, START, LIMIT, TRES, PER_JOB, PER_NODE, NNODES,
	PRIORITY,	DEPENDENCY, ELIGIBLE, FEATURE, REQUIRED, NODES, REASON, NAME };

/* Slurm's reasons for which it would take more devices, or others' patience; by their beginnings. The last
 * has more words: "..., DRAINED or reserved for jobs in higher priority partitions". */
static bool waits_for_devices(const char *reason)
{
	static const char *const words[] = { "None", "Priority", "Resources",
		"Nodes required for job are DOWN", "Nodes_required_for_job_are_DOWN" };

	for (size_t k = 0; k < sizeof words / sizeof *words; k++)
		if (k < 3 ? !strcasecmp(words[k], reason) : !strncasecmp(words[k], reason, strlen(words[k])))
			return true;
	return !*reason;
}

/* sinfo is newer; and of a list another partition may do. */
static bool is_of_partition(const char *reason)
{
	static const char *const words[] = { "PartitionDown", "PartitionInactive", "PartitionTimeLimit" };

	for (size_t k = 0; k < sizeof words / sizeof *words; k++)
		if (!strcasecmp(words[k], reason))
			return true;
	return false;
}

static bool is_said(const char *text) { return *text && strcasecmp(text, "(null)") != 0 &&
	strcasecmp(text, "N/A") != 0; }

/* GPUs of the whole job: of its TRES where Slurm counts them there, else of what it asked for; *per: on each
 * node, if it asked so. Below 0: no number. */
static double gpus_of(const struct lines *l, char gpu[GPU], uint32_t *per)
{
	char of_node[GPU];
	uint64_t nodes = 0;
	const double each = sacct_gpus(l->cell[PER_NODE], of_node);
	double n = sacct_gpus(l->cell[TRES], gpu);

	if (each < 0 || (each > 0 && hd_num_u64(l->cell[NNODES], HD_LIVE_NODES, &nodes, NULL)))
		return -1;
	if (!(n > 0) && !(n < 0))
		n = sacct_gpus(l->cell[PER_JOB], gpu);
	if (each > 0 && !(n < 0)) {
		*per = (uint32_t)each;
		n = each * (double)(nodes ? nodes : 1);
		memcpy(gpu, of_node, GPU);
	}
	return n;
}

/* Why it cannot start, and where it may. */
static void judge(const struct hd_slurm_now *live, const struct lines *l, struct hd_slurm_job *job)
{
	const uint64_t named = hd_slurm_partitions_named(&live->partitions, job->partition);
	uint64_t up = 0, gpus = 0;

	for (uint32_t t = 0; t < live->ntypes; t++)
		gpus |= live->partitions.in[t];
	for (uint32_t p = 0; p < live->partitions.n; p++) {
		const struct hd_slurm_partition *of = &live->partitions.at[p];
		if (!(named & gpus & UINT64_C(1) << p) || strcasecmp(of->state, "up") != 0)
			continue;
		up |= UINT64_C(1) << p;
		if (job->limit_s > of->limit_s)
			continue;
		job->partitions |= UINT64_C(1) << p;
		job->tier = of->tier > job->tier ? of->tier : job->tier;
	}
	job->bar = !waits_for_devices(job->reason) && !is_of_partition(job->reason) ? HD_SLURM_BAR_REASON :
		!(job->priority > 0) ? HD_SLURM_BAR_HELD :
		is_said(l->cell[DEPENDENCY]) ? HD_SLURM_BAR_DEPENDENCY :
		!up ? HD_SLURM_BAR_PARTITION :
		!job->partitions ? HD_SLURM_BAR_LIMIT :
		is_said(l->cell[FEATURE]) || is_said(l->cell[REQUIRED]) ? HD_SLURM_BAR_NODES :
		HD_SLURM_BAR_NONE;
}

/* "102_3" of a task of an array; its first column is the id of the whole array. */
static const char *job_id(const struct lines *l, struct hd_arena *arena)
{
	const char *task = l->cell[TASK];
	char id[2 * TEXT];

	const bool is_task = *task >= '0' && *task <= '9';

	(void)snprintf(id, sizeof id, "%s%s%s", l->cell[ID], is_task ? "_" : "", is_task ? task : "");
	return keep(arena, id);
}

static enum hd_err keep_texts(struct hd_slurm_job *job, const struct lines *l, const char *gpu,
	struct hd_arena *arena, struct hd_diag *diag)
{
	job->id = job_id(l, arena);
	job->user = keep(arena, l->cell[USER]);
	job->account = keep(arena, l->cell[ACCOUNT]);
	job->partition = keep(arena, l->cell[PARTITION]);
	job->name = keep(arena, l->cell[NAME]);
	job->reason = keep(arena, l->cell[REASON]);
	job->nodes = keep(arena, l->cell[NODES]);
	job->gpu = keep(arena, gpu);
	return job->id && job->user && job->account && job->partition && job->name && job->reason &&
		job->nodes && job->gpu ? HD_OK :
		hd_fail(diag, HD_E_NOMEM, "%s: no memory for its jobs", l->name);
}

static enum hd_err read_job(struct hd_slurm_now *live, const struct lines *l, struct hd_arena *arena,
	struct hd_diag *diag)
{
	char gpu[GPU];
	uint32_t per = 0;
	const double n = gpus_of(l, gpu, &per);
	struct hd_slurm_job job = { .runs = strcasecmp(l->cell[STATE], "PENDING") != 0, .limit_s = INFINITY,
		.start_s = NAN, .per_node = per };
	double eligible_s;

	if (!*l->cell[ID])
		return bad(l, diag, "a job without an id");
	if (n < 0 || n > HD_JOB_SCALE)
		return bad(l, diag, "its GPUs are no number");
	if (!sacct_time(l->cell[SUBMIT], &job.submit_s))
		return bad(l, diag, "its submission is no time");
	live->now_s = fmax(live->now_s, job.submit_s);
	if (job.runs && sacct_time(l->cell[START], &job.start_s))
		live->now_s = fmax(live->now_s, job.start_s);
	if (!(n > 0)) {
		live->nwithout++;
		return HD_OK;
	}
	if (!sacct_limit(l->cell[LIMIT], &job.limit_s))
		job.limit_s = INFINITY;
	if (hd_num_f64(l->cell[PRIORITY], 0, UINT32_MAX, &job.priority, NULL))
		return bad(l, diag, "its priority is no number");
	job.gpus = (uint32_t)n;
	enum hd_err err = keep_texts(&job, l, gpu, arena, diag);
	if (err)
		return err;
	judge(live, l, &job);
	/* until squeue is read to its end it is not known when now is */
	job.begin_s = sacct_time(l->cell[ELIGIBLE], &eligible_s) ? eligible_s : job.submit_s;
	live->job[live->njobs++] = job;
	return HD_OK;
}

/* Slurm gives another reason to those that it has looked at since. */
static void bar_later_ones(struct hd_slurm_now *live)
{
	for (uint32_t i = 0; i < live->njobs; i++) {
		struct hd_slurm_job *job = &live->job[i];
		if (job->bar == HD_SLURM_BAR_NONE && job->begin_s > live->now_s &&
			(!*job->reason || !strcasecmp(job->reason, "None")))
			job->bar = HD_SLURM_BAR_BEGIN;
	}
}

static int by_submission(const void *a, const void *b, void *jobs)
{
	const struct hd_slurm_job *at = jobs;
	const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (at[i].submit_s > at[k].submit_s || at[i].submit_s < at[k].submit_s)
		return at[i].submit_s > at[k].submit_s ? 1 : -1;
	return (i > k) - (i < k);
}

static enum hd_err sort_jobs(struct hd_slurm_now *live, struct hd_arena *arena, struct hd_diag *diag)
{
	uint32_t *order = hd_arena_take(arena, (size_t)live->njobs + 1, sizeof *order);
	struct hd_slurm_job *sorted = hd_arena_take(arena, (size_t)live->njobs + 1, sizeof *sorted);

	if (!order || !sorted)
		return hd_fail(diag, HD_E_NOMEM, "no memory to sort %u jobs", live->njobs);
	for (uint32_t i = 0; i < live->njobs; i++)
		order[i] = i;
	if (live->njobs)
		qsort_r(order, live->njobs, sizeof *order, by_submission, live->job);
	for (uint32_t i = 0; i < live->njobs; i++)
		sorted[i] = live->job[order[i]];
	live->job = sorted;
	return HD_OK;
}

enum hd_err hd_slurm_jobs(struct hd_slurm_now *live, const char *name, const uint8_t *bytes, size_t len,
	struct hd_arena *arena, struct hd_diag *diag)
{
	struct lines *l = hd_arena_take(arena, 1, sizeof *l);
	enum hd_err err = HD_OK;

	live->job = hd_arena_take(arena, count_lines(bytes, len), sizeof *live->job);
	if (!l || !live->job)
		return hd_fail(diag, HD_E_NOMEM, "%s: no memory to read it", name);
	*l = (struct lines){ .name = name, .at = bytes, .end = bytes + len, .format = HD_LIVE_SQUEUE };
	while (!err && next(l, &err, diag))
		err = live->njobs == HD_SCHED_JOBS ? bad(l, diag, "more than 131072 jobs") :
			read_job(live, l, arena, diag);
	if (!err)
		bar_later_ones(live);
	return err ? err : sort_jobs(live, arena, diag);
}
