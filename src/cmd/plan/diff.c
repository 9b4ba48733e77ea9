#include <stdio.h>
#include <string.h>

#include "pipeline/diff.h"
#include "cmd/json_line.h"
#include "cmd/plan/schedule.h"
#include "cmd/plan/stages.h"

/* The layouts of a file: one plan, or one or more schedules. */
struct plan_side { const char *path; const char **heading; struct hd_plan_layout *at; uint32_t len; };

static enum hd_err read_schedules(struct hd_cmd *cmd, const char *text, size_t len, struct plan_side *out)
{
	struct hd_schedules all = { 0 };
	enum hd_err err = hd_schedules_parse(&all, text, len, out->path, &cmd->arena, &cmd->diag);

	if (!err && all.len == 0)
		err = hd_fail(&cmd->diag, HD_E_INPUT, "%s: there is no schedule in it", out->path);
	out->at = hd_arena_take(&cmd->arena, (size_t)all.len + 1, sizeof *out->at);
	out->heading = hd_arena_take(&cmd->arena, (size_t)all.len + 1, sizeof *out->heading);
	if (!err && (!out->at || !out->heading))
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to compare plans");
	for (out->len = 0; !err && out->len < all.len; out->len++) {
		out->heading[out->len] = all.at[out->len].heading;
		err = hd_layout_of_schedule(&out->at[out->len], &all.at[out->len], &cmd->arena, &cmd->diag);
	}
	return err;
}

static enum hd_err read_plan(struct hd_cmd *cmd, const char *text, size_t len, struct plan_side *out)
{
	struct hd_plan *plan = hd_arena_take(&cmd->arena, 1, sizeof *plan);

	out->at = hd_arena_take(&cmd->arena, 1, sizeof *out->at);
	out->heading = hd_arena_take(&cmd->arena, 1, sizeof *out->heading);
	if (!plan || !out->at || !out->heading)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to compare plans");
	out->len = 1;
	out->heading[0] = "";
	enum hd_err err = hd_plan_parse(plan, text, len, out->path, &cmd->arena, &cmd->diag);
	return err ? err : hd_layout_of_plan(out->at, plan, &cmd->arena, &cmd->diag);
}

/* As in `ckpt diff`: 5 is kept for "both read, and they differ". */
static enum hd_err read_side(struct hd_cmd *cmd, const char *path, struct plan_side *out)
{
	uint8_t *bytes;
	size_t len;

	*out = (struct plan_side){ .path = path };
	if (hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_SCHEDULE_FILE_BYTES, &bytes, &len, &cmd->diag))
		return HD_E_INPUT;
	return (hd_cmd_is_plan((const char *)bytes) ? read_plan : read_schedules)(cmd, (const char *)bytes,
		len, out) ? HD_E_INPUT : HD_OK;
}

static const char *const section_names[] = { "prologue", "period", "epilogue" };

static const char *section_of(const struct hd_plan_diff *d, const struct hd_list_change *c)
{
	return d->a->list[0] || d->b->list[0] ? section_names[c->section] : "";
}

static const char *word_of(const struct hd_ins *x, char out[48])
{
	struct hd_text text;

	hd_text_fixed(&text, out, 48);
	hd_ins_print(x, &text);
	return text.at;
}

/* ---- as text */

static void print_ranks(const uint32_t *rank, uint32_t n)
{
	printf(n ? " rank%s" : " no rank", n > 1 ? "s" : "");
	for (uint32_t i = 0; i < n; i++)
		printf("%s%u", i ? "," : " ", rank[i]);
}

static void print_sizes(const struct hd_plan_diff *d)
{
	const struct { const char *what; uint32_t a, b; } sizes[] = {
		{ "ranks", d->a->nranks, d->b->nranks }, { "virtual nodes", d->a->nvns, d->b->nvns }, { "stages", d->a->nstages, d->b->nstages },
		{ "chunks", d->a->nchunks, d->b->nchunks },
	};

	if (d->a->update != d->b->update)
		printf("update: %s in A, %s in B\n", hd_update_names[d->a->update],
			hd_update_names[d->b->update]);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i].a != sizes[i].b)
			printf("%s: %u in A, %u in B\n", sizes[i].what, sizes[i].a, sizes[i].b);
}

static void print_changes(const struct hd_plan_diff *d)
{
	char word[48];

	for (uint32_t i = 0; i < d->nlists; i++) {
		const struct hd_list_change *c = &d->list[i];
		printf("rank %u %s%s#%u: ", c->rank, section_of(d, c), *section_of(d, c) ? " " : "", c->at);
		if (c->removed)
			printf("%u removed, from %s on%s", c->removed, word_of(&c->first_removed, word),
				c->added ? "; " : "");
		if (c->added)
			printf("%u added, from %s on", c->added, word_of(&c->first_added, word));
		printf("\n");
	}
}

static void print_text(const struct hd_plan_diff *d)
{
	print_sizes(d);
	for (uint32_t i = 0; i < d->nstages; i++) {
		printf("stage %u:", d->stage[i].stage);
		print_ranks(d->stage[i].from, d->stage[i].nfrom);
		printf(" ->");
		print_ranks(d->stage[i].to, d->stage[i].nto);
		if (d->bytes >= 0)
			printf(", %lld bytes", (long long)d->stage[i].bytes);
		printf("\n");
	}
	for (uint32_t i = 0; i < d->nvns; i++)
		printf("virtual nodes %u-%u of stage %u: rank %d -> rank %d\n", d->vn[i].first,
			d->vn[i].first + d->vn[i].n - 1, d->vn[i].stage,
			(int)d->vn[i].from, (int)d->vn[i].to);
	for (uint32_t i = 0; i < d->nchunks; i++)
		printf("chunks %u-%u: rank %u -> rank %u\n", d->chunk[i].first,
			d->chunk[i].first + d->chunk[i].n - 1, d->chunk[i].from, d->chunk[i].to);
	for (uint32_t i = 0; i < d->nranks; i++)
		printf("rank %u: worker %u -> worker %u\n", d->rank[i].rank, d->rank[i].from, d->rank[i].to);
	print_changes(d);
	printf("%s: %llu virtual nodes, %u stages, %llu chunks move; %llu instructions removed, %llu added",
		d->same ? "IDENTICAL" : "DIFFERENT", (unsigned long long)d->vns_moved, d->nstages,
		(unsigned long long)d->chunks_moved,
		(unsigned long long)d->removed, (unsigned long long)d->added);
	if (d->bytes >= 0)
		printf("; %lld bytes travel", (long long)d->bytes);
	printf("\n");
}

/* ---- as JSON */

static void put_ranks(struct hd_json_writer *w, const char *key, const uint32_t *rank, uint32_t n)
{
	hd_json_open_array(w, key);
	for (uint32_t i = 0; i < n; i++)
		hd_json_put_i64(w, NULL, rank[i]);
	hd_json_close(w);
}

static void put_run(struct hd_json_writer *w, uint32_t first, uint32_t n, uint32_t from, uint32_t to)
{
	hd_json_put_i64(w, "first", first);
	hd_json_put_i64(w, "n", n);
	hd_json_put_i64(w, "from", (int32_t)from);
	hd_json_put_i64(w, "to", (int32_t)to);
}

static void put_moves(struct hd_json_writer *w, const struct hd_plan_diff *d)
{
	hd_json_open_array(w, "stages");
	for (uint32_t i = 0; i < d->nstages; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "stage", d->stage[i].stage);
		put_ranks(w, "from", d->stage[i].from, d->stage[i].nfrom);
		put_ranks(w, "to", d->stage[i].to, d->stage[i].nto);
		if (d->bytes >= 0)
			hd_json_put_i64(w, "bytes", d->stage[i].bytes);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "virtual_nodes");
	for (uint32_t i = 0; i < d->nvns; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "stage", d->vn[i].stage);
		put_run(w, d->vn[i].first, d->vn[i].n, d->vn[i].from, d->vn[i].to);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "chunks");
	for (uint32_t i = 0; i < d->nchunks; i++) {
		hd_json_open_object(w, NULL);
		put_run(w, d->chunk[i].first, d->chunk[i].n, d->chunk[i].from, d->chunk[i].to);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_open_array(w, "workers");
	for (uint32_t i = 0; i < d->nranks; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "rank", d->rank[i].rank);
		hd_json_put_i64(w, "from", d->rank[i].from);
		hd_json_put_i64(w, "to", d->rank[i].to);
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_changes(struct hd_json_writer *w, const struct hd_plan_diff *d)
{
	char word[48];

	hd_json_open_array(w, "lists");
	for (uint32_t i = 0; i < d->nlists; i++) {
		const struct hd_list_change *c = &d->list[i];
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "rank", c->rank);
		if (*section_of(d, c))
			hd_json_put_text(w, "section", section_of(d, c));
		hd_json_put_i64(w, "at", c->at);
		hd_json_put_i64(w, "removed", c->removed);
		hd_json_put_i64(w, "added", c->added);
		if (c->removed)
			hd_json_put_text(w, "first_removed", word_of(&c->first_removed, word));
		if (c->added)
			hd_json_put_text(w, "first_added", word_of(&c->first_added, word));
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct hd_plan_diff *d)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_bool(w, "identical", d->same);
	hd_json_put_text(w, "a", cmd->args.pos[0]);
	hd_json_put_text(w, "b", cmd->args.pos[1]);
	put_moves(w, d);
	put_changes(w, d);
	hd_json_put_i64(w, "virtual_nodes_moved", (int64_t)d->vns_moved);
	hd_json_put_i64(w, "chunks_moved", (int64_t)d->chunks_moved);
	hd_json_put_i64(w, "removed", (int64_t)d->removed);
	hd_json_put_i64(w, "added", (int64_t)d->added);
	if (d->bytes >= 0)
		hd_json_put_i64(w, "bytes", d->bytes);
	hd_json_line_print(&line);
}

static enum hd_err verb_plan_diff(struct hd_cmd *cmd)
{
	struct plan_side a, b;
	uint32_t differ = 0;
	enum hd_err err = read_side(cmd, cmd->args.pos[0], &a);

	err = err ? err : read_side(cmd, cmd->args.pos[1], &b);
	if (!err && a.len != b.len)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"%s holds %u schedules, %s %u: they are compared one by one, in order", a.path, a.len,
			b.path, b.len);
	for (uint32_t i = 0; !err && i < a.len; i++) {
		const struct hd_stage_costs *costs = NULL;
		struct hd_plan_diff d;
		err = hd_cmd_stage_costs(cmd, b.at[i].nstages, &costs, NULL);
		err = err ? err : hd_plan_diff(&d, &a.at[i], &b.at[i], costs, &cmd->arena, &cmd->diag);
		if (err)
			break;
		differ += !d.same;
		if (cmd->args.has[HD_OPT_JSON]) {
			print_json(cmd, &d);
			continue;
		}
		if (a.len > 1)
			printf("## %s -> %s\n", a.heading[i], b.heading[i]);
		print_text(&d);
	}
	if (err)
		return err;
	return differ ? hd_fail(&cmd->diag, HD_E_INTEGRITY, "%s and %s differ", a.path, b.path) : HD_OK;
}

const struct hd_verb hd_verb_plan_diff = {
	.name = "plan diff", .args = "A B", .npos_min = 2, .npos_max = 2,
	.about = "what moves between two plans, or two schedules",
	.more =
		"Stages that change ranks, virtual nodes that change ranks (of stages with copies), "
		"owners of chunks, workers of ranks, and of each list how many instructions are removed "
		"and added. With --graph, the bytes that ranks need of the stages which they come to "
		"hold: weights and optimizer state. Exit 0 if nothing differs, 5 if something does, 3 "
		"if a file cannot be read.",
	.opts = HD_OPTS(HD_OPT_GRAPH, HD_OPT_CUTS, HD_OPT_MAX_CUTS, HD_OPT_COMPRESS),
	.run = verb_plan_diff, .test = "program_plan.sh",
};
