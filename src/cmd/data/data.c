#include <string.h>

#include "base/json_writer.h"
#include "data/augment.h"
#include "data/blob.h"
#include "data/mix.h"
#include "run/samples.h"
#include "cmd/data/graph.h"
#include "cmd/data/stored.h"
#include "cmd/data/tokens.h"
#include "cmd/session.h"

/* The data as the job sees them: shapes come from its model, order from its seed. */
static enum hd_err open_task(struct hd_cmd *cmd, struct hd_task **task)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	enum hd_err err = job ? hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL) : hd_fail(&cmd->diag,
		HD_E_NOMEM, "no memory for a job");

	return err ? err : hd_task_create(task, job, &cmd->fs, &cmd->diag);
}

static enum hd_err find_split(struct hd_cmd *cmd, const struct hd_task *task, uint32_t *split)
{
	const char *name = hd_args_text(&cmd->args, HD_OPT_SPLIT, "train");
	uint32_t s = hd_dataset_split(task->data, name);

	if (s == HD_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL, "the data have no split \"%s\": %s", name,
			task->data->about);
	*split = s;
	return HD_OK;
}

/* Room for one sample: a buffer a field. */
static enum hd_err take_fields(struct hd_cmd *cmd, const struct hd_dataset *data, void *out[HD_MAX_FIELDS])
{
	for (uint32_t f = 0; f < data->nfields; f++) {
		out[f] = hd_arena_take(&cmd->arena, 1, data->field[f].sample_bytes);
		if (!out[f])
			return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for a sample");
	}
	return HD_OK;
}

/* ---- show */

static void put_field(struct hd_json_writer *w, const struct hd_field *f)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", f->name);
	hd_json_put_text(w, "dtype", hd_dtype_text((enum hd_dtype)f->dtype));
	hd_json_open_array(w, "shape");
	for (uint32_t d = 0; d < f->rank; d++)
		hd_json_put_i64(w, NULL, f->dim[d]);
	hd_json_close(w);
	hd_json_put_i64(w, "sample_bytes", (int64_t)f->sample_bytes);
	hd_json_close(w);
}

static void show_json(struct hd_cmd *cmd, const struct hd_task *task, const char *hex)
{
	const struct hd_dataset *data = task->data;
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "about", data->about);
	hd_json_put_i64(&w, "count", (int64_t)data->count);
	hd_json_put_text(&w, "hash", hex);
	hd_json_open_array(&w, "fields");
	for (uint32_t f = 0; f < data->nfields; f++)
		put_field(&w, &data->field[f]);
	hd_json_close(&w);
	hd_json_open_object(&w, "splits");
	for (uint32_t s = 0; s < data->nsplits; s++)
		hd_json_put_i64(&w, data->split[s].name, (int64_t)data->split[s].count);
	hd_json_close(&w);
	hd_json_put_i64(&w, "steps_per_epoch", (int64_t)hd_sampler_steps(&task->sampler));
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static void show_text(const struct hd_task *task, const char *hex)
{
	const struct hd_dataset *data = task->data;

	printf("%s\n%-8s %s\n", data->about, "hash", hex);
	for (uint32_t f = 0; f < data->nfields; f++) {
		printf("%-8s %-8s %s [", "field", data->field[f].name,
			hd_dtype_text((enum hd_dtype)data->field[f].dtype));
		for (uint32_t d = 0; d < data->field[f].rank; d++)
			printf("%s%lld", d ? "," : "", (long long)data->field[f].dim[d]);
		printf("]\n");
	}
	for (uint32_t s = 0; s < data->nsplits; s++)
		printf("%-8s %-8s %12llu samples\n", "split", data->split[s].name,
			(unsigned long long)data->split[s].count);
	printf("%-8s %llu steps of %llu samples\n", "epoch",
		(unsigned long long)hd_sampler_steps(&task->sampler), (unsigned long long)task->job->batch);
}

static enum hd_err verb_data_show(struct hd_cmd *cmd)
{
	char hex[HD_HASH_HEX];
	struct hd_task *task;

	if (hd_prepared_is(&cmd->fs, cmd->args.pos[0]))
		return hd_prepared_show(cmd, cmd->args.pos[0], false);
	enum hd_err err = open_task(cmd, &task);
	if (err)
		return err;
	hd_hash_hex(task->data->hash, hex);
	if (cmd->args.has[HD_OPT_JSON])
		show_json(cmd, task, hex);
	else
		show_text(task, hex);
	hd_task_destroy(task);
	return HD_OK;
}

const struct hd_verb hd_verb_data_show = {
	.name = "data show", .args = "JOB|GRAPH", .npos_min = 1, .npos_max = 1,
	.about = "fields, splits and content hash of a job's data; or what a prepared graph holds",
	.opts = HD_OPTS(HD_OPT_SET),
	.run = verb_data_show, .test = "program_data.sh",
};

/* ---- verify */

static enum hd_err read_all(struct hd_cmd *cmd, const struct hd_dataset *data, uint64_t *nread)
{
	void *out[HD_MAX_FIELDS];
	enum hd_err err = take_fields(cmd, data, out);

	*nread = 0;
	for (uint32_t s = 0; s < data->nsplits && !err; s++)
		for (uint64_t i = 0; i < data->split[s].count && !err; i++, (*nread)++)
			err = hd_dataset_read(data, s, i, HD_NO_EPOCH, out, &cmd->diag);
	return err;
}

/* How often each sample stands in the first data epoch: once, but for `drop`, which leaves the rest out.
 * `wrap` runs on into the next epoch in its last step; those rows are not counted here. */
static enum hd_err count_epoch(struct hd_cmd *cmd, const struct hd_sampler *sampler, uint64_t *nonce)
{
	uint8_t *hits = hd_arena_take(&cmd->arena, sampler->count, 1);
	uint64_t steps = hd_sampler_steps(sampler), position = 0;

	if (!hits)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to count %llu samples",
			(unsigned long long)sampler->count);
	for (uint64_t s = 0; s < steps; s++)
		for (uint64_t row = 0; row < hd_sampler_rows(sampler, s) && position < sampler->count; row++,
			position++) {
			uint64_t at = hd_sampler_at(sampler, s, row);
			if (at >= sampler->count || hits[at]++)
				return hd_fail(&cmd->diag, HD_E_INTEGRITY,
					"sample %llu stands twice in the first data epoch, the second time "
					"in step %llu",
					(unsigned long long)at, (unsigned long long)s);
		}
	uint64_t expected = sampler->last == HD_LAST_DROP ? steps * sampler->batch : sampler->count;
	if (position != expected)
		return hd_fail(&cmd->diag, HD_E_INTEGRITY, "the first data epoch has %llu samples of %llu",
			(unsigned long long)position,
			(unsigned long long)expected);
	*nonce = position;
	return HD_OK;
}

/* Of a run: what its virtual nodes took, as they wrote it down (run/samples.h). */
static enum hd_err verify_run(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	struct hd_samples_found found;
	struct hd_task *task = NULL;
	struct hd_ckpt_info info;
	char dir[HD_RUN_PATH];

	enum hd_err err = job ? hd_session_job_of(cmd, cmd->args.pos[0], job, dir) : hd_fail(&cmd->diag,
		HD_E_NOMEM, "no memory for a job");
	if (!err)
		err = hd_ckpt_find(&cmd->fs, dir, UINT64_MAX, &info, NULL, NULL, &cmd->diag);
	if (!err)
		err = hd_task_create(&task, job, &cmd->fs, &cmd->diag);
	if (!err)
		err = hd_samples_verify(task, &cmd->fs, dir, info.step, &found, &cmd->diag);
	if (!err && cmd->args.has[HD_OPT_JSON])
		printf("{\"ok\":true,\"steps\":%llu,\"epochs\":%llu,\"samples\":%llu,"
			"\"rest\":%llu,\"again\":%llu,\"torn\":%llu}\n",
			(unsigned long long)info.step, (unsigned long long)found.epochs,
			(unsigned long long)found.epoch, (unsigned long long)found.rest,
			(unsigned long long)found.again, (unsigned long long)found.torn);
	else if (!err)
		printf("ok: in %llu steps %llu data epochs took each of %llu samples once, and the next "
			"%llu of them; %llu virtual nodes were computed "
			"again, from the same samples; %llu lines were torn\n", (unsigned long long)info.step,
			(unsigned long long)found.epochs,
			(unsigned long long)found.epoch, (unsigned long long)found.rest,
			(unsigned long long)found.again, (unsigned long long)found.torn);
	hd_task_destroy(task);
	return err;
}

/* A job may have such a name, too; what a job's keys are set for is one. */
static bool is_job(struct hd_cmd *cmd)
{
	struct hd_job *job = hd_arena_take(&cmd->arena, 1, sizeof *job);
	const struct hd_diag before = cmd->diag;
	const bool reads = cmd->args.nsets || (job &&
		!hd_session_job(cmd, cmd->args.pos[0], job, NULL, NULL));

	cmd->diag = before;
	return reads;
}

/* By its name. */
static bool is_text(const char *path)
{
	static const char *const ends[] = { ".txt", ".txt.gz" };
	const size_t len = strlen(path);

	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (len > strlen(ends[i]) && !strcmp(path + len - strlen(ends[i]), ends[i]))
			return true;
	return false;
}

/* A corpus by itself, without the model that says how long its samples are: byte by byte. */
static enum hd_err verify_text(struct hd_cmd *cmd, const char *path)
{
	const struct hd_data_spec spec = { .kind = "text", .path = path, .context = 1, .train = 1,
		.pad = -1 };
	struct hd_dataset *data = NULL;
	char hex[HD_HASH_HEX];
	uint64_t nread;
	enum hd_err err = hd_dataset_open(&data, &spec, &cmd->fs, &cmd->diag);

	if (err)
		return err;
	err = read_all(cmd, data, &nread);
	hd_hash_hex(data->hash, hex);
	if (!err)
		printf(cmd->args.has[HD_OPT_JSON] ? "{\"ok\":true,\"bytes\":%llu,\"hash\":\"%s\"}\n" :
			"ok: %llu bytes of text read, hash %s\n", (unsigned long long)nread + 1, hex);
	hd_dataset_destroy(data);
	return err;
}

static enum hd_err verb_data_verify(struct hd_cmd *cmd)
{
	uint64_t nread, nonce = 0;
	struct hd_task *task;
	struct hd_stat stat;

	if (!hd_fs_stat(&cmd->fs, cmd->args.pos[0], &stat, NULL) && stat.kind == HD_FILE_FOLDER)
		return verify_run(cmd);
	if (hd_prepared_is(&cmd->fs, cmd->args.pos[0]))
		return hd_prepared_show(cmd, cmd->args.pos[0], true);
	if (is_text(cmd->args.pos[0]) && !is_job(cmd))
		return verify_text(cmd, cmd->args.pos[0]);
	enum hd_err err = open_task(cmd, &task);
	if (err)
		return err;
	err = read_all(cmd, task->data, &nread);
	if (!err)
		err = count_epoch(cmd, &task->sampler, &nonce);
	if (!err)
		printf(cmd->args.has[HD_OPT_JSON] ?
			"{\"ok\":true,\"read\":%llu,\"once_per_epoch\":%llu,\"steps_per_epoch\":%llu}\n"
				: "ok: %llu samples read; in a data epoch %llu samples stand once each, in "
				"%llu steps\n",
			(unsigned long long)nread, (unsigned long long)nonce,
			(unsigned long long)hd_sampler_steps(&task->sampler));
	hd_task_destroy(task);
	return err;
}

const struct hd_verb hd_verb_data_verify = {
	.name = "data verify", .args = "JOB|RUN|GRAPH|TEXT", .npos_min = 1, .npos_max = 1,
	.about = "read every sample once; or prove that each data epoch of a run took each sample once; or "
		"check all of a prepared graph, or of a text",
	.more =
		"Of a run with trace.samples: from what its virtual nodes took, as the worker that "
		"computed them recorded it in RUN/samples/WORKER.ndjson: a line "
		"{\"step\":12,\"vn\":3,\"took\":[[0,[17,4,5]]]} has the samples of each data epoch in "
		"the order of the rows. What was computed twice must have taken the same, and counts "
		"once. Steps up to the newest checkpoint count. Exit 5: a sample is missing, or was "
		"taken twice.\n"
		"Workers of other machines keep no record.\n"
		"Of a prepared graph: each section against its digest, then against the rules of the "
		"format: exit 5 "
		"where it was damaged, 3 where another program made it.\n"
		"Of a text, FILE.txt or FILE.txt.gz: that all of it can be read, and its content hash. What "
		"samples a model makes of it says the job that reads it.",
	.opts = HD_OPTS(HD_OPT_SET),
	.run = verb_data_verify, .test = "program_data.sh",
};

/* ---- order */

static void order_json(struct hd_cmd *cmd, const struct hd_task *task, uint64_t step)
{
	uint64_t n = hd_sampler_rows(&task->sampler, step), first, end;
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "step", (int64_t)step);
	hd_json_put_i64(&w, "epoch", (int64_t)hd_sampler_epoch(&task->sampler, step));
	hd_json_put_i64(&w, "rows", (int64_t)n);
	hd_json_open_array(&w, "virtual_nodes");
	for (uint32_t v = 0; v < task->job->nvns; v++) {
		hd_vn_rows(task->job->per_vn, n, v, &first, &end);
		hd_json_open_array(&w, NULL);
		for (uint64_t row = first; row < end; row++)
			hd_json_put_i64(&w, NULL, (int64_t)hd_sampler_at(&task->sampler, step, row));
		hd_json_close(&w);
	}
	hd_json_close(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static void order_text(const struct hd_task *task, uint64_t step)
{
	uint64_t n = hd_sampler_rows(&task->sampler, step), first, end;

	printf("step %llu  epoch %llu  %llu samples\n", (unsigned long long)step,
		(unsigned long long)hd_sampler_epoch(&task->sampler, step),
		(unsigned long long)n);
	for (uint32_t v = 0; v < task->job->nvns; v++) {
		hd_vn_rows(task->job->per_vn, n, v, &first, &end);
		printf("vn %-5u", v);
		for (uint64_t row = first; row < end; row++)
			printf(" %llu", (unsigned long long)hd_sampler_at(&task->sampler, step, row));
		printf("\n");
	}
}

enum { HD_STEP_BITS = 44 };               /* of a step number, everywhere (base/philox.h) */

static enum hd_err verb_data_order(struct hd_cmd *cmd)
{
	struct hd_task *task;
	enum hd_err err = open_task(cmd, &task);

	if (err)
		return err;
	uint64_t steps = hd_sampler_steps(&task->sampler), step = cmd->args.count[HD_OPT_STEP],
		epoch = cmd->args.count[HD_OPT_EPOCH];
	const uint64_t limit = UINT64_C(1) << HD_STEP_BITS;
	if (cmd->args.has[HD_OPT_EPOCH] && step >= steps)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"--step %llu: a data epoch has %llu steps, counted from 0", (unsigned long long)step,
			(unsigned long long)steps);
	else if (step >= limit || epoch >= limit / steps)
		err = hd_fail(&cmd->diag, HD_E_INVAL, "--step, --epoch: steps are numbered below 2^%d",
			HD_STEP_BITS);
	else if (cmd->args.has[HD_OPT_JSON])
		order_json(cmd, task, epoch * steps + step);
	else
		order_text(task, epoch * steps + step);
	hd_task_destroy(task);
	return err;
}

const struct hd_verb hd_verb_data_order = {
	.name = "data order", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "sample ids of a step, or of a step of a data epoch",
	.opts = HD_OPTS(HD_OPT_STEP, HD_OPT_EPOCH, HD_OPT_SET),
	.run = verb_data_order, .test = "program_data.sh",
};

/* ---- cat */

static void put_element(struct hd_json_writer *w, const char *key, const struct hd_field *f,
	const uint8_t *at)
{
	float real;
	int32_t whole;

	if (f->dtype == HD_F32) {
		memcpy(&real, at, sizeof real);
		hd_json_put_f32(w, key, real);
		return;
	}
	memcpy(&whole, at, sizeof whole);
	hd_json_put_i64(w, key, whole);
}

/* Elements in row-major order; `data show` has the extents. */
static void put_values(struct hd_json_writer *w, const struct hd_field *f, const uint8_t *at)
{
	size_t size = hd_dtype_bytes((enum hd_dtype)f->dtype);

	if (f->rank == 0) {
		put_element(w, f->name, f, at);
		return;
	}
	hd_json_open_array(w, f->name);
	for (uint64_t i = 0; i < f->sample_bytes / size; i++)
		put_element(w, NULL, f, at + i * size);
	hd_json_close(w);
}

static enum hd_err print_sample(struct hd_cmd *cmd, const struct hd_dataset *data, uint32_t split,
	uint64_t index, uint64_t epoch, void *const *out, struct hd_token_work *work)
{
	struct hd_json_writer w;
	struct hd_arena arena;
	struct hd_text text;
	enum hd_err err = hd_dataset_read(data, split, index, epoch, out, &cmd->diag);

	if (err)
		return err;
	hd_arena_init(&arena, 0);
	hd_text_init(&text, &arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_i64(&w, "index", (int64_t)index);
	for (uint32_t f = 0; f < data->nfields; f++)
		put_values(&w, &data->field[f], out[f]);
	if (work && data->field[0].dtype == HD_I32)
		err = hd_tokens_put(cmd, work, &w, "text", out[0], (uint32_t)(data->field[0].sample_bytes /
			sizeof(int32_t)));
	hd_json_close(&w);
	if (!err)
		printf("%s\n", text.at);
	hd_arena_finish(&arena);
	return err;
}

enum { HD_CAT_COUNT = 5 };

/* By what it is: a URL, or a file that is no job. */
static bool is_stored(struct hd_cmd *cmd, const char *path)
{
	struct hd_stat stat;

	return hd_blob_is_url(path) || (!hd_fs_stat(&cmd->fs, path, &stat, NULL) &&
		stat.kind == HD_FILE_REGULAR && !is_job(cmd));
}

static enum hd_err verb_data_cat(struct hd_cmd *cmd)
{
	uint64_t count = hd_args_count(&cmd->args, HD_OPT_COUNT_, HD_CAT_COUNT);
	void *out[HD_MAX_FIELDS];
	struct hd_tokenizer *tokenizer = NULL;
	struct hd_token_work *work = NULL;
	struct hd_task *task;
	uint32_t split = 0;

	if (is_stored(cmd, cmd->args.pos[0]))
		return cmd->args.has[HD_OPT_TOKENIZER] ? hd_tokens_cat(cmd, cmd->args.pos[0]) :
			hd_stored_cat(cmd, cmd->args.pos[0]);
	enum hd_err err = open_task(cmd, &task);
	if (err)
		return err;
	err = find_split(cmd, task, &split);
	if (!err && cmd->args.has[HD_OPT_TOKENIZER] && !(err = hd_cmd_tokenizer(cmd, &tokenizer)))
		err = hd_token_work_create(&work, tokenizer, &cmd->diag);
	if (!err)
		err = take_fields(cmd, task->data, out);
	if (!err && split == 0 && hd_mix_any(task->data) && !cmd->args.has[HD_OPT_QUIET])
		fputs("samples as they are before mixup and cutmix, which mix those of a step in training\n",
			stderr);
	for (uint64_t i = 0; !err && i < count && i < task->data->split[split].count; i++)
		err = print_sample(cmd, task->data, split, i,
			split == 0 ? cmd->args.count[HD_OPT_EPOCH] : HD_NO_EPOCH, out, work);
	hd_token_work_destroy(work);
	hd_tokenizer_destroy(tokenizer);
	hd_task_destroy(task);
	return err;
}

const struct hd_verb hd_verb_data_cat = {
	.name = "data cat", .args = "JOB|FILE|URL", .npos_min = 1, .npos_max = 1,
	.about = "print samples of a split as JSON lines, as the model sees them; or what a file or an "
		"object is",
	.more =
		"Samples of the split train are transformed as in data epoch --epoch, but not mixed: mixup "
		"and cutmix (data.augment) make one of two of a step.\n"
		"Of a file, or of http://..., https://..., s3://BUCKET/KEY: its length, version and content "
		"hash. Of a tar shard and a record file before that a line for each member or record, "
		"--count of them (1000): its key, place and length, and whether its check fits; exit 3 "
		"where it is damaged. All of it is read, by ranges, as training does. Keys of S3 are AWS's "
		"variables, or a file of mode 0600.\n"
		"With --tokenizer: of a token file how many tokens it has, and the text of its first "
			"--count (1000); "
		"of a JOB the text of each sample beside its numbers.",
	.opts = HD_OPTS(HD_OPT_SPLIT, HD_OPT_COUNT_, HD_OPT_EPOCH, HD_OPT_SET, HD_OPT_TOKENIZER),
	.run = verb_data_cat, .test = "program_data.sh",
};
