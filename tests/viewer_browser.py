#!/usr/bin/env python3
"""viewer_browser.py PAGE.html [--chromium PATH] [--shots FOLDER] [--find TEXT]

Opens a timeline's page in headless Chromium (DevTools protocol over a pipe) and judges it from outside: it
reads itself, zooms, finds an event, shows the critical path, lists what is in view, fits a telephone; no
error on the console, no request but the file; at most 4 rectangles for each column of pixels and row, however
it is zoomed; boxes have the colour of the class that the page's data say for their time, as decoded here.
Prints lines `ok: ...`, exit 1 with `FAILED: ...` at the first that is not so; exit 77 without a browser.
--shots: pictures as well.
"""
import argparse
import base64
import json
import os
import re
import struct
import sys
import time

sys.dont_write_bytecode = True
from browser import Browser, find, must


def decode(path):
    """The page's head and, of each timeline, its columns of events."""
    text = open(path, encoding='utf-8').read()
    head = json.loads(re.search(r'id="head">(.*?)</script>', text, re.S).group(1))
    codes = {'u8': 'B', 'u16': 'H', 'u32': 'I', 'f64': 'd'}
    for k, t in enumerate(head['timelines']):
        data = re.search(r'id="data%d">(.*?)</script>' % k, text, re.S).group(1)
        t['event'] = {}
        for c in t['columns']:
            if c['of'] == 'event' and c['type'] == 'one':
                t['event'][c['name']] = [c['value']] * c['n']
            elif c['of'] == 'event':
                raw = base64.b64decode(data[c['at']:c['at'] + c['len']])
                t['event'][c['name']] = struct.unpack('<%d%s' % (c['n'], codes[c['type']]), raw)
    return head


def colours_are_right(b, path):
    """Of work and waits that nothing before overlaps: the middle of a box that is wide enough."""
    head, stats, looks = decode(path), b.settle(), []
    for timeline, lane, y in stats['lanes']:
        t = head['timelines'][timeline]
        l, e, at, asked = t['lanes'][lane], t['event'], t['lanes'][lane]['t0'], 0
        spans = []
        for i in range(l['begin'], l['end']):
            at += e['since'][i]
            spans.append((at, at + e['length'][i], int(e['class'][i]), e['kind'][i]))
        latest = float('-inf')
        if y < stats['axis'] or y + 5 > stats['height']:
            continue
        for t0, t1, c, kind in spans:
            first_row, latest = t1 > t0 and t0 >= latest and kind in (3, 7), max(latest, t1)
            if not first_row:
                continue
            x0, x1 = (stats['left'] + (v - stats['shifts'][timeline] - stats['a']) * stats['scale']
                      for v in (t0, t1))
            if x1 - x0 < 5 or x0 < stats['left'] or x1 > 1390 or asked >= 20:
                continue
            asked += 1
            looks.append((int((x0 + x1) / 2), int(y) + 2, head['classes'][c]['colour'], l['name'], t0, t1))
    pixels = b.value('(() => { const c = document.getElementById("canvas"), all = c.getContext("2d")'
                     '.getImageData(0, 0, c.width, c.height).data; return %s.map(([x, y]) => '
                     '[...all.slice(4 * (y * c.width + x), 4 * (y * c.width + x) + 3)]); })()'
                     % json.dumps([look[:2] for look in looks]))
    for (x, y, colour, *event), got in zip(looks, pixels):
        want = [int(colour[k:k + 2], 16) for k in (1, 3, 5)]
        if max(abs(p - q) for p, q in zip(got, want)) > 3:
            raise SystemExit('FAILED: %s at %d, %d is %s, not %s' % (event, x, y, got, want))
    must(looks, 'boxes have the colour of their class:', len(looks), 'looked at')


def counters_and_losses(b, path):
    """Lines of counters go through the values that the page's data hold; what was lost is said."""
    head, stats, looks = decode(path), b.settle(), []
    want = sum(any(e == 8 for e in t['event']['kind'][l['begin']:l['end']]) for t in head['timelines']
               for l in t['lanes'])
    lanes = set((c[5], c[6]) for c in stats['counters'])
    for name, y, h, low, high, timeline, lane in stats['counters']:
        t = head['timelines'][timeline]
        l, e = t['lanes'][lane], t['event']
        if y < stats['axis'] or y + h > stats['height']:
            continue
        at, points = l['t0'], []
        for i in range(l['begin'], l['end']):
            at += e['since'][i]
            if e['kind'][i] == 8 and t['names'][int(e['name'][i])] == name:
                points.append((at, e['arg'][i]))
        if (min(p[1] for p in points), max(p[1] for p in points)) != (low, high):
            raise SystemExit('FAILED: %s from %s to %s' % (name, low, high))
        ends = [p[0] for p in points[1:]] + [stats['b'] + stats['shifts'][timeline]]
        for (t0, value), t1 in zip(points, ends):
            x0, x1 = (stats['left'] + (v - stats['shifts'][timeline] - stats['a']) * stats['scale']
                      for v in (t0, t1))
            x0, x1 = max(x0, stats['left'] + 250), min(x1, 1390)         # right of its name
            if x1 - x0 > 6:
                share = (value - low) / (high - low) if high > low else 0
                looks.append((int((x0 + x1) / 2), y + h - 1 - share * (h - 2)))
    drawn = b.value('(() => { const c = document.getElementById("canvas"), d = document.createElement('
                    '"canvas"); d.width = c.width; d.height = c.height; const g = d.getContext("2d", '
                    '{ willReadFrequently: true }); g.drawImage(c, 0, 0); return %s.map('
                    '([x, y]) => { const near = [...g.getImageData(x, Math.round(y) - 2, 1, 5).data]; '
                    'return near.some((v, k) => k %% 4 === 0 && Math.max(...near.slice(k, k + 3)) - '
                    'Math.min(...near.slice(k, k + 3)) > 40); }); })()' % json.dumps(looks[:40]))
    must(len(lanes) == want and all(drawn), 'draws', want, 'lanes with counters,', len(drawn), 'looked at')
    note = b.value('document.getElementById("note").textContent')
    for t in head['timelines']:
        must(not t['lost'] or '%d events were overwritten' % t['lost'] in note,
             'says what was lost:', t['lost'])


def few_rectangles(stats, where):
    most = 4 * stats['columns'] * max(1, stats['rows'])
    if stats['boxes'] > most or stats['densest'] > 4 or stats['visits'] > 4 * most:
        raise SystemExit('FAILED: rectangles %s: %s' % (where, stats))


def at_all_zooms(b):
    """From everything to a few events, along a walk: what the frames drew at most."""
    b.key('0')
    stats, worst, slowest = b.settle(), 0, 0.0
    first = stats
    for k in range(60):
        few_rectangles(stats, 'at zoom %d' % k)
        worst, slowest = max(worst, stats['boxes']), max(slowest, stats['frame_ms'])
        b.key('w' if k % 5 else 'd')
        now = b.settle()
        if k % 5 and k > 5 and now['b'] - now['a'] >= stats['b'] - stats['a'] and now['b'] - now['a'] > 101:
            raise SystemExit('FAILED: w does not zoom in')
        stats = now
    must(stats['b'] - stats['a'] < (first['b'] - first['a']) / 100, 'zooms in',
         'to %.0f ns of %.0f' % (stats['b'] - stats['a'], first['b'] - first['a']))
    must(True, 'at most', worst, 'rectangles in a frame of', first['columns'],
         'columns, slowest frame %.1f ms' % slowest)
    b.key('0')
    must(abs(b.settle()['b'] - first['b']) < 1, '0 shows everything')


def finds(b, text):
    b.key('/')
    b.call('Input.insertText', text=text)
    stats = b.settle()
    must(stats['matches'] > 0, 'finds', text, stats['matches'], 'times')
    b.key('Enter')
    first = b.settle()
    must(first['match'] >= 0 and first['chosen'] >= 0, 'goes to the first:', first['chosen_name'])
    must(first['a'] <= b.value('0') + first['b'], 'it is in view')
    if first['matches'] > 1:
        b.key('Enter')
        must(b.settle()['chosen'] != first['chosen'], 'goes to the next')
        b.value('document.getElementById("prev").click()')
        must(b.settle()['chosen'] == first['chosen'], 'and back')
    b.key('Escape')
    b.value('document.getElementById("canvas").focus()')
    b.key('Escape')


def shows_path(b, shots, path_of_page):
    b.key(']')
    b.settle()
    colours_are_right(b, path_of_page)
    b.key('c')
    stats = b.settle()
    path = stats['path'][0]
    must(stats['critical'] and path, 'critical path of', len(path), 'segments')
    must(all(p[1] == q[0] for p, q in zip(path, path[1:])), 'without gaps:', path[-1][1] - path[0][0], 'ns')
    said = b.value('document.getElementById("chosen").textContent')
    must('critical path of step' in said, 'says so:', said[:120])
    b.shot(shots, 'path')
    b.key('Escape')
    must(not b.settle()['critical'], 'Escape puts it off')


def table_is_text(b, shots):
    b.key('t')
    time.sleep(0.3)
    b.settle()
    n = b.value('document.querySelectorAll("#rows tr").length')
    must(0 < n <= 200, 'a table of', n, 'rows')
    must(b.value('document.querySelectorAll("#rows *:not(tr):not(td)").length') == 0, 'of text alone')
    b.shot(shots, 'table')
    b.key('t')


def help_opens(b, shots):
    b.value('document.getElementById("canvas").focus()')
    b.key('?')
    b.settle()
    must(b.value('document.getElementById("keys").open'), '? lists the keys')
    b.shot(shots, 'help')
    b.value('document.getElementById("keys").close()')


def arrows_walk(b):
    b.key('ArrowRight')
    one = b.settle()
    b.key('ArrowRight')
    two = b.settle()
    b.key('ArrowDown')
    three = b.settle()
    if three['chosen'] == two['chosen']:            # it is the last row
        b.key('ArrowUp')
        three = b.settle()
    must(one['chosen'] >= 0 and two['chosen'] != one['chosen'] and three['chosen'] != two['chosen'],
         'arrows walk from event to event')
    b.key('Escape')


def main():
    p = argparse.ArgumentParser()
    p.add_argument('page')
    p.add_argument('--chromium', default=find())
    p.add_argument('--shots')
    p.add_argument('--find', default='F')
    a = p.parse_args()
    if not a.chromium:
        print('skip: no chromium')
        return 77
    b = Browser(a.chromium)
    try:
        b.screen(1400, 900, False)
        url = 'file://' + os.path.abspath(a.page)
        began = time.monotonic()
        b.call('Page.navigate', url=url)
        while not b.value('window.hdStats && (hdStats.ready || hdStats.errors.length > 0)'):
            if time.monotonic() - began > 120:
                raise SystemExit('FAILED: not read in 120 s')
            time.sleep(0.05)
        stats = b.settle()
        must(not stats['errors'], 'reads itself:', stats.get('events'), 'events',
             stats['errors'] or '%.0f ms' % stats['ready_ms'])
        few_rectangles(stats, 'at first')
        b.shot(a.shots, 'light')
        counters_and_losses(b, a.page)
        at_all_zooms(b)
        finds(b, a.find)
        b.key('0')
        shows_path(b, a.shots, a.page)
        arrows_walk(b)
        table_is_text(b, a.shots)
        help_opens(b, a.shots)
        b.value('document.getElementById("canvas").focus()')
        for name, width, height, dark in (('dark', 1400, 900, True), ('phone', 420, 800, False),
                                          ('phone_dark', 420, 800, True)):
            b.screen(width, height, dark)
            b.key('0')
            b.key(']')
            few_rectangles(b.settle(), name)
            wide = b.value('document.documentElement.scrollWidth')
            must(wide <= width, name, 'fits', width, 'pixels')
            b.mouse(width // 2, 330, True)
            b.settle()
            b.shot(a.shots, name)
            b.key('Escape')
        bad = [e for e in b.events if e['method'] in ('Runtime.exceptionThrown', 'Log.entryAdded') or
               (e['method'] == 'Runtime.consoleAPICalled' and e['params']['type'] in ('error', 'warning'))]
        must(not bad, 'nothing on the console', bad or '')
        asked = [e['params']['request']['url'] for e in b.events
                 if e['method'] == 'Network.requestWillBeSent']
        must(all(u == url for u in asked), 'no request but the file', [u for u in asked if u != url] or '')
        must(not b.value('hdStats.errors.length'), 'no error')
    finally:
        b.close()
    return 0


sys.exit(main())
