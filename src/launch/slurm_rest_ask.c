/* What is said to slurmrestd: a submission, an update. */
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"
#include "base/utf8.h"
#include "launch/slurm_rest.h"

typedef struct hd_json_writer writer;

static bool is_utf8(const char *text)
{
	for (size_t len = strlen(text), n; len; text += n, len -= n)
		if (!(n = hd_utf8_len(text, len)))
			return false;
	return true;
}

static void put_number(writer *w, const struct hd_slurm_version *version, const char *key, int64_t n)
{
	if (!version->wraps) {
		hd_json_put_i64(w, key, n);
		return;
	}
	hd_json_open_object(w, key);
	hd_json_put_bool(w, "set", true);
	hd_json_put_bool(w, "infinite", false);
	hd_json_put_i64(w, "number", n);
	hd_json_close(w);
}

static void put_word(writer *w, const struct hd_slurm_version *version, const char *key, const char *word,
	const char *listed)
{
	if (!version->wraps) {
		hd_json_put_text(w, key, word);
		return;
	}
	hd_json_open_array(w, key);
	hd_json_put_text(w, NULL, listed);
	hd_json_close(w);
}

static void put_named(writer *w, const char *key, const char *value)
{
	if (*value)
		hd_json_put_text(w, key, value);
}

/* ---- options of sbatch */

enum how { A_TEXT, A_COUNT, A_GRES };

/* Of launch.slurm.extra: what has a field that means the same. */
static const struct { const char *name, *letter, *field; enum how how; } options[] = {
	{ "--qos", "-q", "qos", A_TEXT },
	{ "--constraint", "-C", "constraints", A_TEXT },
	{ "--reservation", "", "reservation", A_TEXT },
	{ "--licenses", "-L", "licenses", A_TEXT },
	{ "--wckey", "", "wckey", A_TEXT },
	{ "--gres", "", "tres_per_node", A_GRES },
	{ "--cpus-per-task", "-c", "cpus_per_task", A_COUNT },
	{ "--ntasks", "-n", "tasks", A_COUNT },
	{ "--mincpus", "", "minimum_cpus_per_node", A_COUNT },
};

/* The option's value, behind '=' or blanks, or its letter; NULL: it is another option. */
static const char *value_of(const char *text, const char *name, const char *letter)
{
	size_t n = strlen(name);
	const bool is_letter = *letter && !strncmp(text, letter, 2);

	if (is_letter)
		return text + 2 + strspn(text + 2, " ");
	if (strncmp(text, name, n) != 0 || (text[n] != '=' && text[n] != ' '))
		return NULL;
	return text + n + 1 + strspn(text + n + 1, " ");
}

/* "gpu:v100:2,gpu:1" as "gres/gpu:v100:2,gres/gpu:1". */
static void put_gres(writer *w, const char *field, const char *value)
{
	char text[300];
	struct hd_text to;

	hd_text_fixed(&to, text, sizeof text);
	while (*value) {
		const size_t n = strcspn(value, ",");
		hd_text_addf(&to, "%sgres/%.*s", to.len ? "," : "", (int)n, value);
		value += n + (value[n] == ',');
	}
	hd_json_put_text(w, field, text);
}

/* false: there is no field for it. */
static bool put_option(writer *w, const struct hd_slurm_version *version, const char *text)
{
	for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
		const char *value = value_of(text, options[i].name, options[i].letter);
		uint64_t n = 0;
		if (!value || !*value)
			continue;
		if (options[i].how == A_TEXT) {
			hd_json_put_text(w, options[i].field, value);
		} else if (options[i].how == A_GRES) {
			if (!version->lists || strlen(value) > 200)
				return false;
			put_gres(w, options[i].field, value);
		} else {
			if (hd_num_u64(value, INT32_MAX, &n, NULL))
				return false;
			hd_json_put_i64(w, options[i].field, (int64_t)n);
		}
		return true;
	}
	return false;
}

static enum hd_err no_field(const struct hd_slurm_version *version, const char *what, struct hd_diag *diag)
{
	return hd_fail(diag, HD_E_NOTFOUND, "slurmrestd %s has no field for %s", version->name, what);
}

static enum hd_err put_options(writer *w, const struct hd_slurm_version *version,
	const struct hd_launcher_settings *s, struct hd_diag *diag)
{
	char what[120];

	for (uint32_t i = 0; i < s->slurm.nextra; i++)
		if (!put_option(w, version, s->slurm.extra[i])) {
			snprintf(what, sizeof what, "launch.slurm.extra: %.80s", s->slurm.extra[i]);
			return no_field(version, what, diag);
		}
	return HD_OK;
}

/* ---- a submission */

static void put_environment(writer *w, const struct hd_slurm_version *version, char *const *environment)
{
	char name[256];

	if (version->wraps)
		hd_json_open_array(w, "environment");
	else
		hd_json_open_object(w, "environment");
	for (size_t i = 0; environment[i]; i++) {
		const char *is = strchr(environment[i], '=');
		const size_t n = is ? (size_t)(is - environment[i]) : 0;
		if (!n || n >= sizeof name)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)n, environment[i]);
		if (!strcmp(name, "SLURM_JWT") || !is_utf8(environment[i]))
			continue;
		if (version->wraps)
			hd_json_put_text(w, NULL, environment[i]);
		else
			hd_json_put_text(w, name, is + 1);
	}
	hd_json_close(w);
}

/* % begins a pattern there */
static void put_log(writer *w, const char *dir)
{
	char path[2 * HD_PATH_CAP + 32];
	struct hd_text text;

	hd_text_fixed(&text, path, sizeof path);
	for (; *dir; dir++)
		hd_text_addf(&text, "%s%c", *dir == '%' ? "%" : "", *dir);
	hd_text_add(&text, "/log/slurm-%A_%a.log");
	hd_json_put_text(w, "standard_output", path);
}

static void put_size(writer *w, const struct hd_slurm_version *version, const struct hd_launcher_spec *spec)
{
	const uint32_t nodes = spec->nodes ? spec->nodes : 1;
	char count[12];

	snprintf(count, sizeof count, "%u", nodes);
	if (version->wraps)
		hd_json_put_text(w, "nodes", count);
	else
		hd_json_put_i64(w, "nodes", nodes);
	if (hd_slurm_takes_whole_nodes(spec->settings)) {
		hd_json_put_i64(w, "tasks", nodes);
		put_word(w, version, "exclusive", "exclusive", "true");
	}
	if (nodes > 1)
		hd_json_put_i64(w, "tasks_per_node", 1);
}

static enum hd_err put_time(writer *w, const struct hd_slurm_version *version,
	const struct hd_launcher_settings *s, struct hd_diag *diag)
{
	double seconds = 0;

	if (*s->slurm.time && !version->wraps)
		hd_json_put_text(w, "time_limit", s->slurm.time);
	else if (*s->slurm.time && !hd_slurm_time(s->slurm.time, &seconds))
		return no_field(version, "that launch.slurm.time", diag);
	else if (*s->slurm.time)
		put_number(w, version, "time_limit", (int64_t)((seconds + 59) / 60));
	if (!s->slurm.signal_s)
		return HD_OK;
	if (!version->wraps)              /* USR1@120 goes to steps alone, and B: is refused */
		return no_field(version, "launch.slurm.signal (`none` needs none)", diag);
	put_word(w, version, "kill_warning_flags", "", "BATCH_JOB");
	hd_json_put_text(w, "kill_warning_signal", "USR1");
	put_number(w, version, "kill_warning_delay", s->slurm.signal_s);
	return HD_OK;
}

enum hd_err hd_slurm_rest_submission(const struct hd_slurm_version *version,
	const struct hd_slurm_submission *what, struct hd_text *text, struct hd_diag *diag)
{
	const struct hd_launcher_spec *spec = what->spec;
	const struct hd_launcher_settings *s = spec->settings;
	char array[32], comment[120];
	writer w;

	if (!is_utf8(what->script) || !is_utf8(what->folder) || !is_utf8(spec->dir))
		return no_field(version, "a path that is no UTF-8", diag);
	snprintf(array, sizeof array, "0-%u", what->n - 1);
	snprintf(comment, sizeof comment, "heddle: %.100s", spec->name);
	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	if (!version->lists)
		hd_json_put_text(&w, "script", what->script);
	hd_json_open_object(&w, "job");
	if (version->lists)
		hd_json_put_text(&w, "script", what->script);
	hd_json_put_text(&w, "name", spec->mark);
	hd_json_put_text(&w, "array", array);
	put_size(&w, version, spec);
	hd_json_put_text(&w, "comment", comment);
	hd_json_put_bool(&w, "requeue", s->slurm.requeue);
	put_named(&w, "partition", s->slurm.partition);
	put_named(&w, "account", s->slurm.account);
	put_word(&w, version, "open_mode", "append", "APPEND");
	put_log(&w, spec->dir);
	hd_json_put_text(&w, "current_working_directory", what->folder);
	enum hd_err err = put_time(&w, version, s, diag);
	err = err ? err : put_options(&w, version, s, diag);
	put_environment(&w, version, what->environment);
	hd_json_close(&w);
	hd_json_close(&w);
	return err || !text->full ? err : hd_fail(diag, HD_E_NOMEM, "no memory for a submission");
}

/* A time far away: it can be set of a job that waits alone. */
void hd_slurm_rest_hold(const struct hd_slurm_version *version, struct hd_text *text)
{
	writer w;

	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	if (version->wraps)
		put_number(&w, version, "begin_time", INT64_C(4102444800));
	else
		hd_json_put_text(&w, "begin_time", "2100-01-01");
	hd_json_close(&w);
}
