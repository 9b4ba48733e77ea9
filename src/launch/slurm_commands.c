/* Slurm by its commands. One runs beside the caller, its output in a file of the run's folder; when it has
 * ended the file is read. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "launch/slurm_way.h"

enum { OUTPUT_MOST = 1 << 20 };
#define OUTPUT "log/slurm.out"

struct slurm_commands {
	struct hd_slurm_way head;
	const struct hd_launcher_spec *spec;
	const char *script;
	struct hd_slurm_question asked;
	struct hd_proc proc;              /* host NULL: none runs */
	int64_t began_ns;
	char output[HD_PATH_CAP], name[128];
	struct hd_arena arena;            /* of an output */
};

static struct slurm_commands *of(struct hd_slurm_way *way) { return (struct slurm_commands *)way; }
static int64_t now(const struct slurm_commands *c) { return hd_clock_now_ns(c->spec->clock); }

static enum hd_err commands_open(const struct hd_launcher_spec *spec, const char *script,
	struct hd_slurm_way **way, struct hd_diag *diag)
{
	struct slurm_commands *c = hd_alloc(sizeof *c);

	if (!c)
		return hd_fail(diag, HD_E_NOMEM, "no memory for a launcher");
	*c = (struct slurm_commands){ .head = { .ops = &hd_slurm_by_commands }, .spec = spec,
		.script = script };
	hd_arena_init(&c->arena, 0);
	snprintf(c->output, sizeof c->output, "%s/" OUTPUT, spec->dir);
	snprintf(c->name, sizeof c->name, "--name=%s", spec->mark);
	*way = &c->head;
	return HD_OK;
}

static const char *commands_word(const struct hd_slurm_way *way, enum hd_slurm_ask ask)
{
	static const char *const words[] = { [HD_SLURM_NOTHING] = "", [HD_SLURM_SUBMIT] = "sbatch",
		[HD_SLURM_LOOK] = "squeue", [HD_SLURM_TAKE_BACK] = "scancel", [HD_SLURM_CANCEL] = "scancel",
		[HD_SLURM_NODES] = "sinfo" };

	(void)way;
	return words[ask];
}

static enum hd_err run(struct slurm_commands *c, const char *const *argv, struct hd_diag *diag)
{
	struct hd_file out = { 0 };
	enum hd_err err = hd_file_open(c->spec->fs, c->output, HD_OPEN_WRITE | HD_OPEN_CREATE |
		HD_OPEN_TRUNCATE, &out, diag);

	if (err)
		return err;
	struct hd_spawn how = { .argv = argv, .in = -1, .out = out.id, .err = out.id };
	err = hd_proc_spawn(c->spec->host, &how, &c->proc, diag);
	if (err)
		c->proc = (struct hd_proc){ 0 };
	c->began_ns = now(c);
	return hd_file_close(&out, err ? NULL : diag) && !err ? HD_E_IO : err;
}

static enum hd_err commands_begin(struct hd_slurm_way *way, const struct hd_slurm_question *question,
	struct hd_diag *diag)
{
	struct slurm_commands *c = of(way);
	const char *partition = c->spec->settings->slurm.partition;
	char array[32];
	const char *submit[] = { "sbatch", "--parsable", array, c->script, NULL };
	const char *look[] = { "squeue", "-h", "-r", "-t", "all", c->name, "-O", HD_SLURM_FIELDS, NULL };
	const char *back[HD_SLURM_IDS + 3] = { "scancel", question->running ? "-Q" : "--state=PENDING" };
	const char *cancel[] = { "scancel", c->name, question->running ? NULL : "--state=PENDING", NULL };
	const char *nodes[] = { "sinfo", "-h", "-N", "-o", HD_SLURM_NODE_FIELDS, *partition ? "-p" : NULL,
		partition, NULL };
	const char *const *const argv[] = { [HD_SLURM_SUBMIT] = submit, [HD_SLURM_LOOK] = look,
		[HD_SLURM_TAKE_BACK] = back, [HD_SLURM_CANCEL] = cancel, [HD_SLURM_NODES] = nodes };

	c->asked = *question;
	snprintf(array, sizeof array, "--array=0-%u", question->n - 1);
	for (uint32_t i = 0; i < question->n && question->ask == HD_SLURM_TAKE_BACK; i++)
		back[2 + i] = c->asked.id[i];
	return run(c, argv[question->ask], diag);
}

static void take_output(struct slurm_commands *c, int code, const char *text, size_t len,
	struct hd_slurm_answer *answer)
{
	const char *word = commands_word(&c->head, c->asked.ask);
	enum hd_err err = HD_OK;

	if (code) {
		answer->outcome = HD_SLURM_REFUSED;
		answer->err = hd_slurm_refusal(word, text, len, &answer->why);
		return;
	}
	answer->whole = true;
	if (c->asked.ask == HD_SLURM_SUBMIT)
		err = hd_slurm_id_parse(text, len, answer->id, &answer->why);
	else if (c->asked.ask == HD_SLURM_NODES)
		err = hd_slurm_nodes_parse(text, len, &c->arena, &answer->nodes, &answer->why);
	else if (c->asked.ask == HD_SLURM_LOOK) {
		err = hd_slurm_lines_parse(text, len, &c->arena, &answer->lines, &answer->why);
		answer->whole = !err;
		err = err == HD_E_INPUT ? HD_OK : err;
	}
	if (err)
		*answer = (struct hd_slurm_answer){ .outcome = HD_SLURM_LOST, .err = err, .why = answer->why,
			.sent = true };
}

static bool commands_go_on(struct hd_slurm_way *way, int64_t wait_ns, struct hd_slurm_answer *answer)
{
	struct slurm_commands *c = of(way);
	const int64_t left_ns = c->began_ns + HD_LAUNCHER_PATIENCE_NS - now(c);
	const char *word = commands_word(way, c->asked.ask);
	struct hd_diag why = { "" };
	uint8_t *bytes = NULL;
	size_t len = 0;
	int code = 0;
	enum hd_err err = hd_proc_wait(&c->proc, wait_ns < left_ns ? wait_ns : left_ns > 0 ? left_ns : 0,
		&code, &why);

	if (err == HD_E_AGAIN && left_ns > wait_ns)
		return false;
	if (err)
		hd_proc_finish(&c->proc);
	c->proc = (struct hd_proc){ 0 };
	*answer = (struct hd_slurm_answer){ .sent = true };
	hd_arena_reset(&c->arena);
	if (err == HD_E_AGAIN)
		err = hd_fail(&why, HD_E_PEERLOST, "it has not answered for %d s",
			(int)(HD_LAUNCHER_PATIENCE_NS / 1000000000));
	err = err ? err : hd_file_read_all(c->spec->fs, c->output, &c->arena, OUTPUT_MOST, &bytes, &len,
		&why);
	if (err) {
		answer->outcome = HD_SLURM_LOST;
		answer->err = hd_fail(&answer->why, err, "%s: %s", word, why.text);
	} else {
		take_output(c, code, (const char *)bytes, len, answer);
	}
	return true;
}

static void commands_give_up(struct hd_slurm_way *way)
{
	if (of(way)->proc.host)
		hd_proc_finish(&of(way)->proc);
	of(way)->proc = (struct hd_proc){ 0 };
}

static void commands_close(struct hd_slurm_way *way)
{
	if (!way)
		return;
	commands_give_up(way);
	hd_arena_finish(&of(way)->arena);
	hd_free(way);
}

const struct hd_slurm_way_ops hd_slurm_by_commands = {
	.name = "commands", .open = commands_open, .word = commands_word, .begin = commands_begin,
	.go_on = commands_go_on, .give_up = commands_give_up, .close = commands_close,
};
