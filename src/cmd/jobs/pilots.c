#include "cmd/jobs/serve.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/num.h"
#include "sys/process.h"
#include "launch/launcher.h"
#include "cmd/run/places.h"
#include "cmd/slurmrestd.h"

/* `heddle serve --launch`: a launcher for each type of node, whose places are pilots of the scheduler; with
 * --no-pilots what its batch jobs are asked for by. */

enum { IDLE_MS = 60000, IDLE_MOST_MS = 86400000, SIGNAL_S = 120 };

bool hd_serve_launches(const struct hd_cmd *cmd)
{
	return strcmp(hd_args_text(&cmd->args, HD_OPT_LAUNCH, "local"), "local") != 0;
}

/* All that a scheduler with pilots has for as long as it serves. */
struct lending {
	struct hd_pilots_spec spec;
	struct hd_batches_spec batches;
	struct hd_host host;
	struct hd_launcher_settings settings[HD_LAUNCHER_TYPES];
	char own[HD_ADDR_CAP];
};

static enum hd_err no_memory(struct hd_cmd *cmd) { return hd_fail(&cmd->diag, HD_E_NOMEM,
	"no memory for the pilots"); }

/* ---- options */

static enum hd_err take_extra(struct hd_cmd *cmd, struct hd_launcher_settings *s)
{
	const char *text = hd_args_text(&cmd->args, HD_OPT_LENT_EXTRA, "");

	while (*(text += strspn(text, " "))) {
		const size_t len = strcspn(text, " ");
		/* the last one is the type's */
		if (s->slurm.nextra == HD_LAUNCHER_EXTRA - 1)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--sbatch has more than %d options",
				HD_LAUNCHER_EXTRA - 1);
		const char *one = hd_arena_text(&cmd->arena, text, len);
		if (!one)
			return no_memory(cmd);
		s->slurm.extra[s->slurm.nextra++] = one;
		text += len;
	}
	return HD_OK;
}

static enum hd_err take_options(struct hd_cmd *cmd, struct lending *l)
{
	struct hd_launcher_settings *s = &l->settings[0];
	uint64_t least = 0, most = 0, idle_ms = IDLE_MS;
	struct hd_diag why = { "" };

	if (strcmp(cmd->args.text[HD_OPT_LAUNCH], "slurm") != 0)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--launch %s: a scheduler's nodes come from slurm; on "
			"hosts of your own start `heddle worker --join DIR/" HD_PILOTS_FOLDER "/TYPE`",
			cmd->args.text[HD_OPT_LAUNCH]);
	if (!cmd->args.has[HD_OPT_LENT_NODES])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--launch %s: say how many nodes, as --nodes 8 or --nodes 1..8",
				cmd->args.text[HD_OPT_LAUNCH]);
	enum hd_err err = hd_places_number(cmd, HD_OPT_LENT_NODES, 0, HD_POOL_DEVICES, &least, &most);
	if (!err && cmd->args.has[HD_OPT_LENT_IDLE] &&
		hd_num_duration(cmd->args.text[HD_OPT_LENT_IDLE], IDLE_MOST_MS, &idle_ms, &why))
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--idle %s: %s", cmd->args.text[HD_OPT_LENT_IDLE],
			why.text);
	if (err)
		return err;
	l->spec.least = (uint32_t)least;
	l->spec.most = (uint32_t)most;
	l->spec.idle_ns = (int64_t)idle_ms * 1000000;
	*s = (struct hd_launcher_settings){ .ssh = { .hosts = "", .command = "" }, .slurm = {
		.partition = hd_args_text(&cmd->args, HD_OPT_LENT_FROM, ""),
		.account = hd_args_text(&cmd->args, HD_OPT_LENT_AS, ""),
		.time = hd_args_text(&cmd->args, HD_OPT_LENT_FOR, ""), .requeue = false, .signal_s =
			SIGNAL_S } };
	err = hd_slurmrestd_find(cmd, NULL, s);
	return err ? err : take_extra(cmd, s);
}

/* ---- launchers */

static const char *text_of(struct hd_cmd *cmd, const char *a, const char *b, const char *c)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_text_addf(&text, "%s%s%s", a, b, c);
	return text.full ? NULL : text.at;
}

/* The same at each start of this folder's scheduler, and no other's. */
static const char *mark_of(struct hd_cmd *cmd, const char *dir, const char *type)
{
	char full[HD_PATH_CAP], hex[HD_HASH_HEX], mark[32];

	if (!realpath(dir, full))
		snprintf(full, sizeof full, "%s", dir);
	hd_hash_hex(hd_hash(full, strlen(full)), hex);
	snprintf(mark, sizeof mark, "heddle-%.12s-", hex);
	return text_of(cmd, mark, type, "");
}

static const enum hd_opt passed[] = { HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_PROFILE };
enum { PASSED = 2 * sizeof passed / sizeof *passed };
_Static_assert((int)PASSED < (int)HD_BATCHES_PASSED, "they end with NULL");

/* What of ours each worker gets, at argv: PASSED words at most, and how many. */
static size_t pass_on(struct hd_cmd *cmd, const char **argv)
{
	char count[24];
	size_t n = 0;

	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		const struct hd_opt_row *row = &hd_opts[passed[i]];
		if (!cmd->args.has[passed[i]])
			continue;
		snprintf(count, sizeof count, "%llu", (unsigned long long)cmd->args.count[passed[i]]);
		argv[n++] = text_of(cmd, "--", row->name, "");
		argv[n++] = row->kind == HD_TAKES_COUNT ? text_of(cmd, count, "", "") :
			cmd->args.text[passed[i]];
	}
	return n;
}

static const char *program_of(struct hd_cmd *cmd)
{
	char program[HD_PATH_CAP];

	return hd_proc_program(program, sizeof program, &cmd->diag) ? NULL : text_of(cmd, program, "", "");
}

static bool are_all(const char *const *argv, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!argv[i])
			return false;
	return true;
}

/* `heddle worker --join FOLDER`. */
static const char *const *pilot_line(struct hd_cmd *cmd, const char *folder)
{
	const char **argv = hd_arena_take(&cmd->arena, HD_LAUNCHER_ARGS + 1, sizeof *argv);

	if (!argv)
		return NULL;
	argv[0] = program_of(cmd);
	argv[1] = "worker";
	argv[2] = "--join";
	argv[3] = folder;
	return are_all(argv, 4 + pass_on(cmd, argv + 4)) ? argv : NULL;
}

static enum hd_err open_one(struct hd_cmd *cmd, struct lending *l, const char *dir, const char *type,
	const struct hd_launcher_settings *settings, struct hd_launcher **launcher)
{
	const struct hd_launcher_ops *ops = hd_launcher_find(cmd->args.text[HD_OPT_LAUNCH]);
	const char *folder = text_of(cmd, dir, "/" HD_PILOTS_FOLDER "/", type);
	struct hd_launcher_spec spec = { .host = &l->host, .fs = &cmd->fs, .clock = &cmd->clock, .dir =
		folder,
		.name = "a scheduler", .mark = mark_of(cmd, dir, type), .stays = true, .settings = settings };

	spec.argv = folder ? pilot_line(cmd, folder) : NULL;
	if (!folder || !spec.mark || !spec.argv)
		return no_memory(cmd);
	return ops->open(&spec, launcher, &cmd->diag);
}

/* ---- types */

static uint32_t least_of(uint32_t a, uint32_t b) { return a < b ? a : b; }

static const struct hd_launcher_type *type_named(const struct hd_launcher_types *types, const char *name)
{
	for (uint32_t i = 0; i < types->n; i++)
		if (!strcmp(types->at[i].name, name))
			return &types->at[i];
	return NULL;
}

/* --pool names types with their speeds and prices; without it all that there are, alike. */
static enum hd_err make_pools(struct hd_cmd *cmd, const struct lending *l,
	const struct hd_launcher_types *types,
	struct hd_pools *pools)
{
	struct hd_text names;
	enum hd_err err = HD_OK;

	hd_text_init(&names, &cmd->arena);
	for (uint32_t i = 0; i < types->n; i++) {
		char text[96];
		hd_text_addf(&names, "%s%s (%u)", i ? ", " : "", types->at[i].name, types->at[i].n);
		snprintf(text, sizeof text, "%s:%u", types->at[i].name, least_of(types->at[i].n,
			l->spec.most));
		if (!cmd->args.has[HD_OPT_POOLS] && !err)
			err = hd_pools_add(pools, text, &cmd->diag);
	}
	for (uint32_t t = 0; t < pools->ntypes && !err; t++)
		if (!type_named(types, pools->name[t]))
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"--pool: Slurm has no nodes of type %s, but %s: a "
				"type is that of a node's GPU, else its first feature, else \"node\"",
				pools->name[t], names.at);
	return err;
}

/* Each asks for its type. */
static enum hd_err settle_types(struct hd_cmd *cmd, struct lending *l, const struct hd_launcher_types *types,
	const struct hd_pools *pools)
{
	const struct hd_launcher_settings shared = l->settings[0];

	for (uint32_t t = 0; t < pools->ntypes; t++) {
		const struct hd_launcher_type *type = type_named(types, pools->name[t]);
		struct hd_launcher_settings *s = &l->settings[t];
		*s = shared;
		if (*type->option)
			s->slurm.extra[s->slurm.nextra++] = text_of(cmd, type->option, "", "");
		if (*type->option && !s->slurm.extra[s->slurm.nextra - 1])
			return no_memory(cmd);
	}
	return HD_OK;
}

static enum hd_err open_all(struct hd_cmd *cmd, struct lending *l, const char *dir,
	const struct hd_pools *pools)
{
	enum hd_err err = HD_OK;

	for (uint32_t t = 0; t < pools->ntypes && !err; t++)
		err = open_one(cmd, l, dir, pools->name[t], &l->settings[t], &l->spec.launcher[t]);
	return err;
}

/* A lease is given before its nodes are asked for: no more may be given than may be had. */
static enum hd_err open_batches(struct hd_cmd *cmd, struct lending *l, const char *dir,
	const struct hd_pools *pools)
{
	if (l->spec.least)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--no-pilots: no node is held without a job: --nodes %u",
			l->spec.most);
	if (pools->ndevices > l->spec.most)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--no-pilots: the pools have %u nodes, --nodes says %u: "
			"say by --pool TYPE:N,... how many of each type", pools->ndevices, l->spec.most);
	l->batches = (struct hd_batches_spec){ .host = &l->host, .fs = &cmd->fs, .clock = &cmd->clock,
		.ops = hd_launcher_find(cmd->args.text[HD_OPT_LAUNCH]), .pools = pools,
		.settings = l->settings, .mark = mark_of(cmd, dir, "job-"), .program = program_of(cmd),
		.own = l->own };
	const size_t n = pass_on(cmd, l->batches.passed);
	return l->batches.mark && l->batches.program && are_all(l->batches.passed, n) ? HD_OK :
		no_memory(cmd);
}

/* What there is, by a launcher of no type. */
static enum hd_err look_around(struct hd_cmd *cmd, struct lending *l, const char *dir,
	struct hd_launcher_types *types)
{
	struct hd_launcher *any = NULL;
	enum hd_err err = open_one(cmd, l, dir, ".any", &l->settings[0], &any);

	if (err)
		return err;
	err = any->ops->check(any, l->spec.most, l->own, &cmd->diag);
	err = err ? err : any->ops->types(any, types, &cmd->diag);
	any->ops->close(any);
	l->spec.own = l->own;
	return err || types->n ? err : hd_fail(&cmd->diag, HD_E_INVAL, "Slurm has no nodes: `sinfo -N -l`");
}

enum hd_err hd_serve_launch(struct hd_cmd *cmd, const char *dir, struct hd_pools *pools,
	struct hd_serve_lent *lent)
{
	const bool batches = cmd->args.has[HD_OPT_NO_PILOTS];
	struct hd_launcher_types types = { 0 };

	*lent = (struct hd_serve_lent){ NULL, NULL };
	if (!hd_serve_launches(cmd))
		return HD_OK;
	struct lending *l = hd_arena_take(&cmd->arena, 1, sizeof *l);
	if (!l)
		return no_memory(cmd);
	*l = (struct lending){ .spec = { .fs = &cmd->fs, .clock = &cmd->clock, .dir = dir, .pools = pools } };
	hd_host_real(&l->host);
	enum hd_err err = take_options(cmd, l);
	err = err ? err : hd_fs_mkdirs(&cmd->fs, dir, &cmd->diag);
	err = err ? err : look_around(cmd, l, dir, &types);
	err = err ? err : make_pools(cmd, l, &types, pools);
	err = err ? err : settle_types(cmd, l, &types, pools);
	err = err ? err : batches ? open_batches(cmd, l, dir, pools) : open_all(cmd, l, dir, pools);
	lent->pilots = batches ? NULL : &l->spec;
	lent->batches = batches ? &l->batches : NULL;
	if (err)
		hd_serve_launch_close(lent);
	return err;
}

void hd_serve_launch_close(struct hd_serve_lent *lent)
{
	for (uint32_t t = 0; lent->pilots && t < HD_DISPATCH_TYPES; t++)
		if (lent->pilots->launcher[t])
			lent->pilots->launcher[t]->ops->close(lent->pilots->launcher[t]);
	*lent = (struct hd_serve_lent){ NULL, NULL };
}
