/* A model of `simulate spot`, and after a line "--" a trace: refused with a reason, or played to an end whose
 * ledger holds what its header says. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "spot/replay.h"
#include "clustersim/availability.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void play(const struct hd_spot_model *model, const struct hd_spot_trace *trace,
	const struct hd_spot_way *way, struct hd_arena *arena)
{
	struct hd_spot_replay r;
	struct hd_diag diag = { "" };
	int64_t ms = 0, nano_usd = 0;

	if (hd_spot_replay(&r, trace, model, way, arena, &diag)) {
		must(*diag.text);
		return;
	}
	for (int p = 0; p < HD_NLEDGER; p++) {
		must(r.ledger.ms[p] >= 0 && r.paid.part[p] >= 0);
		ms += r.ledger.ms[p];
		nano_usd += r.paid.part[p];
	}
	must(ms == r.paid.ms && nano_usd == r.paid.nano_usd);
	must(r.absorbed + r.level2 <= r.removals && (r.steps == 0 || r.rendezvous > 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const char PARTS[] = "\n--\n";
	const uint8_t *cut = memmem(bytes, len, PARTS, sizeof PARTS - 1);
	static const struct hd_spot_way ways[] = { { HD_SPOT_EAGER, 0, 0 }, { HD_SPOT_REROUTE, 7, 0 },
		{ HD_SPOT_CHECKPOINT, 3, 0 }, { HD_SPOT_REPLICA, 5, 2 } };
	struct hd_spot_model model;
	struct hd_spot_trace trace;
	const struct hd_json *json;
	struct hd_arena arena;

	if (!cut)
		return 0;
	const size_t head = (size_t)(cut - bytes);
	const uint8_t *rest = cut + sizeof PARTS - 1;
	hd_arena_init(&arena, 64u << 20);
	if (!hd_json_parse(&arena, "m", (const char *)bytes, head, &json, NULL) &&
		!hd_spot_model_read(&model, json, NULL) &&
		!hd_availability_read(&trace, "t", rest, (size_t)(bytes + len - rest), 1, &arena, NULL)) {
		/* a step of a millisecond is no other case, only a longer one */
		for (uint32_t d = 0; d < model.npipelines; d++)
			model.step_ms[d] += 5000;
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
			play(&model, &trace, &ways[i], &arena);
	}
	hd_arena_finish(&arena);
	return 0;
}
