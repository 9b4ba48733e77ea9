/* testing.h -- what the tests of this room share: short traces and models, written where they are used. */
#ifndef HD_SPOT_TESTING_H
#define HD_SPOT_TESTING_H

#include <string.h>

#include "spot/model.h"
#include "spot/trace.h"
#include "tests/check.h"

static inline struct hd_spot_model model_of(const char *text, struct hd_arena *arena)
{
	const struct hd_json *json;
	struct hd_spot_model model = { 0 };
	struct hd_diag diag = { "" };

	CHECK(!hd_json_parse(arena, "model", text, strlen(text), &json, &diag) &&
		!hd_spot_model_read(&model, json, &diag), "%s", diag.text);
	return model;
}

#endif
