#include "cmd/run/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "driver/launch.h"
#include "cmd/session.h"
#include "cmd/slurmrestd.h"

#define RUN_KEY "key"                     /* in the run's folder: made for it */

bool hd_places_are_asked(const struct hd_job *job) { return hd_job_int(job, HD_JOB_LAUNCH_KIND) != 0; }

/* "4", "2..4" */
enum hd_err hd_places_number(struct hd_cmd *cmd, enum hd_opt opt, uint64_t from, uint64_t cap,
	uint64_t *least, uint64_t *most)
{
	const char *text = cmd->args.text[opt], *dots = strstr(text, "..");
	char first[16] = "";
	const size_t n = dots ? (size_t)(dots - text) : strlen(text);

	if (n < sizeof first)
		memcpy(first, text, n);
	if (hd_num_u64(first, cap, least, NULL) || hd_num_u64(dots ? dots + 2 : first, cap, most, NULL) ||
		*least < from || !*most || *least > *most)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--nodes %s: write N, or N..M with N not above M; from %llu to %llu", text,
			(unsigned long long)from, (unsigned long long)cap);
	if (!dots)
		*least = 0;
	return HD_OK;
}

enum hd_err hd_places_ask(struct hd_cmd *cmd, struct hd_job *job)
{
	const char *kind = hd_job_text(job, HD_JOB_LAUNCH_KIND);
	uint64_t least = 0, most = 0;

	if (!hd_places_are_asked(job))
		return cmd->args.has[HD_OPT_PLACES] ? hd_fail(&cmd->diag, HD_E_INVAL,
			"--nodes %s: launch.kind is local, whose workers are processes of this machine: say "
			"--workers N, or --launch slurm (or ssh)", cmd->args.text[HD_OPT_PLACES]) : HD_OK;
	if (cmd->args.has[HD_OPT_WORKERS])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"--workers is of processes on this machine, and launch.kind is %s: say --nodes N, or "
			"--launch local", kind);
	if (!cmd->args.has[HD_OPT_PLACES])
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"launch.kind is %s: say on how many nodes, as --nodes 4 or --nodes 2..8; --launch "
			"local "
			"runs here", kind);
	enum hd_err err = hd_places_number(cmd, HD_OPT_PLACES, 1, HD_LAUNCH_WORKERS, &least, &most);
	if (err)
		return err;
	cmd->args.has[HD_OPT_WORKERS] = true;
	cmd->args.count[HD_OPT_WORKERS] = most;
	if (least) {
		job->value[HD_JOB_MIN_WORKERS].i = (int64_t)least;
		job->value[HD_JOB_MIN_WORKERS].origin = HD_FROM_OPTION;
	}
	return HD_OK;
}

/* ---- the launcher */

static enum hd_err take_settings(struct hd_cmd *cmd, const struct hd_job *job,
	struct hd_launcher_settings *settings)
{
	static const struct { enum hd_job_key key; size_t at; } words[] = {
		{ HD_JOB_SSH_HOSTS, offsetof(struct hd_launcher_settings, ssh.hosts) },
		{ HD_JOB_SSH_COMMAND, offsetof(struct hd_launcher_settings, ssh.command) },
		{ HD_JOB_SLURM_PARTITION, offsetof(struct hd_launcher_settings, slurm.partition) },
		{ HD_JOB_SLURM_ACCOUNT, offsetof(struct hd_launcher_settings, slurm.account) },
		{ HD_JOB_SLURM_TIME, offsetof(struct hd_launcher_settings, slurm.time) },
	};
	const struct hd_job_value *signal = &job->value[HD_JOB_SLURM_SIGNAL], *extra =
		&job->value[HD_JOB_SLURM_EXTRA];

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		*(const char **)((char *)settings + words[i].at) = job->value[words[i].key].is_auto ? "" :
			hd_job_text(job, words[i].key);
	settings->slurm.requeue = hd_job_int(job, HD_JOB_SLURM_REQUEUE) != 0;
	settings->slurm.signal_s = signal->is_none ? 0 : (uint32_t)(signal->i / 1000000000);
	if (extra->nargs > HD_LAUNCHER_EXTRA)
		return hd_fail(&cmd->diag, HD_E_INVAL, "launch.slurm.extra has more than %d options",
			HD_LAUNCHER_EXTRA);
	for (uint32_t i = 0; i < extra->nargs; i++)
		settings->slurm.extra[settings->slurm.nextra++] = extra->arg[i].text;
	const struct hd_job_value *rest = &job->value[HD_JOB_SLURM_REST];
	return hd_slurmrestd_find(cmd, rest->is_none ? "" : rest->is_auto ? NULL : rest->text, settings);
}

static const char *from_root(struct hd_cmd *cmd, const char *path)
{
	char folder[HD_PATH_CAP];
	struct hd_text text;

	if (path[0] == '/')
		return path;
	hd_text_init(&text, &cmd->arena);
	if (hd_proc_folder(folder, sizeof folder, &cmd->diag))
		return NULL;
	hd_text_addf(&text, "%s/%s", folder, path);
	return text.full ? NULL : text.at;
}

/* Options of this verb that each worker gets as they are. */
static const char *const *worker_line(struct hd_cmd *cmd, const char *dir)
{
	static const enum hd_opt passed[] = { HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_STEPS, HD_OPT_PROFILE };
	const char **argv = hd_arena_take(&cmd->arena, HD_LAUNCHER_ARGS + 1, sizeof *argv);
	char program[HD_PATH_CAP];
	size_t n = 0;

	if (!argv || hd_proc_program(program, sizeof program, &cmd->diag))
		return NULL;
	argv[n++] = hd_arena_text(&cmd->arena, program, strlen(program));
	argv[n++] = "worker";
	argv[n++] = "--join";
	argv[n++] = dir;
	argv[n++] = "--far";
	argv[n++] = "--going";
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
		const struct hd_opt_row *row = &hd_opts[passed[i]];
		struct hd_text name, count;
		if (!cmd->args.has[passed[i]])
			continue;
		hd_text_init(&name, &cmd->arena);
		hd_text_addf(&name, "--%s", row->name);
		hd_text_init(&count, &cmd->arena);
		hd_text_addf(&count, "%llu", (unsigned long long)cmd->args.count[passed[i]]);
		argv[n++] = name.at;
		argv[n++] = row->kind == HD_TAKES_COUNT ? count.at : cmd->args.text[passed[i]];
		if (name.full || count.full)
			return NULL;
	}
	return argv;
}

/* No other launcher's, of this run or of another. */
static const char *mark_of(struct hd_cmd *cmd, const struct hd_job *job, const char *dir)
{
	char seed[HD_PATH_CAP + 64], hex[HD_HASH_HEX];
	struct hd_proc_self self;
	struct hd_text text;

	hd_proc_self(&self);
	const int n = snprintf(seed, sizeof seed, "%.900s %u %lld", dir, self.pid,
		(long long)hd_clock_wall_ns(&cmd->clock));
	hd_hash_hex(hd_hash(seed, (size_t)n), hex);
	hd_text_init(&text, &cmd->arena);
	hd_text_addf(&text, "heddle-%.40s-%.8s", hd_job_text(job, HD_JOB_NAME), hex);
	return text.full ? NULL : text.at;
}

static enum hd_err make_spec(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_launcher_spec *spec)
{
	struct hd_launcher_settings *settings = hd_arena_take(&cmd->arena, 1, sizeof *settings);
	struct hd_host *host = hd_arena_take(&cmd->arena, 1, sizeof *host);

	*spec = (struct hd_launcher_spec){ .host = host, .fs = &cmd->fs, .clock = &cmd->clock, .dir = dir,
		.name = hd_job_text(job, HD_JOB_NAME), .settings = settings,
		.argv = worker_line(cmd, dir), .mark = mark_of(cmd, job, dir) };

	if (!settings || !host || !spec->argv || !spec->mark)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the launcher");
	*settings = (struct hd_launcher_settings){ .ssh = { .hosts = "" } };
	hd_host_real(host);
	return take_settings(cmd, job, settings);
}

static enum hd_err open_launcher(struct hd_cmd *cmd, const struct hd_job *job, const char *dir,
	struct hd_launcher **launcher)
{
	const struct hd_launcher_ops *ops = hd_launcher_find(hd_job_text(job, HD_JOB_LAUNCH_KIND));
	struct hd_launcher_spec spec;
	enum hd_err err = make_spec(cmd, job, dir, &spec);

	return err ? err : ops->open(&spec, launcher, &cmd->diag);
}

/* The run's folder as it will be, but for a number where one of that name is there. */
enum hd_err hd_places_print(struct hd_cmd *cmd, const struct hd_job *job)
{
	const struct hd_launcher_ops *ops = hd_launcher_find(hd_job_text(job, HD_JOB_LAUNCH_KIND));
	struct hd_launcher_spec spec;
	struct hd_text dir, text;

	if (!hd_places_are_asked(job))
		return hd_fail(&cmd->diag, HD_E_INVAL, "--print shows what a launcher submits, "
			"and launch.kind is local: say --launch slurm (or ssh); --dry-run says what a run "
			"here would be");
	hd_text_init(&dir, &cmd->arena);
	if (cmd->args.has[HD_OPT_OUT])
		hd_text_add(&dir, cmd->args.text[HD_OPT_OUT]);
	else
		hd_text_addf(&dir, "%s/runs/%s", hd_args_text(&cmd->args, HD_OPT_DIR, "."),
			hd_job_text(job, HD_JOB_NAME));
	const char *at = dir.full ? NULL : from_root(cmd, dir.at);
	enum hd_err err = at ? make_spec(cmd, job, at, &spec) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for the path of the run");
	hd_text_init(&text, &cmd->arena);
	err = err ? err : ops->show(&spec, (uint32_t)cmd->args.count[HD_OPT_WORKERS], &text, &cmd->diag);
	if (!err && text.full)
		err = hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the text");
	if (!err)
		printf("%s", text.at);
	return err;
}

/* ---- how places reach the run */

static void set_text(struct hd_job *job, enum hd_job_key key, const char *text)
{
	job->value[key].text = text;
	job->value[key].is_none = false;
	job->value[key].origin = HD_FROM_OPTION;
}

/* An address that an earlier start chose is not this machine's for ever: where the run has made its own key
 * it
 * chose both. */
static enum hd_err open_to_places(struct hd_cmd *cmd, struct hd_job *job, const char *dir, const char *own)
{
	const struct hd_job_value *listen = &job->value[HD_JOB_NET_LISTEN], *key =
		&job->value[HD_JOB_NET_KEY];
	struct hd_text file, where;
	struct hd_diag why = { "" };

	hd_text_init(&file, &cmd->arena);
	hd_text_addf(&file, "%s/" RUN_KEY, dir);
	if (file.full)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the name of a key");
	const bool chosen = listen->origin <= HD_FROM_FILE && !key->is_none && !strcmp(key->text, file.at);
	if (key->is_none && !hd_job_int(job, HD_JOB_NET_PLAIN)) {
		enum hd_err err = hd_key_make(file.at, &why);
		if (err && err != HD_E_EXISTS)
			return hd_fail(&cmd->diag, err, "%s", why.text);
		set_text(job, HD_JOB_NET_KEY, file.at);
	}
	if (!listen->is_none && !chosen)
		return HD_OK;
	if (!*own)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"launch.kind %s: by which address its machines call this one is not known: say "
			"--listen "
			"HOST:PORT, the host in numbers", hd_job_text(job, HD_JOB_LAUNCH_KIND));
	hd_text_init(&where, &cmd->arena);
	hd_text_addf(&where, strchr(own, ':') && *own != '[' ? "[%s]:0" : "%s:0", own);
	set_text(job, HD_JOB_NET_LISTEN, where.at);
	return where.full ? hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for an address") : HD_OK;
}

enum hd_err hd_places_open(struct hd_cmd *cmd, struct hd_job *job, struct hd_rundir *dir,
	struct hd_launcher **launcher)
{
	char own[HD_ADDR_CAP];
	struct hd_launcher *l = NULL;

	*launcher = NULL;
	if (!hd_places_are_asked(job))
		return HD_OK;
	const char *at = from_root(cmd, dir->path);
	enum hd_err err = at ? open_launcher(cmd, job, at, &l) : hd_fail(&cmd->diag, HD_E_NOMEM,
		"no memory for the path of the run");
	err = err ? err : l->ops->check(l, (uint32_t)cmd->args.count[HD_OPT_WORKERS], own, &cmd->diag);
	err = err ? err : open_to_places(cmd, job, at, own);
	if (err)
		hd_places_close(l);
	else
		*launcher = l;
	return err;
}

void hd_places_close(struct hd_launcher *launcher)
{
	if (launcher)
		launcher->ops->close(launcher);
}
