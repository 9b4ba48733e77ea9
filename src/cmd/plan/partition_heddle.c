#include "cmd/plan/partition_heddle.h"

#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "planner/steady.h"
#include "cmd/json_line.h"

enum { VNS_A_MACHINE = 4 };

struct ours {
	const struct hd_cuts *cuts;
	const struct hd_part_how *part;
	struct hd_cluster cluster;
	struct hd_steady_table table;
	struct hd_steady_how how;
	struct hd_steady got;
	double one_s, data_s, per_vn_s;           /* of one virtual node */
	const char *why;
};

static enum hd_err ask_ours(struct hd_cmd *cmd, struct ours *o)
{
	struct hd_cluster_level level[HD_CLUSTER_LEVELS];
	uint64_t devices = 1;

	for (uint32_t l = 0; l < o->part->nlevels; l++) {
		level[l] = (struct hd_cluster_level){ "level", o->part->level[l].machines,
			o->part->level[l].bytes_per_s, 0 };
		devices *= level[l].components;
	}
	if (devices > HD_MAX_RANKS)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--machines %s are %llu machines; --variant heddle plans for at most %d",
			cmd->args.text[HD_OPT_MACHINES],
			(unsigned long long)devices, HD_MAX_RANKS);
	if (o->part->activations > 0)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"the variant heddle always counts activations, as they are: a compression ratio is "
			"for code");
	o->how.m = (uint32_t)devices * VNS_A_MACHINE;
	if (cmd->args.has[HD_OPT_VNS]) {
		if (cmd->args.count[HD_OPT_VNS] < 1 || cmd->args.count[HD_OPT_VNS] > HD_MAX_VNS)
			return hd_fail(&cmd->diag, HD_E_INVAL, "-m is from 1 to %u virtual nodes a step",
				(unsigned)HD_MAX_VNS);
		o->how.m = (uint32_t)cmd->args.count[HD_OPT_VNS];
	}
	o->how.cluster = &o->cluster;
	return hd_cluster_make(&o->cluster, level, o->part->nlevels,
		(struct hd_cluster_kind){ "machine", 1, (int64_t)o->part->memory_bytes }, &cmd->arena,
		&cmd->diag);
}

/* --straight: stage s on machine s, in flight as in 1f1b. */
static enum hd_err ask_straight(struct hd_cmd *cmd, struct ours *o)
{
	uint32_t n = o->cluster.ndevices;
	struct hd_steady_site *site = hd_arena_take(&cmd->arena, n, sizeof *site);

	if (!site)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for %u machines", n);
	if (n > o->table.n)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"straight needs a cut per machine: %u machines, %u cuts", n, o->table.n);
	for (uint32_t s = 0; s < n; s++)
		site[s] = (struct hd_steady_site){ .speed = 1, .memory = o->cluster.kind[0].memory,
			.inflight = n - s,
			.inv_bytes_ps = s ? 1e12 / o->cluster.level[hd_cluster_between(&o->cluster, s - 1,
			s)].bytes_per_s : 0 };
	o->how.site = site;
	o->how.nsites = n;
	o->how.copies = 1;
	return HD_OK;
}

static void references(struct ours *o)
{
	uint32_t n = o->cluster.ndevices;
	struct hd_stage_cost all = hd_cut_sums_range(o->table.sums, 0, o->cuts->n);
	double one = (double)(all.f + all.i + all.w) * 1e-12;
	double sum = n > 1 ?
		2 * (double)(n - 1) / n * (double)all.param / o->cluster.level[hd_cluster_span(&o->cluster, 0,
		n)].bytes_per_s : 0;

	o->one_s = one;
	o->data_s = ((double)((o->how.m + n - 1) / n) * one + sum) / o->how.m;
	o->per_vn_s = hd_steady_ps(&o->got) * 1e-12 / o->how.m;
}

static enum hd_err solve_ours(struct hd_cmd *cmd, struct ours *o, const struct hd_cut_sums *sums)
{
	struct hd_arena scratch;
	struct hd_text why;
	int64_t least = 0;
	enum hd_err err = ask_ours(cmd, o);

	err = err ? err : hd_steady_table_make(&o->table, sums, hd_steady_cuts(o->cluster.ndevices),
		&cmd->arena, &cmd->diag);
	if (!err && o->part->straight)
		err = ask_straight(cmd, o);
	if (err)
		return err;
	hd_arena_init(&scratch, 0);
	err = hd_steady_solve(&o->got, &o->table, &o->how, &cmd->arena, &scratch, &cmd->diag);
	hd_arena_reset(&scratch);
	if (err == HD_E_NOTFOUND) {
		err = hd_steady_least_bytes(&least, &o->table, &o->how, &scratch, &cmd->diag);
		err = err ? err : hd_fail(&cmd->diag, HD_E_INVAL,
			"no partition of %u cuts keeps to the memory limit: a "
			"machine has %.0f bytes, the smallest need is %lld "
			"(computing again wherever it helps); the nearest that works: --memory %lld",
			o->cuts->n, o->part->memory_bytes,
				(long long)least,
			(long long)least);
	}
	hd_arena_finish(&scratch);
	if (err)
		return err;
	references(o);
	hd_text_init(&why, &cmd->arena);
	hd_steady_explain(&o->got, &o->table, &o->how, &why);
	o->why = why.full ? "" : why.at;
	return HD_OK;
}

static const char *ours_split(struct hd_cmd *cmd, const struct ours *o)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_text_add(&text, "L1:");
	for (uint32_t i = 0; i < o->got.nstages; i++)
		hd_text_addf(&text, " %u-%u x%u", o->got.stage[i].first, o->got.stage[i].last + 1,
			o->got.stage[i].replicas);
	return text.full ? "" : text.at;
}

static void put_lines(struct hd_json_writer *w, const char *key, const char *lines)
{
	hd_json_open_array(w, key);
	for (; *lines; lines += strcspn(lines, "\n") + 1)
		hd_json_put_bytes(w, NULL, lines, strcspn(lines, "\n"));
	hd_json_close(w);
}

static void print_ours_json(struct hd_cmd *cmd, const struct ours *o)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "variant", "heddle");
	hd_json_put_i64(w, "states", o->cuts->n);
	hd_json_put_f64(w, "predicted_s", o->per_vn_s);
	hd_json_put_f64(w, "one_machine_s", o->one_s);
	hd_json_put_f64(w, "data_parallel_s", o->data_s);
	hd_json_put_f64(w, "gain", o->per_vn_s > 0 ? o->data_s / o->per_vn_s : 1);
	hd_json_put_i64(w, "virtual_nodes", o->how.m);
	hd_json_put_f64(w, "step_s", hd_steady_ps(&o->got) * 1e-12);
	hd_json_put_f64(w, "fill_s", o->got.fill_ps * 1e-12);
	hd_json_put_i64(w, "machines_used", o->got.nsites);
	hd_json_open_array(w, "machines");
	for (uint32_t l = 0; l < o->part->nlevels; l++)
		hd_json_put_i64(w, NULL, o->part->level[l].machines);
	hd_json_close(w);
	hd_json_open_array(w, "bandwidth");
	for (uint32_t l = 0; l < o->part->nlevels; l++)
		hd_json_put_f64(w, NULL, o->part->level[l].bytes_per_s);
	hd_json_close(w);
	hd_json_put_text(w, "split", ours_split(cmd, o));
	hd_json_open_array(w, "stages");
	for (uint32_t i = 0; i < o->got.nstages; i++) {
		const struct hd_steady_stage *s = &o->got.stage[i];
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "level", 1);
		hd_json_put_i64(w, "first", s->first);
		hd_json_put_i64(w, "last", s->last);
		hd_json_put_text(w, "upto", o->cuts->name[s->last]);
		hd_json_put_i64(w, "replicas", s->replicas);
		hd_json_put_bool(w, "recompute", s->recompute);
		hd_json_put_i64(w, "bytes", s->bytes);
		hd_json_close(w);
	}
	hd_json_close(w);
	put_lines(w, "why", o->why);
	hd_json_line_print(&line);
}

enum hd_err hd_cmd_partition_heddle(struct hd_cmd *cmd, const struct hd_profile *profile,
	const struct hd_cuts *cuts, const struct hd_part_how *how)
{
	struct ours o = { .cuts = cuts, .part = how };
	struct hd_cut_sums sums;
	enum hd_err err = hd_cut_sums_make(&sums, profile, cuts, &cmd->arena, &cmd->diag);

	err = err ? err : solve_ours(cmd, &o, &sums);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		print_ours_json(cmd, &o);
		return HD_OK;
	}
	printf("%svirtual node    %.9g s\none machine    %.9g s\ndata parallel  %.9g s\nsplit          %s\n",
		o.why, o.per_vn_s, o.one_s, o.data_s,
		ours_split(cmd, &o));
	return HD_OK;
}
