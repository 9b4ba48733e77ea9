/* The ops that are one file each (graph/ops.def). */
#include "device/reference/index.h"

#include <math.h>

#include "base/philox.h"

#define OP_REFERENCE
#include "graph/ops.def"

static const struct hd_ref_op rows[HD_NOPS] = {
#define OP_PLAIN(id, units, scratch, run) [HD_OP_##id] = { units, scratch, run },
#include "graph/ops.def"
};

const struct hd_ref_op *hd_ref_ops(uint16_t op) { return &rows[op]; }
