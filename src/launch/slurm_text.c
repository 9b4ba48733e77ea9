#define _GNU_SOURCE        /* of the C library: memmem */
#include "launch/slurm_text.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/num.h"
#include "launch/launcher_ops.h"

/* ---- lines of fields */

bool hd_slurm_next_line(const char **at, const char *end, const char **line, size_t *len)
{
	if (*at >= end)
		return false;
	const char *nl = memchr(*at, '\n', (size_t)(end - *at));
	*line = *at;
	*len = (size_t)((nl ? nl : end) - *at);
	*at = nl ? nl + 1 : end;
	return true;
}

bool hd_slurm_word(const char *text, size_t len, char *to, size_t cap)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	if (len < cap) {
		memcpy(to, text, len);
		to[len] = '\0';
	} else {
		memcpy(to, text, cap - 4);
		memcpy(to + cap - 4, "...", 4);
	}
	return true;
}

/* Field up to '|' or the end, without blanks around it. */
static bool field(const char **at, const char *end, char *to, size_t cap)
{
	const char *begin = *at, *bar = begin <= end ? memchr(begin, '|', (size_t)(end - begin)) : NULL,
		*last = bar ? bar : end;

	if (begin > end)
		return false;
	*at = last + 1;
	while (begin < last && *begin == ' ')
		begin++;
	while (last > begin && last[-1] == ' ')
		last--;
	return (size_t)(last - begin) < cap && hd_slurm_word(begin, (size_t)(last - begin), to, cap);
}

/* One of which users see the begin, if it is too long. */
static bool field_cut(const char **at, const char *end, char *to, size_t cap)
{
	char whole[1024];

	return field(at, end, whole, sizeof whole) && hd_slurm_word(whole, strlen(whole), to, cap);
}

/* Of squeue's words. COMPLETING holds its node still. */
static const struct { const char *word; enum hd_slurm_stage stage; } states[] = {
	{ "PENDING", HD_SLURM_WAITS }, { "REQUEUED", HD_SLURM_WAITS }, { "REQUEUE_FED", HD_SLURM_WAITS },
	{ "REQUEUE_HOLD", HD_SLURM_WAITS }, { "SPECIAL_EXIT", HD_SLURM_WAITS },
	{ "RESV_DEL_HOLD", HD_SLURM_WAITS },
	{ "CONFIGURING", HD_SLURM_RUNS }, { "RUNNING", HD_SLURM_RUNS }, { "COMPLETING", HD_SLURM_RUNS },
	{ "SUSPENDED", HD_SLURM_RUNS }, { "STOPPED", HD_SLURM_RUNS }, { "RESIZING", HD_SLURM_RUNS },
	{ "SIGNALING", HD_SLURM_RUNS }, { "STAGE_OUT", HD_SLURM_RUNS },
	{ "COMPLETED", HD_SLURM_OVER }, { "FAILED", HD_SLURM_OVER }, { "CANCELLED", HD_SLURM_OVER },
	{ "TIMEOUT", HD_SLURM_OVER }, { "PREEMPTED", HD_SLURM_OVER }, { "NODE_FAIL", HD_SLURM_OVER },
	{ "BOOT_FAIL", HD_SLURM_OVER }, { "DEADLINE", HD_SLURM_OVER }, { "OUT_OF_MEMORY", HD_SLURM_OVER },
	{ "REVOKED", HD_SLURM_OVER },
};

bool hd_slurm_stage(const char *word, enum hd_slurm_stage *stage)
{
	for (size_t i = 0; i < sizeof states / sizeof *states; i++)
		if (!strcmp(states[i].word, word)) {
			*stage = states[i].stage;
			return true;
		}
	return false;
}

/* squeue prints the status of wait(2). */
int hd_slurm_code(uint64_t status)
{
	return status & 127 ? 128 + (int)(status & 127) : (int)(status >> 8 & 255);
}

/* Digits, and of an array its index; the first character is the job's number. */
static bool is_id(const char *id)
{
	const size_t job = strspn(id, "0123456789"), index = id[job] == '_' ? strspn(id + job + 1,
		"0123456789") :
		0;

	return job && (id[job] ? id[job] == '_' && index && !id[job + 1 + index] : true);
}

static enum hd_err strange(const char *what, const char *line, size_t len, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_INPUT, "%s: \"%.*s\" is not understood", what, (int)(len < 120 ? len : 120),
		line);
}

enum hd_err hd_slurm_line_parse(const char *line, size_t len, struct hd_slurm_line *out, struct hd_diag *diag)
{
	struct hd_slurm_line l = { .id = "" };
	const char *at = line, *end = line + len;
	char code[16], restarts[16];
	uint64_t status = 0, n = 0;
	const bool whole = field(&at, end, l.id, sizeof l.id) && field(&at, end, l.state, sizeof l.state) &&
		field(&at, end, code, sizeof code) && field(&at, end, restarts, sizeof restarts) &&
		field_cut(&at, end, l.node, sizeof l.node) && field_cut(&at, end, l.reason, sizeof l.reason);

	if (!whole || !is_id(l.id) || !hd_slurm_stage(l.state, &l.stage) || hd_num_u64(code, UINT32_MAX,
		&status, NULL) ||
		hd_num_u64(restarts, UINT32_MAX, &n, NULL))
		return strange("squeue", line, len, diag);
	l.code = hd_slurm_code(status);
	l.restarts = (uint32_t)n;
	if (!strcmp(l.reason, "None"))
		l.reason[0] = '\0';
	*out = l;
	return HD_OK;
}

/* Room for as many as there are lines. */
static void *room_for(const char *text, size_t len, size_t each, struct hd_arena *arena)
{
	size_t n = 1;

	for (const char *at = text, *end = text + len; at < end; n++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		at = nl ? nl + 1 : end;
	}
	return hd_arena_take(arena, n, each);
}

enum hd_err hd_slurm_lines_parse(const char *text, size_t len, struct hd_arena *arena,
	struct hd_slurm_lines *out, struct hd_diag *diag)
{
	struct hd_slurm_line *to = room_for(text, len, sizeof *to, arena);
	const char *at = text, *line;
	enum hd_err err = HD_OK;
	uint32_t n = 0;
	size_t size;

	if (!to)
		return hd_fail(diag, HD_E_NOMEM, "no memory for what squeue says");
	while (hd_slurm_next_line(&at, text + len, &line, &size)) {
		const enum hd_err bad = size ? hd_slurm_line_parse(line, size, &to[n], diag) : HD_E_INPUT;
		n += !bad;
		err = err || !size ? err : bad;
	}
	*out = (struct hd_slurm_lines){ .at = to, .n = n };
	return err;
}

enum hd_err hd_slurm_id_parse(const char *text, size_t len, char id[HD_SLURM_ID], struct hd_diag *diag)
{
	const char *at = text, *end = text + len, *line, *bare = NULL;
	size_t n, nbare = 0;

	/* sbatch may print a site's remarks before it */
	while (hd_slurm_next_line(&at, end, &line, &n)) {
		const char *semicolon = memchr(line, ';', n);
		const size_t digits = semicolon ? (size_t)(semicolon - line) : n;
		size_t i = 0;
		while (i < digits && line[i] >= '0' && line[i] <= '9')
			i++;
		if (digits && digits < HD_SLURM_ID / 2 && i == digits) {
			bare = line;
			nbare = digits;
		}
	}
	if (!bare)
		return strange("sbatch", text, len, diag);
	memcpy(id, bare, nbare);
	id[nbare] = '\0';
	return HD_OK;
}

/* Of a text up to one of `ends`, as a name of ours; false: it is none. */
static bool take_name(const char *text, const char *ends, char name[HD_LAUNCHER_NAME])
{
	const size_t n = strcspn(text, ends);

	snprintf(name, HD_LAUNCHER_NAME, "%.*s", (int)(n < HD_LAUNCHER_NAME ? n : HD_LAUNCHER_NAME - 1),
		text);
	return n && n < HD_LAUNCHER_NAME && hd_name_valid(name);
}

/* "gpu:v100:2(S:0-1),gpu:k80:1", "gpu:4", "(null)": the first that is a GPU. A job asks for all of that type,
 * as it takes whole nodes. */
static bool type_of_gres(const char *gres, struct hd_launcher_type *type)
{
	for (; *gres; gres += strcspn(gres, ","), gres += *gres == ',') {
		if (strncmp(gres, "gpu:", 4) != 0)
			continue;
		const char *number = gres + 4;
		const size_t digits = strspn(number, "0123456789");
		const bool typed = !digits || (number[digits] && !strchr("(,", number[digits]));
		if (typed && !take_name(number, ":(,", type->name))
			continue;
		if (!typed)
			memcpy(type->name, "gpu", 4);
		snprintf(type->option, sizeof type->option, "--gres=%.*s", (int)strcspn(gres, "(,"), gres);
		return true;
	}
	return false;
}

void hd_slurm_type_of(const char *gres, const char *features, struct hd_launcher_type *type)
{
	*type = (struct hd_launcher_type){ .n = 1 };
	if (type_of_gres(gres, type))
		return;
	if (strcmp(features, "(null)") != 0 && take_name(features, ",", type->name)) {
		snprintf(type->option, sizeof type->option, "--constraint=%s", type->name);
		return;
	}
	memcpy(type->name, "node", 5);
}

enum hd_err hd_slurm_node_parse(const char *line, size_t len, struct hd_batch_node *out, struct hd_diag *diag)
{
	const char *at = line, *end = line + len;
	char gres[256] = "", features[512] = "", partition[80] = "";
	struct hd_batch_node n;

	if (!field(&at, end, n.name, sizeof n.name) || !field(&at, end, n.address, sizeof n.address) ||
		!field(&at, end, n.state, sizeof n.state) || !n.name[0] || !n.state[0])
		return strange("sinfo", line, len, diag);
	if (!field(&at, end, gres, sizeof gres))
		gres[0] = '\0';
	if (!field(&at, end, features, sizeof features))
		features[0] = '\0';
	if (!field(&at, end, partition, sizeof partition))
		partition[0] = '\0';
	n.usual = !*partition || partition[strlen(partition) - 1] == '*';
	hd_slurm_type_of(gres, features, &n.type);
	*out = n;
	return HD_OK;
}

enum hd_err hd_slurm_nodes_parse(const char *text, size_t len, struct hd_arena *arena,
	struct hd_batch_nodes *out, struct hd_diag *diag)
{
	struct hd_batch_node *to = room_for(text, len, sizeof *to, arena);
	const char *at = text, *line;
	uint32_t n = 0;
	size_t size;

	if (!to)
		return hd_fail(diag, HD_E_NOMEM, "no memory for what sinfo says");
	while (hd_slurm_next_line(&at, text + len, &line, &size))
		n += size && !hd_slurm_node_parse(line, size, &to[n], NULL);
	*out = (struct hd_batch_nodes){ .at = to, .n = n };
	return HD_OK;
}

enum hd_err hd_slurm_types(const struct hd_batch_nodes *nodes, bool usual, struct hd_launcher_types *types,
	struct hd_diag *diag)
{
	struct hd_launcher_types t = { 0 };

	for (uint32_t n = 0; n < nodes->n; n++) {
		const struct hd_batch_node *node = &nodes->at[n];
		uint32_t i = 0, k;
		if (usual && !node->usual)
			continue;
		while (i < t.n && strcmp(t.at[i].name, node->type.name) < 0)
			i++;
		if (i < t.n && !strcmp(t.at[i].name, node->type.name)) {
			t.at[i].n++;
			continue;
		}
		if (t.n == HD_LAUNCHER_TYPES)
			return hd_fail(diag, HD_E_INVAL,
				"sinfo: its nodes have more than %d types (of GPUs, else "
				"first features): choose a partition with fewer", HD_LAUNCHER_TYPES);
		for (k = t.n++; k > i; k--)
			t.at[k] = t.at[k - 1];
		t.at[i] = node->type;
	}
	*types = t;
	return HD_OK;
}

/* ---- time limits */

/* What each of so many numbers is worth: behind days hours come first, else minutes, or of three hours. */
static const double worth[2][3][3] = { { { 60 }, { 60, 1 }, { 3600, 60, 1 } },
	{ { 3600 }, { 3600, 60 }, { 3600, 60, 1 } } };

bool hd_slurm_time(const char *text, double *seconds)
{
	const char *dash = strchr(text, '-'), *at = text;
	uint64_t number[4];
	uint32_t n = 0;
	char one[12];

	for (; n < 4; n++) {
		size_t len = strcspn(at, n || !dash ? ":" : "-");
		for (; len > 1 && *at == '0'; len--)
			at++;
		if (len >= sizeof one)
			return false;
		snprintf(one, sizeof one, "%.*s", (int)len, at);
		if (hd_num_u64(one, 1000000, &number[n], NULL))
			return false;
		at += len;
		if (!*at++) {
			n++;
			break;
		}
	}
	const uint32_t days = dash != NULL;
	if (at[-1] || n <= days || n - days > 3)
		return false;
	*seconds = days ? 86400 * (double)number[0] : 0;
	for (uint32_t i = days; i < n; i++)
		*seconds += worth[days][n - days - 1][i - days] * (double)number[i];
	return true;
}

/* ---- refusals */

/* What Slurm says, and what to do; the first that its text holds. */
static const struct { const char *says; enum hd_err err; const char *now; } refusals[] = {
	{ "Unable to contact slurm controller", HD_E_AGAIN, "`scontrol ping` says whether it is up" },
	{ "Socket timed out", HD_E_AGAIN, "`scontrol ping` says whether it is up" },
	{ "Slurm backup controller in standby mode", HD_E_AGAIN, "it takes over within some minutes" },
	{ "temporarily unable to accept job", HD_E_AGAIN, "it is tried again" },
	{ "Job submit/allocate rate limit", HD_E_AGAIN, "it is tried again" },
	{ "Protocol authentication error", HD_E_REFUSED, "is munge running here? `munge -n | unmunge`" },
	{ "Munge encode failed", HD_E_REFUSED, "is munge running here? `munge -n | unmunge`" },
	{ "Unable to process configuration file", HD_E_REFUSED,
		"this machine knows no cluster: run on one that submits, or set SLURM_CONF" },
	{ "Could not establish a configuration source", HD_E_REFUSED,
		"this machine knows no cluster: run on one that submits, or set SLURM_CONF" },
	{ "nvalid partition", HD_E_INVAL, "launch.slurm.partition: `sinfo -s` lists them" },
	{ "nvalid account", HD_E_INVAL, "launch.slurm.account: `sacctmgr show assoc user=$USER` lists yours" },
	{ "nvalid qos", HD_E_INVAL, "--qos in launch.slurm.extra: `sacctmgr show qos` lists them" },
	{ "time limit", HD_E_INVAL, "launch.slurm.time: `sinfo -o '%P %l'` shows the longest" },
	{ "nvalid --time", HD_E_INVAL, "launch.slurm.time: write HH:MM:SS or minutes" },
	{ "unrecognized option", HD_E_INVAL, "launch.slurm.extra: options of sbatch, one a text" },
	{ "nvalid feature", HD_E_INVAL, "--constraint in launch.slurm.extra: `sinfo -o '%N %f'` lists them" },
	{ "nvalid generic resource", HD_E_INVAL, "--gres in launch.slurm.extra: `sinfo -o '%N %G'` lists them" },
	{ "node configuration is not available", HD_E_INVAL,
		"no node has what launch.slurm.extra asks for: `sinfo -N -l` shows them" },
	{ "nvalid job array", HD_E_INVAL, "ask for fewer nodes: MaxArraySize of `scontrol show config`" },
	{ "violates accounting/QOS policy", HD_E_INVAL,
		"the site's limits: fewer nodes, less launch.slurm.time, or another account" },
};

enum hd_err hd_slurm_refusal(const char *command, const char *text, size_t len, struct hd_diag *diag)
{
	const char *at = text, *end = text + len, *line = "", *said = "";
	size_t n = 0, nsaid = 0;

	/* the last one that says something */
	while (hd_slurm_next_line(&at, end, &line, &n))
		if (n && memmem(line, n, "Try \"", 5) != line) {
			said = line;
			nsaid = n;
		}
	static const char error[] = ": error: ";
	const char *mark = nsaid ? memmem(said, nsaid, error, strlen(error)) : NULL;
	if (mark) {
		nsaid -= (size_t)(mark - said) + strlen(error);
		said = mark + strlen(error);
	}
	if (!nsaid) {
		said = "it failed without a word";
		nsaid = strlen(said);
	}
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
		if (memmem(text, len, refusals[i].says, strlen(refusals[i].says)))
			return hd_fail(diag, refusals[i].err, "%s: %.*s; %s", command,
				(int)(nsaid < 200 ? nsaid : 200), said, refusals[i].now);
	return hd_fail(diag, HD_E_INVAL,
		"%s: %.*s; try the batch script by hand: `sbatch launch.sh` in the run's folder", command,
		(int)(nsaid < 300 ? nsaid : 300), said);
}

/* ---- the script */

/* What a place is, unless an option says how much of a node it takes. */
static const char *const sizes[] = { "--exclusive", "--oversubscribe", "-s", "--cpus-per-task", "-c",
	"--ntasks",
	"-n", "--mincpus" };
/* The launcher counts on these. */
static const char *const own[] = { "--array", "-a", "--job-name", "-J", "--nodes", "-N", "--output", "-o",
	"--error", "-e", "--parsable", "--wrap", "--requeue", "--no-requeue", "--signal", "--wait", "-W",
	"--open-mode", "--test-only", "--ntasks-per-node" };

static bool is_option(const char *text, const char *option)
{
	const size_t n = strlen(option);

	return !strncmp(text, option, n) && (!text[n] || text[n] == '=' || text[n] == ' ' || option[1] !=
		'-');
}

static bool is_any(const char *text, const char *const *of, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_option(text, of[i]))
			return true;
	return false;
}

static bool is_one_line(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Of a partition, an account or a time: a word that sbatch takes as it is. */
static enum hd_err check_word(const char *key, const char *text, struct hd_diag *diag)
{
	static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.,:@+-";

	return text[strspn(text, word)] ? hd_fail(diag, HD_E_INVAL,
		"launch.slurm.%s: \"%.60s\" has letters that Slurm's names have not", key, text) : HD_OK;
}

enum hd_err hd_slurm_check(const struct hd_launcher_settings *settings, struct hd_diag *diag)
{
	enum hd_err err = check_word("partition", settings->slurm.partition, diag);

	err = err ? err : check_word("account", settings->slurm.account, diag);
	err = err ? err : check_word("time", settings->slurm.time, diag);
	for (uint32_t i = 0; i < settings->slurm.nextra && !err; i++) {
		const char *text = settings->slurm.extra[i];
		if (text[0] != '-' || !text[1] || !is_one_line(text))
			err = hd_fail(diag, HD_E_INVAL,
				"launch.slurm.extra: \"%.60s\": write options of sbatch, as "
				"\"--gres=gpu:1\"", text);
		else if (is_any(text, own, sizeof own / sizeof *own))
			err = hd_fail(diag, HD_E_INVAL,
				"launch.slurm.extra: \"%.60s\" is heddle's own: --nodes N of run, "
				"launch.slurm.requeue "
				"and launch.slurm.signal say it", text);
	}
	return err;
}

static void option(struct hd_text *text, const char *name, const char *value)
{
	if (*value)
		hd_text_addf(text, "#SBATCH --%s=%s\n", name, value);
}

bool hd_slurm_takes_whole_nodes(const struct hd_launcher_settings *settings)
{
	for (uint32_t i = 0; i < settings->slurm.nextra; i++)
		if (is_any(settings->slurm.extra[i], sizes, sizeof sizes / sizeof *sizes))
			return false;
	return true;
}

/* In '#SBATCH' lines quotes are those of sbatch, which knows "...". */
static void log_option(struct hd_text *text, const char *dir)
{
	hd_text_add(text, "#SBATCH --output=\"");
	for (; *dir; dir++)               /* % begins a pattern there */
		hd_text_addf(text, "%s%c", *dir == '%' ? "%" : *dir == '"' || *dir == '\\' ? "\\" : "", *dir);
	hd_text_add(text, "/log/slurm-%A_%a.log\"\n");
}

/* The worker is the batch step itself: one signal reaches it, and at once (ADR 217). Those of several nodes
 * are tasks of srun, get each signal twice and know it (task_env.h); one that ends early ends no other. */
#define TASKS "srun --ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 --cpu-bind=none "
void hd_slurm_script(struct hd_text *text, const struct hd_launcher_spec *spec)
{
	const struct hd_launcher_settings *s = spec->settings;

	const uint32_t nodes = spec->nodes ? spec->nodes : 1;
	const bool whole = hd_slurm_takes_whole_nodes(s);

	hd_text_addf(text, "#!/bin/bash\n# %s of %s: heddle submits as many as it wants.\n"
		"#SBATCH --job-name=%s\n#SBATCH --nodes=%u\n#SBATCH --open-mode=append\n",
		nodes > 1 ? "Nodes" : "One node", spec->name, spec->mark, nodes);
	if (whole)
		hd_text_addf(text, "#SBATCH --ntasks=%u\n#SBATCH --exclusive\n", nodes);
	if (nodes > 1)
		hd_text_add(text, "#SBATCH --ntasks-per-node=1\n");
	hd_text_addf(text, "#SBATCH --comment=\"heddle: %s\"\n", spec->name);
	hd_text_addf(text, "#SBATCH --%s\n", s->slurm.requeue ? "requeue" : "no-requeue");
	option(text, "partition", s->slurm.partition);
	option(text, "account", s->slurm.account);
	option(text, "time", s->slurm.time);
	if (s->slurm.signal_s)
		hd_text_addf(text, "#SBATCH --signal=B:USR1@%u\n", s->slurm.signal_s);
	log_option(text, spec->dir);
	for (uint32_t i = 0; i < s->slurm.nextra; i++)
		hd_text_addf(text, "#SBATCH %s\n", s->slurm.extra[i]);
	hd_text_addf(text, "unset HEDDLE_TIED\nexec %s", nodes > 1 ? TASKS : "");
	hd_launcher_quote_all(text, spec->argv);
	hd_text_add(text, "\n");
}
