#include <stdlib.h>
#include <string.h>

#include "sys/signal.h"
#include "sys/thread.h"
#include "cmd/json_line.h"
#include "cmd/session.h"
#include "cmd/demo/elastic.h"
#include "cmd/demo/graph.h"
#include "cmd/demo/one_run.h"
#include "cmd/demo/pipeline.h"
#include "cmd/demo/spot.h"

/* A demonstration is a job file with a claim. It runs the same job twice, on one
 * device and on all of them, and believes only what it has compared: the states,
 * bit for bit, and the accuracy. */

struct demo {
	const char *name, *about;
	const char *data;                 /* the lines of the data set that is installed ... */
	const char *generated;            /* ... and of the one that is made when it is not */
	const char *job;
	double accuracy, accuracy_generated;      /* the band that must be reached */
};

static const char lenet_job[] =
	"model: {use: builtin:lenet, loss: cross-entropy}\n"
	"batch: {global: 256, virtual_nodes: 16}\n"
	"optim: {kind: adamw, lr: 4e-3, schedule: {kind: cosine, warmup: 20, floor: 0.05}, clip: 1.0}\n"
	"eval: {every: 0, metric: accuracy}\n"
	"checkpoint: {every: 10 min}\n";

static const struct demo demos[] = {
	{ "train", "lenet learns Fashion-MNIST on one device, then on all; the states must be equal bit for bit",
	  "job: {name: demo-train, seed: 17, steps: 600}\ndata: {kind: idx}\n",
	  "job: {name: demo-train, seed: 17, steps: 150}\ndata: {kind: synthetic, count: 20000}\n",
	  lenet_job, 0.84, 0.84 },
};
/* Demos over several processes have scripts of their own. */
static const struct { const char *name; enum hd_err (*run)(struct hd_cmd *cmd); } stories[] = {
	{ "elastic", hd_demo_elastic },
	{ "pipeline", hd_demo_pipeline },
	{ "spot", hd_demo_spot },
	{ "graph", hd_demo_graph },
};
static const char *const fashion = "/usr/share/datasets/fashion-mnist";

static enum hd_err find_demo(struct hd_cmd *cmd, const struct demo **demo)
{
	const char *name = cmd->args.npos ? cmd->args.pos[0] : "train";

	for (size_t i = 0; i < sizeof demos / sizeof *demos; i++)
		if (!strcmp(demos[i].name, name)) {
			*demo = &demos[i];
			return HD_OK;
		}
	return hd_fail(&cmd->diag, HD_E_INVAL, "there is no demo \"%s\"; there are: train, elastic, "
		"pipeline, spot, graph", name);
}

static bool installed(struct hd_cmd *cmd)
{
	struct hd_stat stat;
	return !hd_fs_stat(&cmd->fs, fashion, &stat, NULL);
}

static enum hd_err train_once(struct hd_cmd *cmd, const char *yaml, uint32_t ndevices, struct demo_end *end)
{
	return demo_run(cmd, yaml, NULL, 0, &(struct hd_run_options){ .worker = { .kind = "cpu",
		.ndevices = ndevices, .nthreads = 1, .spin = true } }, end);
}

static void put_pair(struct hd_json_writer *w, const char *key, const char *one, const char *all)
{
	hd_json_open_array(w, key);
	hd_json_put_text(w, NULL, one);
	hd_json_put_text(w, NULL, all);
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct demo *demo, const struct demo_end *one,
	const struct demo_end *all, uint32_t ndevices,
	bool same, double needed)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "demo", demo->name);
	hd_json_open_array(w, "devices");
	hd_json_put_i64(w, NULL, 1);
	hd_json_put_i64(w, NULL, ndevices);
	hd_json_close(w);
	put_pair(w, "digests", one->hex, all->hex);
	hd_json_put_bool(w, "identical", same);
	hd_json_put_f32(w, "accuracy", (float)all->accuracy);
	hd_json_put_f64(w, "accuracy_needed", needed);
	hd_json_put_bool(w, "learnt", all->has_accuracy && all->accuracy >= needed);
	hd_json_put_f32(w, "loss_first", (float)all->loss_first);
	hd_json_put_f32(w, "loss_last", (float)all->loss_last);
	hd_json_put_i64(w, "steps", (int64_t)all->steps);
	hd_json_open_array(w, "seconds");
	hd_json_put_f32(w, NULL, (float)one->seconds);
	hd_json_put_f32(w, NULL, (float)all->seconds);
	hd_json_close(w);
	put_pair(w, "runs", one->dir, all->dir);
	hd_json_line_print(&line);
}

static void print_text(const struct demo_end *one, const struct demo_end *all, uint32_t ndevices, bool same)
{
	printf("  accuracy %.2f %% on held-out images after %llu steps (loss %.3f -> %.3f)\n",
		all->accuracy * 100, (unsigned long long)all->steps,
		all->loss_first, all->loss_last);
	printf("  time     %.1f s on 1 device, %.1f s on %u\n", one->seconds, all->seconds, ndevices);
	printf("  state    %s   (1 device)\n", one->hex);
	printf("  state    %s   (%u devices)%s\n", all->hex, ndevices,
		same ? "   IDENTICAL" : "   DIFFERENT");
	printf("  report   %s/report.html\n", all->dir);
}

static enum hd_err verb_demo(struct hd_cmd *cmd)
{
	struct hd_worker_spec most = { 0 };
	struct demo_end one = { 0 }, all = { 0 };
	const struct demo *demo;
	struct hd_cores cores;
	char yaml[2048];

	for (size_t i = 0; i < sizeof stories / sizeof *stories && cmd->args.npos; i++)
		if (!strcmp(cmd->args.pos[0], stories[i].name))
			return !cmd->args.has[HD_OPT_DEVICES] ? stories[i].run(cmd) :
				hd_fail(&cmd->diag, HD_E_INVAL, "--devices is for the demo train: "
				"what \"%s\" runs on is part of its story", stories[i].name);
	enum hd_err err = find_demo(cmd, &demo);
	if (err)
		return err;
	bool real = installed(cmd);
	snprintf(yaml, sizeof yaml, "%s%s", real ? demo->data : demo->generated, demo->job);
	if (cmd->args.has[HD_OPT_SHOW]) {
		fputs(yaml, stdout);
		return HD_OK;
	}
	hd_cores_usable(&cores);
	most.ndevices = cores.n > 1 ? cores.n < 16 ? cores.n : 16 : 2;
	if (cmd->args.has[HD_OPT_DEVICES])
		most.ndevices = (uint32_t)strtoul(cmd->args.text[HD_OPT_DEVICES], NULL, 10);
	if (most.ndevices < 1 || most.ndevices > HD_MAX_DEVICES)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--devices of a demo is a number from 1 to %d",
			HD_MAX_DEVICES);
	err = hd_signal_install(&cmd->diag);
	if (!cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "  %s\n  data     %s\n", demo->about,
			real ? "Fashion-MNIST, installed" :
			"generated images: install dataset-fashion-mnist for real ones");
	if (!err)
		err = train_once(cmd, yaml, 1, &one);
	if (!err)
		err = train_once(cmd, yaml, most.ndevices, &all);
	if (err)
		return err;
	double needed = real ? demo->accuracy : demo->accuracy_generated;
	bool same = !strcmp(one.hex, all.hex), learnt = all.has_accuracy && all.accuracy >= needed;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, demo, &one, &all, most.ndevices, same, needed);
	else
		print_text(&one, &all, most.ndevices, same);
	if (!same)
		return hd_fail(&cmd->diag, HD_E_INTEGRITY,
			"the two states differ: `heddle ckpt diff %s %s` says where", one.dir, all.dir);
	if (!learnt)
		return hd_fail(&cmd->diag, HD_E_INTEGRITY,
			"the states are equal, but the accuracy %.2f %% is below the %.0f %% this demo "
			"claims",
			all.accuracy * 100, needed * 100);
	return HD_OK;
}

const struct hd_verb hd_verb_demo = {
	.name = "demo", .args = "[NAME]", .npos_min = 0, .npos_max = 1,
	.about = "a scripted story that checks its own claim; without a name: train",
	.more =
		"train: a network learns from real images on one device, then on all; the two states "
		"must be equal bit for bit.\n"
		"elastic: worker processes join, differ in speed, are killed, the coordinator too; the "
		"state must be that of one worker.\n"
		"pipeline: a model that the memory limit of one worker refuses trains in stages over three, "
		"loses one, grows to four; predicted and measured time of a step; the state must be that of "
		"one device.\n"
		"spot: machines of a market come and vanish, some with notice, an hour in half a minute; "
		"what a "
		"dollar bought beside checkpoint-and-restart; the state must be that of one device.\n"
		"graph: a graph network (Cora, or a generated graph) whose dense work goes to functions that "
		"are killed, straggle, lose answers and give some twice; what they cost; the state must be "
		"that of a run without functions.\n"
		"Exit 0 only if the claim at the end was verified.",
	.opts = HD_OPTS(HD_OPT_SHOW, HD_OPT_DEVICES),
	.run = verb_demo, .test = "program_demo.sh",
};
