/* slurm_fuzz -- whatever Slurm's commands print, a launcher stands: its table keeps its bounds, no job is
 * reported
 * twice, what users see is printable, and what it asks next is within what it has. The input: answers of
 * squeue,
 * each ended by a line "%%"; one that begins with '+' is an answer of sbatch, with '?' a refusal, with '='
 * how many
 * places are wanted, with '@' a file of hosts, with ':' a time limit, with '!' the end of all. */
#define _GNU_SOURCE        /* of the C library: memmem */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "launch/hosts.h"
#include "launch/slurm_jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
	if (!good)
		abort();
}

static void is_printable(const char *text)
{
	for (; *text; text++)
		must(*text >= ' ' && *text <= '~');
}

static void tell(void *user, const struct hd_batch_job *job, const char *text)
{
	(void)user;
	(void)job;
	is_printable(text);
}

static void look_at(struct hd_slurm_jobs *jobs, int64_t now_ns)
{
	struct hd_slurm_next next;
	struct hd_launcher_end end;
	char why[HD_LAUNCHER_WHY + 64] = "";
	uint32_t nended = 0;

	must(jobs->n <= HD_SLURM_JOBS && hd_slurm_jobs_left(jobs) <= jobs->n);
	hd_slurm_jobs_next(jobs, now_ns, &next);
	must(next.ask != HD_SLURM_SUBMIT || (next.n && next.n + jobs->n <= HD_SLURM_JOBS));
	must(next.ask != HD_SLURM_TAKE_BACK || (next.n && next.n <= HD_SLURM_IDS));
	if (next.ask == HD_SLURM_TAKE_BACK)
		hd_slurm_jobs_taken_back(jobs, &next, now_ns);
	while (hd_slurm_jobs_ended(jobs, &end, now_ns)) {
		is_printable(end.name);
		is_printable(end.log);
		must(!strstr(end.log, "..") && ++nended <= HD_SLURM_JOBS);
	}
	if (hd_slurm_jobs_waits(jobs, now_ns, why))
		is_printable(why);
	hd_slurm_jobs_at(jobs, why, sizeof why);
	is_printable(why);
}

static void hosts(const char *text, size_t len)
{
	struct hd_launch_hosts found = { .n = 0 };
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	if (!hd_launch_hosts_parse(&found, "hosts", text, len, &arena, NULL)) {
		must(found.n && found.n <= HD_HOSTS && found.slots >= found.n);
		for (uint32_t i = 0; i < found.n; i++)
			must(found.at[i].name[0] != '-' && !strpbrk(found.at[i].name, " ;|&$`'\"\n"));
	}
	hd_arena_finish(&arena);
}

static void time_limit(const char *text, size_t len)
{
	char line[64] = "";
	double s = -1;

	memcpy(line, text, len < sizeof line ? len : sizeof line - 1);
	must(hd_slurm_time(line, &s) ? s >= 0 && s < 1e12 : s == -1);
}

static void look(struct hd_slurm_jobs *jobs, const char *text, size_t len, int64_t now_ns)
{
	struct hd_slurm_lines lines;
	struct hd_diag diag = { "" };
	struct hd_arena arena;

	hd_arena_init(&arena, 0);
	const enum hd_err err = hd_slurm_lines_parse(text, len, &arena, &lines, &diag);
	must(!err || diag.text[0]);
	hd_slurm_jobs_looked(jobs, &lines, !err, now_ns, tell, NULL);
	hd_arena_finish(&arena);
}

static void one(struct hd_slurm_jobs *jobs, const char *text, size_t len, int64_t now_ns)
{
	struct hd_diag diag = { "" };
	struct hd_batch_node node;
	char id[HD_SLURM_ID];

	switch (len ? *text : '\0') {
	case '+':
		if (!hd_slurm_id_parse(text + 1, len - 1, id, NULL))
			hd_slurm_jobs_submitted(jobs, id, 3, now_ns);
		break;
	case '?':
		must(hd_slurm_refusal("sbatch", text + 1, len - 1, &diag) != HD_OK && diag.text[0]);
		break;
	case '=':
		hd_slurm_jobs_want(jobs, len > 1 ? (uint8_t)text[1] : 0, now_ns);
		break;
	case '@':
		hosts(text + 1, len - 1);
		break;
	case ':':
		time_limit(text + 1, len - 1);
		break;
	case '!':
		hd_slurm_jobs_end(jobs, now_ns);
		break;
	default:
		look(jobs, text, len, now_ns);
	}
	if (!hd_slurm_node_parse(text, len, &node, NULL))
		is_printable(node.name);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct hd_slurm_jobs jobs;
	const char *at = (const char *)bytes, *end = at + len;
	int64_t now_ns = 0;

	hd_slurm_jobs_init(&jobs);
	while (at < end) {
		const char *mark = memmem(at, (size_t)(end - at), "%%\n", 3), *last = mark ? mark : end;
		one(&jobs, at, (size_t)(last - at), now_ns);
		now_ns += INT64_C(3000000000);
		look_at(&jobs, now_ns);
		at = mark ? mark + 3 : end;
	}
	return 0;
}
