#include <math.h>
#include <string.h>

#include "clustersim/job_generate.h"

/* In the order of the published table, of which a choice is an index. The first NDISTRIBUTED run on
 * several devices. */
static const char *const templates[] = {
	"ResNet-18 (batch size 16)", "ResNet-18 (batch size 32)", "ResNet-18 (batch size 64)",
		"ResNet-18 (batch size 128)", "ResNet-18 (batch size 256)",
	"ResNet-50 (batch size 16)", "ResNet-50 (batch size 32)", "ResNet-50 (batch size 64)",
	"ResNet-50 (batch size 128)",
	"Transformer (batch size 16)", "Transformer (batch size 32)", "Transformer (batch size 64)",
	"Transformer (batch size 128)",
	"Transformer (batch size 256)",
	"LM (batch size 5)", "LM (batch size 10)", "LM (batch size 20)", "LM (batch size 40)",
	"LM (batch size 80)",
	"Recommendation (batch size 512)", "Recommendation (batch size 1024)",
	"Recommendation (batch size 2048)", "Recommendation (batch size 4096)",
	"Recommendation (batch size 8192)",
	"A3C", "CycleGAN",
};
enum { NTEMPLATES = sizeof templates / sizeof *templates, NDISTRIBUTED = 19 };

enum hd_err hd_job_generator_init(struct hd_job_generator *generator,
	const struct hd_job_generator_setting *setting, const struct hd_rates *rates,
	struct hd_diag *diag)
{
	static const uint32_t scales[] = { 1, 2, 4, 8 };

	if (!(setting->per_hour >= 0) || setting->per_hour > 1e9)
		return hd_fail(diag, HD_E_INVAL, "%g jobs per hour: 0 (all at once) to 1e9",
			setting->per_hour);
	*generator = (struct hd_job_generator){ .setting = *setting, .rates = rates,
		.reference = hd_rates_type(rates, "v100") };
	if (generator->reference == HD_RATES_NONE)
		return hd_fail(diag, HD_E_INVAL,
			"the rates have no type v100, on which the published generator's durations are");
	for (uint32_t i = 0; i < NTEMPLATES; i++)
		for (uint32_t s = 0; s < (setting->multi && i < NDISTRIBUTED ? 4 : 1); s++)
			if (hd_rates_kind(rates, templates[i], scales[s]) == HD_RATES_NONE)
				return hd_fail(diag, HD_E_INVAL,
					"the rates lack %s on %u devices, which the published generator "
					"draws", templates[i],
					scales[s]);
	hd_mt_init(&generator->jobs, setting->seed + 2);
	hd_mt_init(&generator->arrivals, setting->seed + 3);
	hd_mt_init(&generator->deadlines, setting->seed + 6);
	return HD_OK;
}

/* Every draw happens, whether it is used or not: the streams must stay in step. */
void hd_job_generator_next(struct hd_job_generator *generator, struct hd_listed_job *job)
{
	const struct hd_job_generator_setting *how = &generator->setting;
	struct hd_mt *mt = &generator->jobs;
	double u = hd_mt_uniform(mt, 0, 1), next = 0;
	uint32_t scale = u >= 0.7 && u <= 0.8 ? 2 : u > 0.8 && u <= 0.95 ? 4 : u > 0.95 ? 8 : 1, at;

	if (!how->multi)
		scale = 1;
	*job = (struct hd_listed_job){ .command = "", .folder = "", .steps_arg = "", .user = "", .name = "",
		.scale = scale, .weight = 1,
		.deadline_s = INFINITY, .arrival_s = generator->arrival_s };
	job->duration_s = hd_mt_random(mt) >= 0.8 ? 60 * pow(10, hd_mt_uniform(mt, 3, 4)) : 60 * pow(10,
		hd_mt_uniform(mt, 1.5, 3));
	do
		at = hd_mt_below(mt, NTEMPLATES);
	while (scale > 1 && at >= NDISTRIBUTED);
	job->kind = templates[at];
	job->steps = job->duration_s * hd_rates_alone(generator->rates,
		hd_rates_kind(generator->rates, templates[at], scale), generator->reference);
	if (how->priorities && hd_mt_uniform(mt, 0, 1) <= 0.2)
		job->weight = 5;
	if (how->slos) {
		u = hd_mt_uniform(&generator->deadlines, 0, 1);
		job->slo = u < 0.33 ? 1.2 : u < 0.67 ? 2 : 10;
	}
	if (how->per_hour > 0)
		next = -log(1.0 - hd_mt_random(&generator->arrivals)) / (1.0 / (3600.0 / how->per_hour));
	generator->arrival_s += next;
}
