#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "token/tokenizer.h"
#include "sys/signal.h"
#include "sys/thread.h"
#include "sys/tty.h"
#include "data/tokenize.h"
#include "cmd/data/tokens.h"
#include "cmd/verbs.h"

/* ---- the tokenizer ---- */

enum hd_err hd_cmd_tokenizer(struct hd_cmd *cmd, struct hd_tokenizer **tokenizer)
{
	const char *path = cmd->args.text[HD_OPT_TOKENIZER];
	struct hd_arena arena;
	uint8_t *bytes;
	size_t len;

	hd_arena_init(&arena, 0);
	enum hd_err err = hd_file_read_all(&cmd->fs, path, &arena, HD_TOKEN_BYTES, &bytes, &len, &cmd->diag);
	if (!err)
		err = hd_tokenizer_create(tokenizer, path, (const char *)bytes, len, &cmd->diag);
	hd_arena_finish(&arena);
	return err;
}

/* What published files call the end of a text; the first that is there as a special token counts. */
static const char *const ends[] = { "<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[SEP]" };

static uint32_t find_end(const struct hd_tokenizer *t)
{
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		uint32_t id = hd_tokenizer_find(t, ends[i]);
		if (id != HD_TOKEN_NONE && hd_tokenizer_is_special(t, id))
			return id;
	}
	return HD_TOKEN_NONE;
}

static enum hd_err take_token(struct hd_cmd *cmd, const struct hd_tokenizer *t, enum hd_opt opt, uint32_t *id)
{
	const char *text = cmd->args.text[opt];

	if (!cmd->args.has[opt])
		return HD_OK;
	*id = *text ? hd_tokenizer_find(t, text) : HD_TOKEN_NONE;
	return !*text || *id != HD_TOKEN_NONE ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"--%s: %s has no token \"%s\"", hd_opts[opt].name, cmd->args.text[HD_OPT_TOKENIZER], text);
}

/* ---- progress and report ---- */

enum { REWRITE_NS = 100000000, PLAIN_FACTOR = 100 };

struct tokenize_line { struct hd_cmd *cmd; int64_t shown_ns; bool open; };

static void show(void *user, uint64_t bytes, uint64_t documents)
{
	struct tokenize_line *line = user;
	bool rewrite = line->cmd->rewrite;
	int64_t now_ns = hd_clock_now_ns(&line->cmd->clock);

	if (line->cmd->args.has[HD_OPT_QUIET] ||
		now_ns - line->shown_ns < (rewrite ? REWRITE_NS : (int64_t)REWRITE_NS * PLAIN_FACTOR))
		return;
	line->shown_ns = now_ns;
	fprintf(stderr, "%s%.1f MB of %llu document%s%s", rewrite ? "\r\x1b[K" : "", (double)bytes / 1e6,
		(unsigned long long)documents, documents == 1 ? "" : "s", rewrite ? "" : "\n");
	fflush(stderr);
	line->open = rewrite;
}

static void report_text(const struct hd_tokenize *how, const struct hd_tokenize_report *r, double seconds)
{
	printf("%s: %llu tokens of %u bits, %llu document%s, %.1f MB in %.2f s on %u thread%s\n", how->out,
		(unsigned long long)r->tokens, 8 * r->width_bytes, (unsigned long long)r->documents,
		r->documents == 1 ? "" : "s", (double)r->bytes / 1e6, seconds, how->nthreads,
		how->nthreads == 1 ? "" : "s");
}

static void report_json(struct hd_cmd *cmd, const struct hd_tokenize *how, const struct hd_tokenize_report *r,
	double seconds)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_text(&w, "file", how->out);
	hd_json_put_i64(&w, "tokens", (int64_t)r->tokens);
	hd_json_put_i64(&w, "bits", 8 * r->width_bytes);
	hd_json_put_i64(&w, "vocabulary", hd_tokenizer_size(how->tokenizer));
	hd_json_put_i64(&w, "documents", (int64_t)r->documents);
	hd_json_put_i64(&w, "bytes", (int64_t)r->bytes);
	hd_json_put_i64(&w, "threads", how->nthreads);
	hd_json_put_f64(&w, "seconds", seconds);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

/* ---- the verb ---- */

static enum hd_err take_threads(struct hd_cmd *cmd, uint32_t *n)
{
	struct hd_cores *cores = hd_arena_take(&cmd->arena, 1, sizeof *cores);
	uint64_t wanted = cmd->args.count[HD_OPT_TOKEN_THREADS];

	if (!cores)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the list of cores");
	hd_cores_usable(cores);
	if (!cmd->args.has[HD_OPT_TOKEN_THREADS])
		wanted = cores->n < HD_TOKENIZE_THREADS ? cores->n : HD_TOKENIZE_THREADS;
	if (wanted < 1 || wanted > HD_TOKENIZE_THREADS)
		return hd_fail(&cmd->diag, HD_E_INVAL, "--threads %llu: 1 to %d", (unsigned long long)wanted,
			HD_TOKENIZE_THREADS);
	*n = (uint32_t)wanted;
	return HD_OK;
}

static enum hd_err with_tokenizer(struct hd_cmd *cmd, struct hd_tokenize *how)
{
	const struct hd_tokenizer *t = how->tokenizer;
	const char *ignores = hd_tokenizer_ignores(t);
	const int64_t begun_ns = hd_clock_now_ns(&cmd->clock);
	struct tokenize_line line = { .cmd = cmd, .shown_ns = begun_ns };
	struct hd_tokenize_report report;
	enum hd_err err;

	if (!how->special)
		how->eos = find_end(t);
	if ((err = take_token(cmd, t, HD_OPT_BOS, &how->bos)) || (err = take_token(cmd, t, HD_OPT_EOS,
		&how->eos)))
		return err;
	if (ignores && !cmd->args.has[HD_OPT_QUIET])
		fprintf(stderr, "%s asks for %s: not followed, documents are as long as they are\n",
			cmd->args.text[HD_OPT_TOKENIZER], ignores);
	how->progress = show;
	how->user = &line;
	err = hd_tokenize(how, &cmd->fs, &report, &cmd->diag);
	if (line.open)
		fprintf(stderr, "\r\x1b[K");
	const double seconds = (double)(hd_clock_now_ns(&cmd->clock) - begun_ns) / 1e9;
	if (!err && cmd->args.has[HD_OPT_JSON])
		report_json(cmd, how, &report, seconds);
	else if (!err && !cmd->args.has[HD_OPT_QUIET])
		report_text(how, &report, seconds);
	return err;
}

static enum hd_err verb_data_tokenize(struct hd_cmd *cmd)
{
	const struct hd_args *a = &cmd->args;
	struct hd_tokenizer *tokenizer = NULL;
	struct hd_tokenize how = { .texts = a->pos, .ntexts = a->npos, .field = a->text[HD_OPT_FIELD],
		.lines = a->has[HD_OPT_LINES], .out = a->text[HD_OPT_OUTPUT],
		.boundaries = a->text[HD_OPT_BOUNDARIES], .special = a->has[HD_OPT_SPECIAL],
		.bos = HD_TOKEN_NONE, .eos = HD_TOKEN_NONE };
	enum hd_err err;

	if (!a->has[HD_OPT_TOKENIZER] || !a->has[HD_OPT_OUTPUT])
		return hd_fail(&cmd->diag, HD_E_INVAL, "--%s FILE is missing", a->has[HD_OPT_OUTPUT] ?
			"tokenizer" :
			"output");
	if ((err = hd_signal_install(&cmd->diag)) || (err = take_threads(cmd, &how.nthreads)) ||
		(err = hd_cmd_tokenizer(cmd, &tokenizer)))
		return err;
	how.tokenizer = tokenizer;
	err = with_tokenizer(cmd, &how);
	hd_tokenizer_destroy(tokenizer);
	return err;
}

const struct hd_verb hd_verb_data_tokenize = {
	.name = "data tokenize", .args = "TEXT [MORE...]", .npos_min = 1, .npos_max = HD_MAX_POSITIONALS,
	.about = "make a token file of texts by a published tokenizer.json",
	.more =
		"A TEXT is a document; with --lines each of its lines is, with --field NAME that member of "
			"each "
		"line, which is a JSON object. - is standard input. Empty lines are passed by.\n"
		"Documents stand one behind the other, each followed by the end token: --eos, or, without "
			"it, what "
		"published files call it: <|endoftext|>, <|end_of_text|>, </s>, <eos>, [SEP]. --eos '' is "
			"none. "
		"--bos stands before each. No token reaches from one document into the next; --boundaries "
			"FILE "
		"holds where each begins, as numbers of eight bytes, the last of them the count of tokens.\n"
		"--special adds what the tokenizer's post-processor adds, as Python does by default, and no "
			"end "
		"token unless --eos names one.\n"
		"Tokens have 16 bits where the vocabulary fits, else 32; data.kind tokens reads both. Equal "
			"texts "
		"give equal bytes on any number of threads; a document is of one thread.\n"
		"Text is UTF-8: a byte that is none ends it with exit 3 and its place, and no file is left, "
		"nor by "
		"a request to stop (exit 130 or 75). Killed, it leaves FILE.tmp, which the next one that "
		"writes "
		"FILE takes over; two at once do not.\n"
		"With --field a TEXT may also be a Parquet file: NAME is its column of texts, each row a "
		"document.\n"
		" heddle data tokenize --tokenizer tokenizer.json --field text train.jsonl -o train.bin",
	.opts = HD_OPTS(HD_OPT_TOKENIZER, HD_OPT_OUTPUT, HD_OPT_FIELD, HD_OPT_LINES, HD_OPT_BOS, HD_OPT_EOS,
		HD_OPT_SPECIAL, HD_OPT_BOUNDARIES, HD_OPT_TOKEN_THREADS),
	.run = verb_data_tokenize, .test = "program_tokenize.sh",
};
