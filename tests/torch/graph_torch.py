#!/usr/bin/env python3
"""graph_torch.py FOLDER: do the gradients of random graphs agree with PyTorch's?

FOLDER holds N.graph and N.numbers as written by src/device/property_test.c under
HD_PROPERTY_OUT. The forward half of each text is run by torch in f64, after the
descriptions in src/graph/op.h and op_tensors.h, and its gradients are compared with those
that the program computed in f32. Graphs with an op that is not below (dropout: its draws
are not torch's) are counted and left out. Exit 0: all agree, 1: some do not."""
import glob
import os
import sys

import torch

ROWS = 3
T = torch.float64


def dims(text):
    return [
        int(d[:-1] or 1) * ROWS if d.endswith('*') else int(d)
        for d in text[text.index('[') + 1 : text.index(']')].split(',')
    ]


def act(at, x):
    a, b = at.get('alpha', 0.0), at.get('beta', 0.0)
    F = torch.nn.functional
    return {
        'relu': F.relu,
        'gelu': lambda v: F.gelu(v, approximate='tanh'),
        'tanh': torch.tanh,
        'sigmoid': torch.sigmoid,
        'silu': F.silu,
        'gelu_erf': F.gelu,
        'softplus': F.softplus,
        'elu': lambda v: F.elu(v, a),
        'leaky': lambda v: F.leaky_relu(v, a),
        'clip': lambda v: torch.clamp(v, a, b),
        'exp': torch.exp,
        'log': torch.log,
        'sqrt': torch.sqrt,
        'erf': torch.erf,
        'neg': torch.neg,
        'abs': torch.abs,
        'recip': torch.reciprocal,
        'square': torch.square,
        'sin': torch.sin,
        'cos': torch.cos,
        'atan': torch.atan,
        'floor': torch.floor,
        'ceil': torch.ceil,
        'round': torch.round,
        'pow': lambda v: torch.pow(v, a),
    }.get(at['act'], getattr(F, at['act'], None))(x)


def axes_of(at, x):
    return [d for d in range(x.dim()) if at['axes'] >> d & 1]


def reduce(how):
    def run(at, x):
        axes, keep = axes_of(at, x), at.get('keep', 0)
        y = how(x, axes)
        shape = [1 if d in axes else n for d, n in enumerate(x.shape) if d not in axes or keep >> d & 1]
        return y.reshape(shape or [1])
    return run


def product(x, axes):
    for d in axes:
        x = x.prod(d, keepdim=True)
    return x


def gather(at, x, ids):
    axis = at.get('axis', 0)
    flat = ids.reshape(-1)
    held = (flat >= 0) & (flat < x.shape[axis])
    y = torch.index_select(x, axis, torch.where(held, flat, 0))
    y = y * held.to(T).reshape([-1 if d == axis else 1 for d in range(y.dim())])
    return y.reshape(list(x.shape[:axis]) + list(ids.shape) + list(x.shape[axis + 1:]))


def pad(at, x):
    axis, shape = at.get('axis', 0), list(x.shape)
    fill = lambda n: torch.full(shape[:axis] + [n] + shape[axis + 1:], at.get('value', 0.0), dtype=T)
    return torch.cat([fill(at.get('before', 0)), x, fill(at.get('after', 0))], axis)


def cut(at, x):
    places = [at.get('from', 0) + i * at['step'] for i in range(at['count'])]
    return torch.index_select(x, at.get('axis', 0), torch.tensor(places))


def cumsum(at, x):
    axis = at.get('axis', 0)
    return (
        torch.flip(torch.cumsum(torch.flip(x, [axis]), axis), [axis])
        if at.get('back')
        else torch.cumsum(x, axis)
    )


def topk(at, x):
    """Of equals the one that lies first, which torch.topk does not promise."""
    axis = at.get('axis', 0)
    return torch.sort(x, dim=axis, descending=not at.get('least', 0), stable=True)[1].narrow(axis, 0, at['k'])


def one_hot(at, ids):
    return torch.nn.functional.one_hot(ids, at['depth']).to(T)


def turned(x, flag):
    return x.transpose(-1, -2) if flag else x


def matmul(at, a, b):
    return turned(a.reshape(-1, a.shape[-1]), at.get('ta')) @ turned(b.reshape(-1, b.shape[-1]), at.get('tb'))


def bias(at, x, b):
    return x + (b if at['axis'] == -1 else b.reshape([-1] + [1] * (x.dim() - 2)))


def bias_act(at, x, b):
    z = bias(at, x, b)
    return z, act(at, z)


def layernorm(at, x, gamma, beta):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], gamma, beta, at['eps'])


def add_layernorm(at, a, b, gamma, beta):
    return layernorm(at, a + b, gamma, beta), a + b


def rmsnorm(at, x, gamma):
    return (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + at['eps']) * gamma,)


def conv2d(at, x, w):
    return torch.nn.functional.conv2d(
        x, w, stride=(at['sh'], at['sw']), padding=(at.get('ph', 0), at.get('pw', 0))
    )


def pool(how):
    return lambda at, x: how(x, (at['kh'], at['kw']), (at['sh'], at['sw']))


def attend(at, q, k, v):
    heads, kv = at['heads'], at['kv']
    q, k, v = (
        x.reshape(x.shape[0], x.shape[1], n, -1).transpose(1, 2) for x, n in ((q, heads), (k, kv), (v, kv))
    )
    k, v = (x.repeat_interleave(heads // kv, 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) * (at.get('scale', 0) or q.shape[-1] ** -0.5)
    if at.get('cap', 0):
        scores = at['cap'] * torch.tanh(scores / at['cap'])
    if at.get('causal', 0):
        far = torch.arange(q.shape[2])[:, None] - torch.arange(k.shape[2])[None]
        seen = (far >= 0) & (far < (at.get('window', 0) or far.shape[1]))
        scores = scores.masked_fill(~seen, -torch.inf)
    y = torch.softmax(scores, -1) @ v
    return (y.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1),)


def attention(at, qkv):
    return attend(dict(at, kv=at['heads']), *qkv.chunk(3, -1))


def rotary(at, x):
    n, t, c = x.shape
    h = x.reshape(n, t, at['heads'], -1)
    half = h.shape[-1] // 2
    angle = torch.arange(t, dtype=T)[:, None] * torch.tensor(at['base'], dtype=T) ** (
        -torch.arange(half, dtype=T) / half
    )
    z = (
        torch.complex(h[..., :half], h[..., half:])
        * torch.polar(torch.ones_like(angle), -angle if at.get('back') else angle)[None, :, None]
    )
    return torch.cat([z.real, z.imag], -1).reshape(n, t, c)


def rotary_by(at, x, by):
    n, t, c = x.shape
    h, half = x.reshape(n, t, at['heads'], -1), by.numel()
    angle = torch.arange(t, dtype=T)[:, None] * by.reshape(-1) * (-1 if at.get('back') else 1)
    turned = torch.complex(h[..., :half], h[..., half : 2 * half]) * torch.polar(
        torch.full_like(angle, at.get('scale', 0) or 1), angle
    )[:, None]
    return torch.cat([turned.real, turned.imag, h[..., 2 * half :]], -1).reshape(n, t, c)


def cell(gates):
    """torch's cells, which take z as an input that the identity multiplies."""
    def run(at, z, w, b):
        hidden = w.shape[1]
        x, y = (torch.zeros(z.shape[0], hidden, dtype=T) for _ in range(2))
        ys, eye = [], torch.eye(gates * hidden, dtype=T)
        for t in range(z.shape[1]):
            if gates == 4:
                x, y = torch.lstm_cell(z[:, t], (x, y), eye, w, torch.zeros_like(b), b)
            else:
                x = torch.gru_cell(z[:, t], x, eye, w, torch.zeros_like(b), b)
            ys.append(x)
        return (torch.stack(ys, 1),)
    return run


def batchnorm(at, x, gamma, beta, mean, var):
    channel = 1 if at['axis'] == 1 else x.dim() - 1
    y = torch.nn.functional.batch_norm(
        x.transpose(1, channel),
        mean.clone(),
        var.clone(),
        gamma,
        beta,
        not at.get('infer', 0),
        0.1,
        at['eps'],
    )
    return (y.transpose(1, channel),)


OPS = {
    'attend': attend,
    'attention': attention,
    'rotary': rotary,
    'rotary_by': rotary_by,
    'lstm': cell(4),
    'gru': cell(3),
    'batchnorm': batchnorm,
    'embed': lambda at, ids, table: gather({}, table, ids),
    'rmsnorm': rmsnorm,
    'swiglu': lambda at, a, b: torch.nn.functional.silu(a) * b,
    'conv2d': conv2d,
    'avgpool2d': pool(torch.nn.functional.avg_pool2d),
    'maxpool2d': pool(torch.nn.functional.max_pool2d),
    'groupnorm': lambda at, x, gamma, beta: torch.nn.functional.group_norm(
        x, at['groups'], gamma, beta, at['eps']
    ),
    'add': lambda at, a, b: a + b,
    'sub': lambda at, a, b: a - b,
    'mul': lambda at, a, b: a * b,
    'div': lambda at, a, b: a / b,
    'maximum': lambda at, a, b: torch.maximum(a, b),
    'minimum': lambda at, a, b: torch.minimum(a, b),
    'power': lambda at, a, b: torch.pow(a, b),
    'where': lambda at, c, a, b: torch.where(c != 0, a, b),
    'scale': lambda at, x: x * at.get('by', 0.0),
    'act': act,
    'softmax': lambda at, x: torch.softmax(x, -1),
    'log_softmax': lambda at, x: torch.log_softmax(x, -1),
    'permute': lambda at, x: x.permute([at.get(f'p{d}', 0) for d in range(x.dim())]),
    'slice': cut,
    'concat': lambda at, a, b: torch.cat([a, b], at.get('axis', 0)),
    'pad': pad,
    'gather': gather,
    'cumsum': cumsum,
    'topk': topk,
    'one_hot': one_hot,
    'reduce_sum': reduce(lambda x, axes: x.sum(axes)),
    'reduce_mean': reduce(lambda x, axes: x.mean(axes)),
    'reduce_max': reduce(lambda x, axes: x.amax(axes)),
    'reduce_min': reduce(lambda x, axes: x.amin(axes)),
    'reduce_prod': reduce(product),
    'contract': lambda at, a, b: turned(a, at.get('ta')) @ turned(b, at.get('tb')),
    'matmul': matmul,
    'bias': bias,
    'bias_act': bias_act,
    'layernorm': layernorm,
    'add_layernorm': add_layernorm,
    'reshape': lambda at, x: x,
    'expand': lambda at, x: x,
    'sum64': lambda at, x: x.sum().reshape(1),
}


def numbers(path):
    return {tuple(line.split()[:2]): [float(x) for x in line.split()[2:]] for line in open(path)}


def attrs(words):
    at = {}
    for word in words:
        key, text = word.split('=')
        try:
            at[key] = int(text)
        except ValueError:
            try:
                at[key] = float(text)
            except ValueError:
                at[key] = text
    return at


def run(path):
    """None: an op is not here. Else the worst difference and how many elements were compared."""
    held, at = numbers(path[:-6] + '.numbers'), {}
    params = []
    loss = None
    for line in open(path):
        words = line.split(' : ')[0].split()
        if words[0] in ('input', 'param'):
            integers = words[0] == 'input' and words[2] == 'i32'
            shape = dims(words[3])
            at[words[1]] = torch.tensor(held[words[0], words[1]], dtype=T).reshape(shape)
            if integers:
                at[words[1]] = at[words[1]].to(torch.int64)
            elif words[0] == 'param':
                at[words[1]].requires_grad_(True)
                params.append(words[1])
        elif words[0] == 'const':
            shape = dims(words[3])
            at[words[1]] = torch.tensor([float(x) for x in words[4:]], dtype=T).reshape(shape)
        elif words[0] == 'output' and words[1] == 'loss':
            loss = at[words[2]]
        elif len(words) > 1 and words[1] == '=' and not any(w.startswith('phase=') for w in words):
            if words[2] not in OPS:
                return None
            operands = [at[w] for w in words[3:] if '=' not in w]
            results = OPS[words[2]](attrs([w for w in words[3:] if '=' in w]), *operands)
            results = results if isinstance(results, tuple) else (results,)
            shapes = line.strip().split(' : ')[1].split(', ')
            for i, (name, shape) in enumerate(zip(words[0].split(','), shapes)):
                if i < len(results):          # the statistics of a norm are no operand here
                    at[name] = (
                        results[i].expand(dims(shape))
                        if words[2] == 'expand'
                        else results[i].reshape(dims(shape))
                    )
    loss.sum().backward()
    worst, compared = 0.0, 0
    scale = max([1e-2] + [at[p].grad.abs().max().item() for p in params])
    for p in params:
        want, got = at[p].grad.reshape(-1), torch.tensor(held['grad', p], dtype=T)
        worst = max(worst, (want - got).abs().max().item() / scale)
        compared += got.numel()
    return worst, compared


def main():
    files = sorted(glob.glob(os.path.join(sys.argv[1], '*.graph')))
    ran = left = elements = 0
    worst, bad = 0.0, []
    for path in files:
        result = run(path)
        if result is None:
            left += 1
            continue
        ran += 1
        elements += result[1]
        worst = max(worst, result[0])
        if not result[0] <= 1e-4:
            bad.append((os.path.basename(path), result[0]))
    print(
        f'{ran} graphs agree with torch {torch.__version__} in {elements} gradients, '
        f'worst {worst:.2g} of the largest; {left} left out'
        if not bad
        else f'these do not agree: {bad}'
    )
    return 1 if bad or ran < 200 else 0


if __name__ == '__main__':
    sys.exit(main())
