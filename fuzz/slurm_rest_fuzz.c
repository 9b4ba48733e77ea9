/* slurm_rest_fuzz -- whatever slurmrestd answers, what is taken of it is printable and within bounds. The
 * first byte says what it is taken for: jobs, nodes, partitions, an error, a number. */
#include <stdint.h>
#include <stdlib.h>

#include "launch/slurm_rest.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool good)
{
	if (!good)
		abort();
}

static void is_printable(const char *text)
{
	for (; *text; text++)
		must(*text >= ' ' && *text <= '~');
}

static void jobs(const char *body, size_t len, struct hd_arena *arena)
{
	struct hd_slurm_lines lines = { 0 };

	if (hd_slurm_rest_jobs(body, len, "a", arena, &lines, NULL))
		return;
	for (uint32_t i = 0; i < lines.n; i++) {
		const struct hd_slurm_line *l = &lines.at[i];
		is_printable(l->id);
		is_printable(l->node);
		is_printable(l->reason);
		must(l->id[0] && l->state[0] && l->code >= 0 && l->code < 256);
	}
}

static void nodes(const char *body, size_t len, const char *partition, struct hd_arena *arena)
{
	struct hd_batch_nodes found = { 0 };
	struct hd_launcher_types types;

	if (hd_slurm_rest_nodes(body, len, partition, "all", arena, &found, NULL))
		return;
	for (uint32_t i = 0; i < found.n; i++) {
		is_printable(found.at[i].name);
		is_printable(found.at[i].type.option);
		must(found.at[i].name[0] && found.at[i].state[0]);
	}
	if (!hd_slurm_types(&found, true, &types, NULL))
		must(types.n <= HD_LAUNCHER_TYPES);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *body = (const char *)bytes + 1, *text = "";
	enum hd_slurm_error error;
	struct hd_arena arena;
	char id[HD_SLURM_ID];

	if (!len)
		return 0;
	hd_arena_init(&arena, 64 << 20);
	if (bytes[0] == 'j')
		jobs(body, len - 1, &arena);
	else if (bytes[0] == 'n')
		nodes(body, len - 1, "", &arena);
	else if (bytes[0] == 'p')
		nodes(body, len - 1, "all", &arena);
	else if (bytes[0] == 'u')
		(void)!hd_slurm_rest_usual(body, len - 1, &arena, &text, NULL);
	else if (bytes[0] == 'e' && !hd_slurm_rest_error(body, len - 1, &arena, &error, &text, NULL))
		must(error == HD_SLURM_NO_ERROR || *text);
	else if (!hd_slurm_rest_id(body, len - 1, &arena, id, NULL))
		is_printable(id);
	hd_arena_finish(&arena);
	return 0;
}
