#include "cmd/json_line.h"

#include "cmd/session.h"

static void print_json(struct hd_cmd *cmd, uint64_t step, const char *split, const struct hd_metrics *m)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);
	char hex[32];

	snprintf(hex, sizeof hex, "%a", hd_metrics_loss(m));
	hd_json_put_i64(w, "step", (int64_t)step);
	hd_json_put_text(w, "split", split);
	hd_json_put_i64(w, "rows", (int64_t)m->rows);
	hd_json_put_f64(w, "loss", hd_metrics_loss(m));
	if (hd_metrics_has_accuracy(m))
		hd_json_put_f64(w, "accuracy", hd_metrics_accuracy(m));
	if (m->has_hits)
		hd_json_put_f64(w, "perplexity", hd_metrics_perplexity(m));
	hd_rundir_measures(w, m);
	hd_json_put_text(w, "loss_hex", hex);
	hd_json_line_print(&line);
}

static enum hd_err verb_eval(struct hd_cmd *cmd)
{
	struct hd_session s;
	struct hd_metrics m;
	char text[HD_METRICS_LINE];
	enum hd_err err = hd_session_open(cmd, cmd->args.pos[0], &s);

	if (err)
		return err;
	const char *split = hd_session_split(cmd, &s);
	err = hd_run_eval(s.run, split, &m, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_JSON])
		print_json(cmd, s.ckpt.step, split, &m);
	else if (!err) {
		hd_metrics_line(&m, text);
		printf("step %llu  %s  %s\n", (unsigned long long)s.ckpt.step, split, text);
	}
	hd_session_close(&s);
	return err;
}

const struct hd_verb hd_verb_eval = {
	.name = "eval", .args = "RUN", .npos_min = 1, .npos_max = 1,
	.about = "loss and accuracy of a run's newest checkpoint on a split",
	.more =
		"RUN is a run directory or a checkpoint folder. The metric has the same bits on any "
		"number of devices.",
	.opts = HD_OPTS(HD_OPT_SPLIT, HD_OPT_BEST, HD_OPT_EMA, HD_OPT_DEVICES, HD_OPT_THREADS, HD_OPT_SET),
	.run = verb_eval, .test = "program_eval.sh",
};
