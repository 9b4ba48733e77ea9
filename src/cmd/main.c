#include <stdlib.h>
#include <string.h>

#include "sys/failpoint.h"
#include "sys/thread.h"
#include "sys/tie.h"
#include "sys/tty.h"
#include "cmd/verbs.h"

static int fail(const struct hd_diag *diag, enum hd_err err)
{
	fprintf(stderr, "heddle: %s\n", diag->text[0] ? diag->text : hd_err_text(err));
	if (err == HD_E_BUG)
		fprintf(stderr, "heddle: please report this with the command and `heddle version`\n");
	return hd_err_exit(err);
}

static bool wants_help(int argc, char **argv)
{
	return argc < 2 || !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
}

/* `heddle help`, or of one verb: `heddle help run`, `heddle help ckpt ls`; its manual page:
 * `heddle help --man ckpt ls`; `heddle help --man` names the verbs that have one, one a line. */
static int help(int argc, char **argv)
{
	const struct hd_verb *verb;
	struct hd_diag diag = { "" };
	int used;
	bool manual = argc > 2 && !strcmp(argv[2], "--man");

	if (manual)
		argc--, argv++;
	if (manual && argc < 3) {
		for (const struct hd_verb *const *v = hd_verbs; *v; v++)
			puts((*v)->name);
		return 0;
	}
	if (argc < 3) {
		hd_help_all(argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	enum hd_err err = hd_verb_find(argc - 2, argv + 2, &verb, &used, &diag);
	if (err)
		return fail(&diag, err);
	(manual ? hd_help_manual : hd_help_verb)(verb, stdout);
	return 0;
}

static void look_at_terminal(struct hd_cmd *cmd)
{
	static const char *const words[] = { "auto", "always", "never" };
	const char *color = cmd->args.text[HD_OPT_COLOR];
	enum hd_tty_color colored = HD_COLOR_AUTO;

	for (int i = 0; color && i < 3; i++)
		if (!strcmp(color, words[i]))
			colored = (enum hd_tty_color)i;
	cmd->colour = hd_tty_colored(2, colored);
	cmd->rewrite = hd_tty_is(2) && cmd->colour && !cmd->args.has[HD_OPT_VERBOSE] &&
		!cmd->args.has[HD_OPT_QUIET];
}

int main(int argc, char **argv)
{
	static struct hd_cmd cmd;         /* large: not on the stack */
	const struct hd_verb *verb;
	int used;

	if (wants_help(argc, argv))
		return help(argc, argv);
	if (!strcmp(argv[1], "--version"))
		argv[1] = (char *)"version";
	hd_arena_init(&cmd.arena, 0);
	hd_fs_real(&cmd.fs);
	hd_clock_real(&cmd.clock);
	hd_thread_arith_set();
	enum hd_err err = hd_tie_follow(&cmd.diag);
	err = err ? err : hd_failpoint_arm(getenv("HD_FAIL"), 0, &cmd.diag);
	if (!err)
		err = hd_verb_find(argc - 1, argv + 1, &verb, &used, &cmd.diag);
	if (!err)
		err = hd_args_parse(&cmd.args, verb, argc - 1 - used, argv + 1 + used, &cmd.diag);
	if (!err && cmd.args.has[HD_OPT_HELP]) {
		hd_help_verb(verb, stdout);
	} else if (!err) {
		look_at_terminal(&cmd);
		err = verb->run(&cmd);
	}
	int code = err ? fail(&cmd.diag, err) : 0;
	if (fflush(stdout) && !code) {
		fprintf(stderr, "heddle: standard output could not be written\n");
		code = hd_err_exit(HD_E_IO);
	}
	if (cmd.leave_at_once) {
		(void)fflush(stderr);
		_Exit(code);
	}
	hd_arena_finish(&cmd.arena);
	return code;
}
