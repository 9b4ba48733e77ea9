#include "gnn/prepare.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gnn/prepare_int.h"

enum hd_err hd_prepare_path(char path[HD_PATH_CAP], const char *out, const char *end, struct hd_diag *diag)
{
	int len = snprintf(path, HD_PATH_CAP, "%s%s", out, end);

	return len > 0 && len < HD_PATH_CAP ? HD_OK : hd_fail(diag, HD_E_INVAL,
		"the path of the prepared graph is longer than %d bytes", HD_PATH_CAP - 16);
}

static enum hd_err no_memory(const struct hd_preparing *p)
{
	return hd_fail(p->diag, HD_E_NOMEM, "no memory to number %llu vertices",
		(unsigned long long)p->head.nvertices);
}

static void say_cut(void *user, uint32_t done, uint32_t all) { hd_prepare_say(user, "cuts", done, all); }

static enum hd_err split(struct hd_preparing *p)
{
	struct hd_prepared_head *head = &p->head;
	struct hd_rows *rows = p->how->directed ? &p->both : &p->in;
	struct hd_split_graph graph = { head->nvertices, hd_rows_edges(rows), p->weight };
	struct hd_split_how how = { .with = p->how->with, .seed = p->how->seed, .progress = say_cut, .user =
		p };

	head->nintervals = p->how->nintervals ? p->how->nintervals :
		hd_split_intervals(head->nvertices, head->nedges);
	how.nintervals = head->nintervals;
	head->directed = p->how->directed;
	head->seed = p->how->seed;
	if (!(p->interval = hd_alloc(head->nvertices * sizeof *p->interval)))
		return no_memory(p);
	enum hd_err err = hd_split(&graph, &how, p->interval, &head->splitter, p->diag);
	if (p->how->directed)
		hd_rows_free(&p->both, p->fs);
	return err;
}

/* By (interval, id of the input). */
static enum hd_err number(struct hd_preparing *p)
{
	uint64_t n = p->head.nvertices, sum = 0;
	uint32_t nintervals = p->head.nintervals;

	p->bound = hd_alloc((nintervals + 2ull) * sizeof *p->bound);
	p->order = hd_alloc(n * sizeof *p->order);
	p->renumber = hd_alloc(n * sizeof *p->renumber);
	if (!p->bound || !p->order || !p->renumber)
		return no_memory(p);
	memset(p->bound, 0, (nintervals + 2ull) * sizeof *p->bound);
	for (uint64_t v = 0; v < n; v++)
		p->bound[p->interval[v] + 2]++;
	for (uint32_t i = 0; i <= nintervals; i++)
		p->bound[i + 1] = sum += p->bound[i + 1];
	/* bound[i + 1] is where the next vertex of interval i goes: in the end, where the interval ends */
	for (uint64_t v = 0; v < n; v++) {
		uint32_t at = (uint32_t)p->bound[p->interval[v] + 1]++;
		p->order[at] = (uint32_t)v;
		p->renumber[v] = at;
	}
	return HD_OK;
}

void hd_prepared_figures(const struct hd_prepared *graph, struct hd_prepared_report *report)
{
	*report = (struct hd_prepared_report){ .head = graph->head, .digest = graph->digest };
	hd_prepared_count(graph, report->set);
	for (uint32_t i = 0; i < graph->head.nintervals; i++) {
		uint64_t first = graph->interval[i], end = graph->interval[i + 1];
		uint64_t nedges = graph->in.offset[end] - graph->in.offset[first];
		if (end - first > report->most_vertices)
			report->most_vertices = end - first;
		if (nedges > report->most_edges)
			report->most_edges = nedges;
		for (uint64_t e = graph->in.offset[first]; e < graph->in.offset[end]; e++)
			report->ncut += graph->in.at[e] < first || graph->in.at[e] >= end;
	}
}

static enum hd_err report_on(const struct hd_preparing *p, struct hd_prepared_report *report)
{
	struct hd_prepared_file file = { 0 };
	enum hd_err err = hd_prepared_open(&file, p->fs, p->how->out, false, p->diag);

	if (err)
		return err;
	hd_prepared_figures(&file.graph, report);
	report->nscratch_bytes = p->scratch_bytes;
	hd_prepared_close(&file);
	return HD_OK;
}

/* The folder a path lies in, for its sync. */
static enum hd_err sync_folder(const struct hd_preparing *p)
{
	const char *slash = strrchr(p->how->out, '/');
	char folder[HD_PATH_CAP];

	if (!slash)
		return hd_fs_sync_folder(p->fs, ".", p->diag);
	(void)snprintf(folder, sizeof folder, "%.*s", slash == p->how->out ? 1 : (int)(slash - p->how->out),
		p->how->out);
	return hd_fs_sync_folder(p->fs, folder, p->diag);
}

enum hd_err hd_prepare_check(const struct hd_preparing *p)
{
	uint32_t n = p->how->nintervals;

	if (n > HD_PREPARED_INTERVALS_CAP)
		return hd_fail(p->diag, HD_E_INVAL, "%u intervals: the most are %d", n,
			HD_PREPARED_INTERVALS_CAP);
	return hd_split_check(p->how->with, n ? n : 1, p->head.nvertices, p->diag);
}

/* A lock is on a file, not on its name: where the name leads to another one afterwards, the process that had
 * the lock has just given the file its final name, or removed it. */
static enum hd_err lock_output(struct hd_preparing *p, struct hd_diag *diag)
{
	struct hd_stat before, after;
	enum hd_err err = hd_fs_stat(p->fs, p->temporary, &before, diag);

	if (!err)
		err = hd_file_open(p->fs, p->temporary, HD_OPEN_WRITE, &p->output, diag);
	if (!err)
		err = hd_file_lock(&p->output, diag);
	if (!err)
		err = hd_fs_stat(p->fs, p->temporary, &after, diag);
	return !err && after.inode != before.inode ? HD_E_AGAIN : err;
}

/* The file that becomes the graph: made if it is missing, locked, and only then emptied. */
static enum hd_err take_output(struct hd_preparing *p)
{
	struct hd_diag why = { "" };
	enum hd_err err = hd_prepare_path(p->temporary, p->how->out, ".tmp", p->diag);

	if (!err && hd_graph_is_folder(p->fs, p->how->out))
		err = hd_fail(p->diag, HD_E_INVAL, "%s is a folder: name the file that is to be made",
			p->how->out);
	if (!err)
		err = hd_file_open(p->fs, p->temporary, HD_OPEN_WRITE | HD_OPEN_CREATE, &p->output, p->diag);
	if (!err)
		err = hd_file_close(&p->output, p->diag);
	if (err)
		return err;
	err = lock_output(p, &why);
	if (err == HD_E_AGAIN || err == HD_E_NOTFOUND)
		return hd_fail(p->diag, HD_E_AGAIN, "another process prepares %s: wait for its end, or name "
			"another file", p->how->out);
	if (err)
		return hd_fail(p->diag, err, "%s", why.text);
	p->taken = true;
	return hd_file_truncate(&p->output, 0, p->diag);
}

static void leave_output(struct hd_preparing *p)
{
	if (p->taken)
		(void)!hd_fs_unlink(p->fs, p->temporary, NULL);
	(void)!hd_file_close(&p->output, NULL);           /* it is synced, or of no use */
}

enum hd_err hd_prepare_graph(const struct hd_prepare *how, struct hd_fs *fs,
	struct hd_prepared_report *report, struct hd_diag *diag)
{
	struct hd_preparing *p = hd_alloc(sizeof *p);
	enum hd_err err;

	if (!p)
		return hd_fail(diag, HD_E_NOMEM, "no memory to prepare a graph");
	if (how->memory_bytes < HD_PAIR_SORT_LEAST) {
		hd_free(p);
		return hd_fail(diag, HD_E_INVAL, "sorting edges takes at least %d MiB of memory",
			HD_PAIR_SORT_LEAST >> 20);
	}
	*p = (struct hd_preparing){ .how = how, .fs = fs, .diag = diag };
	err = hd_prepare_check(p);
	if (!err)
		err = take_output(p);
	if (!err)
		err = hd_prepare_read(p);
	if (!err)
		err = split(p);
	if (!err)
		err = number(p);
	if (!err)
		err = hd_prepare_write(p);
	if (!err)
		err = sync_folder(p);
	if (!err)
		err = report_on(p, report);
	hd_graph_input_close(&p->features);
	hd_rows_free(&p->in, fs);
	hd_rows_free(&p->both, fs);
	leave_output(p);
	void *all[] = { p->label, p->nfeatures, p->mask, p->weight, p->interval, p->renumber, p->order,
		p->bound, p };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		hd_free(all[i]);
	return err;
}
