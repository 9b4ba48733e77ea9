#include "cmd/verbs.h"

const struct hd_verb *const hd_verbs[] = {
#define X(name) &hd_verb_##name,
	HD_VERBS(X)
#undef X
	NULL,
};
