/* Node cases of ai.onnx.preview.training: one update of some tensors, on our optimizers. Inputs are the rate,
 * the number of updates, then parameters, gradients and slots of all tensors; outputs are parameters and
 * slots. */

struct optim_case { const char *op, *mode; enum hd_optim_kind kind; uint32_t nslots; };
static const struct optim_case optim_cases[] = {
	{ "Adagrad", NULL, HD_OPTIM_ADAGRAD, 1 },       { "Adam", NULL, HD_OPTIM_ADAM, 2 },
	{ "Momentum", "standard", HD_OPTIM_MOMENTUM, 1 }, { "Momentum", "nesterov", HD_OPTIM_NESTEROV, 1 },
};

static double number_of(const Onnx__NodeProto *node, const char *name, double standard)
{
	for (size_t i = 0; i < node->n_attribute; i++)
		if (!strcmp(node->attribute[i]->name, name))
			return (double)node->attribute[i]->f;
	return standard;
}

static const struct optim_case *optim_of(const Onnx__NodeProto *node)
{
	const char *mode = "";
	size_t len = 0;

	for (size_t i = 0; i < node->n_attribute; i++)
		if (!strcmp(node->attribute[i]->name, "mode")) {
			mode = (const char *)node->attribute[i]->s.data;
			len = node->attribute[i]->s.len;
		}
	for (size_t k = 0; node->domain && !strcmp(node->domain, "ai.onnx.preview.training") &&
		k < sizeof optim_cases / sizeof *optim_cases; k++) {
		const struct optim_case *c = &optim_cases[k];
		if (!strcmp(c->op, node->op_type) && (!c->mode ||
			(len == strlen(c->mode) && !memcmp(mode, c->mode, len))))
			return c;
	}
	return NULL;
}

/* Ours has no factor beta for all updates but the first, no decay after the update, and eps x sqrt(c2)
 * where ONNX has eps. */
static bool scalars_of(const Onnx__NodeProto *node, const struct optim_case *c, double rate, double t,
	double standard_eps, struct hd_step_scalars *s)
{
	bool adam = c->kind == HD_OPTIM_ADAM, adagrad = c->kind == HD_OPTIM_ADAGRAD;

	*s = (struct hd_step_scalars){ .lr = (float)rate, .scale = 1, .clip = 1, .c1 = 1, .c2 = 1 };
	s->optim = (struct hd_optim){ .kind = c->kind, .weight_decay = (float)number_of(node,
		"norm_coefficient", 0),
		.eps = (float)number_of(node, "epsilon", standard_eps),
		.momentum = (float)number_of(node, "alpha", 0),
		.beta1 = (float)number_of(node, "alpha", 0.9),
		.beta2 = (float)number_of(node, "beta", 0.999) };
	if (adagrad)
		s->lr = (float)(rate / (1 + t * number_of(node, "decay_factor", 0)));
	if (adam)
		return t == 0 && number_of(node, "norm_coefficient_post", 0) == 0;
	return adagrad || t == 0 || number_of(node, "beta", 1) == 1;
}

static bool updated(struct job *job, struct hd_device *device, const struct hd_step_scalars *s,
	const struct optim_case *c, uint32_t n, uint32_t k)
{
	float *at[4] = { NULL };                  /* parameter, gradient, slots */
	uint64_t token = 0, len = job->in[2 + k].n;

	for (uint32_t i = 0; i < 2 + c->nslots; i++)
		at[i] = as_ours(&job->in[2 + i * n + k], HD_F32);
	struct hd_update update = { c->kind, at[0], at[1], { at[2], at[3] }, len, s };
	bool good = device->ops->update(device, &update, &token, &job->diag) == HD_OK &&
		device->ops->wait(device, token, &job->diag) == HD_OK;
	for (uint32_t i = 0; i < 1 + c->nslots && good; i++)
		for (uint64_t e = 0; e < len; e++) {
			double ours = (double)at[i ? i + 1 : 0][e], theirs = job->out[i * n + k].f[e];
			if (close_to(ours, theirs))
				continue;
			hd_fail(&job->diag, HD_E_BUG, "output %u, element %llu is %.9g, not %.9g", i * n + k,
				(unsigned long long)e, ours, theirs);
			good = false;
		}
	for (uint32_t i = 0; i < 4; i++)
		free(at[i]);
	return good;
}

static enum verdict run_optim(struct job *job, const Onnx__NodeProto *node, const struct optim_case *c)
{
	static const char *const kinds[] = { "reference", "cpu" };
	uint32_t n = (uint32_t)(node->n_input - 2) / (2 + c->nslots);
	struct hd_device_spec spec = { .nthreads = 1, .kernels = HD_KERNELS_PORTABLE };
	struct hd_step_scalars s;
	/* Computed with an epsilon that the node does not have (onnx 1.12,
	 * backend/test/case/node/adam.py). */
	double eps = strstr(job->folder, "test_adam_multiple") ? 1e-2 : c->kind == HD_OPTIM_ADAM ? 1e-6 : 0;
	bool good = true;

	if (job->nin != 2 + n * (2 + c->nslots) || job->nout != n * (1 + c->nslots))
		return FAIL;
	if (!scalars_of(node, c, job->in[0].f[0], (double)job->in[1].i[0], eps, &s))
		return REFUSED;
	for (int d = 0; d < 2 && good; d++) {
		struct hd_device *device = NULL;
		good = hd_device_create(&device, kinds[d], &spec, &job->diag) == HD_OK;
		for (uint32_t k = 0; k < n && good; k++)
			good = updated(job, device, &s, c, n, k);
		hd_device_destroy(device);
	}
	return good ? PASS : FAIL;
}

/* false: the model is no such case. */
static bool is_optim(struct job *job, const struct file *model, enum verdict *verdict)
{
	Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, model->len, model->at);
	const struct optim_case *c = m && m->graph && m->graph->n_node == 1 ? optim_of(m->graph->node[0]) :
		NULL;

	if (c)
		*verdict = run_optim(job, m->graph->node[0], c);
	onnx__model_proto__free_unpacked(m, NULL);
	return c != NULL;
}
