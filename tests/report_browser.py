#!/usr/bin/env python3
"""report_browser.py PAGE.html [--shots FOLDER]

Opens a page of several runs in headless Chromium and judges it from outside: a chart for each series that
varies, a curve a run in it, smoothed as computed here, along other axes, logarithmic; a run is switched off;
names stay text; no error on the console, no request but the file; a telephone's width holds it. Prints lines
`ok: ...`, exit 1 with `FAILED: ...` at the first that is not so; exit 77 without a browser.
"""
import argparse
import json
import math
import os
import re
import sys
import time

sys.dont_write_bytecode = True
from browser import Browser, find, must

CHARTS = "[...document.querySelectorAll('figure')].map((f) => [f.querySelector('figcaption').firstChild" \
    ".textContent, f.querySelectorAll('path.line, circle').length])"

FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
SET = "(() => { const e = document.getElementById('%s'); e.%s = %s; e.dispatchEvent(new Event('%s')); })()"


def smooth(values, by):
    """The mean with weights by^age, written out: no running sum."""
    out = []
    for i in range(len(values)):
        weights = [by ** (i - k) for k in range(i + 1)]
        out.append(sum(w * v for w, v in zip(weights, values)) / sum(weights))
    return out


def drawn(b, series, run):
    """The pixels of a curve."""
    path = b.value("[...document.querySelectorAll('figure')].find((f) => f.querySelector('figcaption')"
                   ".firstChild.textContent === %s).querySelectorAll('path.line')[%d].getAttribute('d')" %
                   (json.dumps(series), run))
    return [tuple(map(float, p.split(','))) for p in re.split('[ML]', path)[1:]]


def straight(pixels, values):
    """Is y a falling linear function of the values?"""
    low, high = min(values), max(values)
    at = {v: y for v, (_, y) in zip(values, pixels)}
    top, bottom = at[high], at[low]
    return top < bottom and all(abs(y - (bottom + (v - low) / (high - low) * (top - bottom))) < 0.4
                                for v, (_, y) in zip(values, pixels))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('page')
    parser.add_argument('--shots')
    args = parser.parse_args()
    path = find()
    if not path:
        print('skip: no browser')
        sys.exit(77)
    data = json.loads(re.search(r'id="data">(.*?)</script>', open(args.page, encoding='utf-8').read(),
                                re.S).group(1))
    b = Browser(path)
    try:
        b.screen(1280, 900, False)
        b.call('Page.navigate', url='file://' + os.path.abspath(args.page))
        for _ in range(600):
            if b.value("document.readyState") == 'complete' and b.value("document.querySelector('figure')") \
                    is not None:
                break
            time.sleep(0.1)
        runs = len(data['runs'])
        charts = dict(b.value(CHARTS))
        must(charts.get('loss') == runs, 'a curve of the loss for each run', charts)
        must(all(n <= runs for n in charts.values()), 'no series has more curves than runs', charts)
        loss = data['series'].index('loss')
        mean = [c for c in data['runs'][0]['curves'] if c['series'] == loss][0]['mean']
        must(straight(drawn(b, 'loss', 0), mean), 'the loss is drawn as it is')
        for by in (0.5, 0.9):
            b.value(SET % ('smooth', 'value', "'%g'" % by, 'input'))
            must(straight(drawn(b, 'loss', 0), smooth(mean, by)), 'it is smoothed by %g' % by)
        b.value(SET % ('smooth', 'value', "'0'", 'input'))
        b.value(SET % ('log', 'checked', 'true', 'change'))
        must(straight(drawn(b, 'loss', 0), [math.log10(v) for v in mean]), 'it is drawn logarithmically')
        b.value(SET % ('along', 'value', "'t'", 'change'))
        must(dict(b.value(CHARTS)).get('loss') == runs, 'it is drawn along the time')
        b.value("[...document.querySelectorAll('#runs button')].pop().click()")
        must(dict(b.value(CHARTS)).get('loss') == runs - 1, 'a run is switched off')
        must(b.value("document.querySelectorAll('#runs img, table img, script[src]').length") == 0 and
             b.value("typeof window.hit") == 'undefined', 'names stay text')
        must(b.value("document.querySelectorAll('#jobs tbody tr').length") == len(data['differences']),
             'a row for each key that differs')
        for width, dark in ((1280, False), (390, True)):
            b.screen(width, 900, dark)
            b.value(FRAME)
            must(b.value('document.documentElement.scrollWidth') <= width, 'it fits %d pixels' % width)
            if args.shots:
                b.shot(args.shots, 'report-%d' % width)
        b.value(FRAME)
        bad = [e for e in b.events if e.get('method') in ('Runtime.exceptionThrown', 'Log.entryAdded')]
        must(not bad, 'no error on the console', bad)
        asked = [e['params']['request']['url'] for e in b.events
                 if e.get('method') == 'Network.requestWillBeSent']
        must(all(url.startswith('file://') for url in asked), 'no request but the file', asked)
    finally:
        b.close()


main()
