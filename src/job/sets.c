#include "job/sets.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/near.h"

static const char prefix[] = "HEDDLE_";
enum { HD_JOB_PREFIX = sizeof prefix - 1 };

enum hd_err hd_job_sets_init(struct hd_job_sets *sets, uint32_t more, struct hd_arena *arena,
	struct hd_diag *diag)
{
	*sets = (struct hd_job_sets){ .cap = HD_JOB_NKEYS + more, .arena = arena };
	sets->set = hd_arena_take(arena, sets->cap, sizeof *sets->set);
	return sets->set ? HD_OK : hd_fail(diag, HD_E_NOMEM, "no memory for the job file");
}

static void add(struct hd_job_sets *sets, const char *key, const char *text, enum hd_origin origin)
{
	assert(sets->n < sets->cap);
	sets->set[sets->n++] = (struct hd_job_set){ key, text, origin };
}

void hd_job_variable(enum hd_job_key key, char name[HD_JOB_VARIABLE])
{
	snprintf(name, HD_JOB_VARIABLE, "%s%s_%s", prefix, hd_job_keys[key].table, hd_job_keys[key].key);
	for (char *at = name; *at; at++)
		*at = *at == '.' ? '_' : (char)toupper((unsigned char)*at);
}

/* What `name` is set to; NULL: it is not, the normal case. */
static const char *value_of(char *const *environment, const char *name)
{
	size_t len = strlen(name);

	for (; *environment; environment++)
		if (!strncmp(*environment, name, len) && (*environment)[len] == '=')
			return *environment + len + 1;
	return NULL;
}

enum hd_err hd_job_sets_environment(struct hd_job_sets *sets, char *const *environment, struct hd_diag *diag)
{
	char name[HD_JOB_VARIABLE];

	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		hd_job_variable((enum hd_job_key)k, name);
		const char *value = value_of(environment, name);
		if (!value)
			continue;
		struct hd_text key;
		hd_text_init(&key, sets->arena);
		hd_text_addf(&key, "%s.%s", hd_job_keys[k].table, hd_job_keys[k].key);
		if (key.full)
			return hd_fail(diag, HD_E_NOMEM, "no memory for the job file");
		add(sets, key.at, value, HD_FROM_ENV);
	}
	return HD_OK;
}

enum hd_err hd_job_sets_word(struct hd_job_sets *sets, const char *word, struct hd_diag *diag)
{
	const char *eq = strchr(word, '=');

	if (!eq)
		return hd_fail(diag, HD_E_INVAL, "-s %s: write KEY=VALUE, as -s optim.lr=0.1", word);
	char *key = hd_arena_text(sets->arena, word, (size_t)(eq - word));
	if (!key)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the options");
	add(sets, key, eq + 1, HD_FROM_SET);
	return HD_OK;
}

void hd_job_sets_option(struct hd_job_sets *sets, const char *key, const char *value)
{
	add(sets, key, value, HD_FROM_OPTION);
}

static void warn_of(const char *word, struct hd_text *lines)
{
	char name[HD_JOB_VARIABLE], key[HD_JOB_VARIABLE], best[HD_JOB_VARIABLE] = "";
	bool of_a_table = false;

	snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
	struct hd_near near = hd_near_to(name);
	for (int k = 0; k < HD_JOB_NKEYS; k++) {
		size_t table = HD_JOB_PREFIX + strlen(hd_job_keys[k].table) + 1;
		hd_job_variable((enum hd_job_key)k, key);
		if (!strcmp(key, name))
			return;
		of_a_table |= !strncmp(key, name, table);
		near.best = NULL;
		hd_near_offer(&near, key);
		if (near.best)
			snprintf(best, sizeof best, "%s", key);
	}
	if (of_a_table)
		hd_text_addf(lines, "!! %s is no key of a job and changes nothing%s%s%s\n", name,
			*best ? "; did you mean " : "", best, *best ? "?" : "");
}

void hd_job_sets_warn(char *const *environment, struct hd_text *lines)
{
	for (; *environment; environment++)
		if (!strncmp(*environment, prefix, HD_JOB_PREFIX))
			warn_of(*environment, lines);
}
