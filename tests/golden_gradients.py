#!/usr/bin/env python3
"""golden_gradients.py FILE...: do the gradients in a graph text belong to its forward half?

Runs the text with numpy in f64, op by op after the descriptions in src/graph/op.h, and
compares the gradient of some elements of every parameter with central differences of the
loss. Shares no code with the program. Exit 0: all agree, 1: some do not."""
import math
import re
import sys

import numpy as np

ROWS = 2


def shape_of(text):
    dims = text[text.index('[') + 1:text.index(']')].split(',')
    return [int(d[:-1] or 1) * ROWS if d.endswith('*') else int(d) for d in dims]


def act(name, x):
    return {
        'relu': lambda: np.maximum(x, 0),
        'tanh': lambda: np.tanh(x),
        'sigmoid': lambda: 1 / (1 + np.exp(-x)),
        'gelu': lambda: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    }[name]()


def act_dx(name, dy, x, h=1e-6):
    return dy * (x > 0) if name == 'relu' else dy * (act(name, x + h) - act(name, x - h)) / (2 * h)


def flat(x):
    return x.reshape(-1, x.shape[-1])


def matmul(at, a, b):
    right = flat(b).T if at.get('tb') else flat(b)
    return (flat(a).T if at.get('ta') else a) @ right


def windows(at, x, kh, kw):
    """Positions of the output and the part of x that each is made from."""
    sh, sw = at.get('sh', 0), at.get('sw', 0)
    for p in range((x.shape[2] - kh) // sh + 1):
        for q in range((x.shape[3] - kw) // sw + 1):
            yield p, q, (slice(None), slice(None), slice(p * sh, p * sh + kh), slice(q * sw, q * sw + kw))


def padded(at, x):
    ph, pw = at.get('ph', 0), at.get('pw', 0)
    return np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)))


def conv2d(at, x, w, shape):
    y, x = np.zeros(shape), padded(at, x)
    for p, q, part in windows(at, x, *w.shape[2:]):
        y[:, :, p, q] = np.tensordot(x[part], w, ([1, 2, 3], [1, 2, 3]))
    return y


def conv2d_dx(at, dy, w, x):
    dx = np.zeros_like(padded(at, x))
    for p, q, part in windows(at, dx, *w.shape[2:]):
        dx[part] += np.tensordot(dy[:, :, p, q], w, (1, 0))
    ph, pw = at.get('ph', 0), at.get('pw', 0)
    return dx[:, :, ph:dx.shape[2] - ph, pw:dx.shape[3] - pw]


def conv2d_dw(at, dy, x, w):
    dw, x = np.zeros_like(w), padded(at, x)
    for p, q, part in windows(at, x, *w.shape[2:]):
        dw += np.tensordot(dy[:, :, p, q], x[part], (0, 0))
    return dw


def maxpool2d(at, x, shape, dy=None):
    y, dx = np.zeros(shape), np.zeros_like(x)
    for p, q, part in windows(at, x, at['kh'], at['kw']):
        block = x[part].reshape(*x.shape[:2], -1)
        y[:, :, p, q] = block.max(-1)
        if dy is not None:
            hit = np.zeros_like(block)
            np.put_along_axis(hit, block.argmax(-1)[..., None], 1, -1)
            dx[part] += hit.reshape(x[part].shape) * dy[:, :, p, q][..., None, None]
    return y if dy is None else dx


def attention(at, qkv):
    n, t, c = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    d = c // at['heads']
    q, k, v = (
        qkv[..., i * c : (i + 1) * c].reshape(n, t, at['heads'], d).transpose(0, 2, 1, 3) for i in range(3)
    )
    s = q @ k.transpose(0, 1, 3, 2) / math.sqrt(d)
    if at.get('causal'):
        s = np.where(np.tril(np.ones((t, t))) > 0, s, -1e30)
    lse = s.max(-1) + np.log(np.exp(s - s.max(-1, keepdims=True)).sum(-1))
    return (np.exp(s - lse[..., None]) @ v).transpose(0, 2, 1, 3).reshape(n, t, c), lse


def differences(f, x, dy, h=1e-6):
    """dy times the Jacobian of f, by central differences."""
    g, x = np.zeros_like(x), x.copy()
    for i in range(x.size):
        kept = x.flat[i]
        x.flat[i] = kept + h
        up = f(x)
        x.flat[i] = kept - h
        g.flat[i] = ((up - f(x)) * dy).sum() / (2 * h)
        x.flat[i] = kept
    return g


def layernorm(at, x, gamma, beta):
    mean, r = x.mean(-1, keepdims=True), 1 / np.sqrt(x.var(-1, keepdims=True) + at['eps'])
    return (x - mean) * r * gamma + beta, np.concatenate([mean, r], -1)


def layernorm_dx(dy, x, gamma, stats):
    d, h = dy * gamma, (x - stats[..., :1]) * stats[..., 1:]
    return stats[..., 1:] * (d - d.mean(-1, keepdims=True) - h * (d * h).mean(-1, keepdims=True))


def softmax_xent(x, y):
    lse = x.max(-1) + np.log(np.exp(x - x.max(-1, keepdims=True)).sum(-1))
    own = np.take_along_axis(x, np.maximum(y, 0)[..., None], -1)[..., 0]
    return np.where(y < 0, 0, lse - own), lse, (y >= 0) * (x.argmax(-1) == y)


def softmax_xent_dx(x, y, lse):
    own = np.zeros_like(x)
    np.put_along_axis(own, np.maximum(y, 0)[..., None], 1, -1)
    return (np.exp(x - lse[..., None]) - own) * (y >= 0)[..., None]


def bias(at, x, b):
    return x + (b if at['axis'] == -1 else b.reshape(-1, *[1] * (x.ndim - 2)))


def sum_rows(at, x):
    if at.get('keep'):
        return x.reshape(-1, *x.shape[-at['keep']:]).sum(0)
    axis = at['axis'] % x.ndim
    return x.sum(tuple(i for i in range(x.ndim) if i != axis))


def embed_dw(dy, ids, table):
    g = np.zeros_like(table)
    np.add.at(g, ids.ravel(), flat(dy))
    return g


def dropout(at, x, masks):
    rng = np.random.default_rng(at['key'])
    mask = masks.setdefault(at['key'], (rng.random(x.shape) >= at['p']) / (1 - at['p']))
    return x * mask


def bias_act(at, x, b):
    return bias(at, x, b), act(at['act'], bias(at, x, b))


def add_layernorm(at, a, b, gamma, beta):
    y, stats = layernorm(at, a + b, gamma, beta)
    return y, a + b, stats


def channels(x):
    """[values, C] of [N,C,...], and the way back."""
    turned = np.moveaxis(x, 1, -1)
    return turned.reshape(-1, x.shape[1]), lambda y: np.moveaxis(y.reshape(turned.shape), -1, 1)


def batchnorm(at, x, gamma, beta, mean, var):
    v, back = channels(x)
    n, m = v.shape[0], v.mean(0)
    s = 1 / np.sqrt(v.var(0) + at['eps'])
    return (
        back((v - m) * s * gamma + beta),
        np.stack([m, s, np.full_like(m, 1 / n)]),
        np.stack([np.full_like(m, n), m, n * v.var(0)]),
    )


def batchnorm_sums(dy, x, stats):
    g, _ = channels(dy)
    v, _ = channels(x)
    return np.stack([g.sum(0), (g * (v - stats[0]) * stats[1]).sum(0)])


def batchnorm_dx(dy, x, gamma, stats):
    sums = batchnorm_sums(dy, x, stats)
    g, back = channels(dy)
    v, _ = channels(x)
    seen = (v - stats[0]) * stats[1]
    return back(gamma * stats[1] * (g - (sums[0] + seen * sums[1]) * stats[2])), sums


# op: function of attributes, operands, shape of the first output, masks
OPS = {
    'matmul': lambda a, x, s, m: matmul(a, *x),
    'conv2d': lambda a, x, s, m: conv2d(a, *x, s),
    'conv2d_dx': lambda a, x, s, m: conv2d_dx(a, *x),
    'conv2d_dw': lambda a, x, s, m: conv2d_dw(a, *x),
    'attention': lambda a, x, s, m: attention(a, *x),
    'attention_dx': lambda a, x, s, m: differences(lambda t: attention(a, t)[0], x[1], x[0]),
    'reshape': lambda a, x, s, m: x[0].reshape(s),
    'add': lambda a, x, s, m: x[0] + x[1],
    'sub': lambda a, x, s, m: x[0] - x[1],
    'mul': lambda a, x, s, m: x[0] * x[1],
    'scale': lambda a, x, s, m: x[0] * a['by'],
    'bias': lambda a, x, s, m: bias(a, *x),
    'bias_act': lambda a, x, s, m: bias_act(a, *x),
    'act': lambda a, x, s, m: act(a['act'], *x),
    'act_dx': lambda a, x, s, m: act_dx(a['act'], *x),
    'maxpool2d': lambda a, x, s, m: maxpool2d(a, x[0], s),
    'maxpool2d_dx': lambda a, x, s, m: maxpool2d(a, x[1], x[0].shape, x[0]),
    'embed': lambda a, x, s, m: x[1][x[0]],
    'embed_dw': lambda a, x, s, m: embed_dw(*x),
    'sum_rows': lambda a, x, s, m: sum_rows(a, *x),
    'layernorm': lambda a, x, s, m: layernorm(a, *x),
    'add_layernorm': lambda a, x, s, m: add_layernorm(a, *x),
    'layernorm_dx': lambda a, x, s, m: layernorm_dx(*x),
    'layernorm_dg': lambda a, x, s, m: flat(x[0] * (x[1] - x[2][..., :1]) * x[2][..., 1:]).sum(0),
    'batchnorm': lambda a, x, s, m: batchnorm(a, *x),
    'batchnorm_dx': lambda a, x, s, m: batchnorm_dx(*x),
    'batchnorm_sums': lambda a, x, s, m: batchnorm_sums(*x),
    'batchnorm_dp': lambda a, x, s, m: x[0][int(a.get('row', 0))],
    'softmax_xent': lambda a, x, s, m: softmax_xent(*x),
    'softmax_xent_dx': lambda a, x, s, m: softmax_xent_dx(*x),
    'mse': lambda a, x, s, m: ((x[0] - x[1]) ** 2).mean(-1),
    'mse_dx': lambda a, x, s, m: 2 * (x[0] - x[1]) / x[0].shape[-1],
    'sum64': lambda a, x, s, m: x[0].sum().reshape(1),
    'count64': lambda a, x, s, m: np.array(
        [1.0 * ((x[0] != -1).sum() if x[0].dtype.kind == 'i' else x[0].shape[0])]
    ),
    'dropout': lambda a, x, s, m: dropout(a, x[0], m),
    'dropout_dx': lambda a, x, s, m: dropout(a, x[0], m),
}


def setting(word):
    name, value = word.split('=')
    return name, (
        value
        if name in ('act', 'phase', 'of')
        else float(value) if name in ('by', 'p', 'eps') else int(value)
    )


def read(path, rng):
    """Values of inputs, parameters and constants; nodes; outputs and gradients by name."""
    values, params, nodes, outputs, grads = {}, [], [], {}, {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            words = line.split()
            if words[0] == 'input':
                labels = words[2] == 'i32'
                values[words[1]] = (
                    rng.integers(0, 5, shape_of(line)) if labels else rng.normal(size=shape_of(line))
                )
                if words[1] == 'y' and labels:
                    values['y'].flat[0] = -1
            elif words[0] == 'param':
                params.append(words[1])
                values[words[1]] = rng.normal(size=shape_of(line)) * 0.3 + (words[4] == 'ones')
            elif words[0] == 'buffer':
                values[words[1]] = np.full(shape_of(line), 1.0 * (words[4] == 'ones'))
            elif words[0] == 'const':
                values[words[1]] = np.array([float(w) for w in words[4:]]).reshape(shape_of(line))
            elif words[0] == 'output':
                outputs[words[1]] = words[2]
            elif words[0] == 'grad':
                grads[words[1]] = words[2]
            elif words[0].startswith('%'):
                made, rest = line.split(' = ')
                body, shapes = rest.split(' : ')
                body = body.split()
                nodes.append(
                    (
                        made.split(','),
                        body[0],
                        [w for w in body[1:] if '=' not in w],
                        dict(setting(w) for w in body[1:] if '=' in w),
                        [shape_of(t) for t in re.findall(r'\[[^]]*\]', shapes)],
                    )
                )
    return values, params, nodes, outputs, grads


def run(nodes, values, backward, masks):
    values = dict(values)
    for made, op, operands, attrs, shapes in nodes:
        if 'phase' in attrs and not backward:
            break
        result = OPS[op](attrs, [values[name] for name in operands], shapes[0], masks)
        for name, value, shape in zip(made, result if len(made) > 1 else [result], shapes):
            assert list(value.shape) == shape, f'{name} = {op}: {value.shape}, the text says {shape}'
            values[name] = value
    return values


def check(path):
    rng = np.random.default_rng(7)
    values, params, nodes, outputs, grads = read(path, rng)
    masks, worst, h = {}, 0, 1e-6        # small: few elements cross the kink of a ReLU or a maximum
    found = run(nodes, values, True, masks)
    for name in params:
        x, g = values[name], found[grads[name]]
        for i in rng.choice(x.size, min(x.size, 4), replace=False):
            kept, loss = x.flat[i], []
            for step in (h, -h):
                x.flat[i] = kept + step
                loss.append(run(nodes, values, False, masks)[outputs['loss']][0])
            x.flat[i] = kept
            want = (loss[0] - loss[1]) / (2 * h)
            error = abs(want - g.flat[i]) / (1e-3 + abs(want))
            worst = max(worst, error)
            if error > 1e-5:
                print(f'{path}: gradient of {name}[{i}] is {g.flat[i]}, differences say {want}')
    print(f'{path}: {len(params)} parameters, worst relative difference {worst:.1e}')
    return worst <= 1e-5


sys.exit(0 if all([check(path) for path in sys.argv[1:]]) else 1)
