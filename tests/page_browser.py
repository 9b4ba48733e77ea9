#!/usr/bin/env python3
"""page_browser.py URL TOKEN FLOW [--shots FOLDER] [--jobs N]

Opens the scheduler's page in headless Chromium and judges it from outside, as somebody at it would use it.
FLOW: `use` at 1280 and at 390 pixels: the token, the list, filter, order, keys, a job with its curve, another
priority and size, a job submitted and cancelled, devices, waiting, what-if, prices; light and dark. Of the
changes those at 390 pixels are of HD_PAGE_ALL alone. `inject`:
every text of every answer ends in markup, and stays text. `many`: first paint and scrolling of N jobs.
`run`: the page of one run, at --run. Nothing on the console, no request beyond the origin.
Prints lines `ok: ...`, exit 1 with `FAILED: ...` at the first that is not so; exit 77 without a browser."""
import argparse
import base64
import http.client
import json
import os
import sys
import time

sys.dont_write_bytecode = True
from browser import Browser, find, must

SECONDS = int(os.environ.get('HD_PAGE_SECONDS', '120'))      # on a machine however slow
MARKUP = '<img src=x onerror="window.hit=1"><script>window.hit=1</script><b class=injected>'


class Page(Browser):
    def __init__(self, path):
        super().__init__(path)
        self.main = self.session

    def in_tab(self, session, script):
        was, self.session = self.session, session
        value = self.value(script)
        self.session = was
        return value

    def until(self, script, what, seconds=SECONDS):
        end = time.monotonic() + seconds
        asked = '(() => { try { return !!(%s); } catch (e) { return false; } })()' % script
        while not self.value(asked):
            if time.monotonic() > end:
                raise SystemExit('FAILED: waited for %s: %s' % (what, self.text('body')))
            time.sleep(0.1)
        print('ok: ' + what)

    def frame(self):
        self.value('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))')

    def go(self, view):
        self.value('location.hash = "#/%s"' % view)

    def job(self, name):
        self.go('job/' + name)
        self.until('document.querySelector("h2").innerText.startsWith("%s")' % name, 'shows ' + name)

    def text(self, of='main'):
        return self.value('document.querySelector(%s).innerText' % json.dumps(of))

    def set(self, id, text):
        self.value('(() => { const e = document.getElementById("%s"); e.focus(); e.value = %s;'
                   'e.dispatchEvent(new Event("input", { bubbles: true }));'
                   'e.dispatchEvent(new Event("change", { bubbles: true })); })()' % (id, json.dumps(text)))

    def click(self, id):
        self.value('document.getElementById("%s").click()' % id)

    def names(self):
        return self.value('[...document.querySelectorAll(".job .name")].sort((a, b) => '
                          'a.parentNode.offsetTop - b.parentNode.offsetTop).map((e) => e.textContent)')

    def fits(self, width, name):
        wide = self.value('document.documentElement.scrollWidth')
        must(wide <= width, name, 'fits', width, 'pixels, has', wide)

    def enter(self, url):
        self.call('Page.navigate', url=url)
        self.until('window.hdPage && hdPage.whole', 'opens by an address with the token')
        must(url[-64:] not in self.value('location.href'), 'the token leaves the address')

    def clean(self, urls):
        taken = 'status of 503'         # of streams that were all taken, as the browser says it
        bad = [e for e in self.events if e['method'] == 'Runtime.exceptionThrown' or
               (e['method'] == 'Log.entryAdded' and taken not in e['params']['entry']['text']) or
               (e['method'] == 'Runtime.consoleAPICalled' and e['params']['type'] in ('error', 'warning'))]
        must(not bad, 'nothing on the console', bad or '')
        asked = {e['params']['request']['url'] for e in self.events
                 if e['method'] == 'Network.requestWillBeSent'}
        far = [u for u in asked if not u.startswith(urls)]
        must(asked and not far, 'no request beyond the origin,', len(asked), 'addresses', far or '')


def lists(b, shots, width):
    b.until('document.querySelectorAll(".job").length >= 3', 'lists jobs')
    unknown = b.value('Object.keys(hdPage.store.status.counts).filter((s) => '
                      '![...document.getElementById("state").options].some((o) => o.value === s)).join(" ")')
    must(not unknown, 'knows each state of a job', unknown)
    all_names = b.names()
    b.key('/')
    must(b.value('document.activeElement.id') == 'filter', '/ goes to the filter')
    b.call('Input.insertText', text='second')
    b.frame()
    must(b.names() == ['second'], 'filters by name')
    b.key('Escape')
    b.set('filter', '')
    b.set('order', 'oldest')
    b.frame()
    must(b.names()[:3] == ['first', 'second', 'third'], 'orders: ', *b.names()[:3])
    b.set('state', 'cancelled')
    b.frame()
    must('second' not in b.names(), 'filters by state:', *b.names())
    b.set('state', '')
    b.set('order', 'oldest')
    b.value('document.getElementById("list").focus()')
    b.key('j')
    b.key('j')
    b.key('k')
    b.key('j')
    chosen = b.value('document.querySelector(".job[aria-selected=true] .name").textContent')
    must(chosen == 'second' and len(all_names) >= 3, 'j and k choose:', chosen)
    b.fits(width, 'the list')
    b.shot(shots, 'jobs_%d' % width)


def opens_job(b, shots, width):
    b.key('Enter')
    b.until('document.querySelector("#why")', 'Enter opens the job, with why it is so')
    must('second' in b.text(), 'its name is there')
    b.job('first')
    b.until('document.querySelectorAll("svg.plot path.line").length === 3', 'curves of the job that runs')
    b.until('document.querySelectorAll("main table tbody tr").length > 0 && /worker/.test(main.innerText)',
            'its workers')
    b.fits(width, 'a job')
    b.shot(shots, 'job_%d' % width)


def changes(b, ask):
    b.job('third')
    number = round(2 + ask['width'] / 1000, 2)
    b.set('new_priority', str(number))
    b.click('set_priority')
    b.until('/priority is %s/.test(document.getElementById("said").innerText)' % number, 'another priority')
    b.until('document.querySelector(".facts").innerText.includes("%s")' % number, 'the page has it')
    b.value('document.activeElement.blur()')
    elsewhere(ask['a'], '/v1/jobs/third/priority', {'priority': 1.75})
    b.until('document.getElementById("new_priority").value === "1.75"', 'what another changes is offered')
    b.set('new_scale', '2' if ask['width'] > 600 else '1')
    b.click('set_scale')
    b.until('/at once, from/.test(document.getElementById("said").innerText)', 'another size')


def submits(b, ask):
    name = 'made-%d' % ask['width']
    b.go('submit')
    b.until('document.getElementById("order_job")', 'a form for an order')
    for id, text in (('job', ask['job']), ('folder', '/tmp'), ('name', name), ('user', 'ann ' + MARKUP[:20])):
        b.set('order_' + id, text)
    b.fits(ask['width'], 'the form')
    b.shot(ask['shots'], 'submit_%d' % ask['width'])
    b.value('document.getElementById("order").click(), document.querySelector("main form").requestSubmit()')
    b.until('location.hash.startsWith("#/job/") && document.getElementById("cancel")',
            'submits, and shows the job')
    b.click('cancel')
    b.until('document.getElementById("sure").open', 'asks before it cancels')
    b.click('sure_no')
    b.frame()
    must('cancelled' not in b.text('.facts'), 'No leaves it as it is')
    b.click('cancel')
    b.until('document.getElementById("sure").open', 'asks again')
    b.click('sure_yes')
    b.until('/cancelled/.test(document.querySelector(".facts").innerText)', 'cancels')
    b.key('Escape')
    b.until('document.getElementById("list")', 'Escape leads back')
    b.set('filter', name)
    b.frame()
    must(b.names() == [name], 'the new job is in the list, once after two clicks')
    b.set('filter', '')


def sweeps(b, ask):
    """Four trials: one at the first rung, two at the last, one failed; where each line goes is known."""
    b.go('sweeps')
    b.until('document.querySelectorAll("#sweeps tbody tr").length === 1 && /lr/.test(main.innerText)',
            'sweeps')
    must('41.7 %' in b.text(), 'how many of all steps a sweep takes')
    b.fits(ask['width'], 'sweeps')
    b.go('sweeps/lr')
    b.until('document.querySelectorAll("svg.plot").length === 2', 'curves and values of a sweep')
    at = b.value('[...document.querySelectorAll("svg.plot")].map((s) => [...s.querySelectorAll("path.line")]'
                 '.map((p) => [p.getAttribute("class"), p.getAttribute("d")]))')
    must([[c for c, _ in plot] for plot in at] == [['line others', 'line end', 'line best']] * 2,
         'three trials reported, the best on top:', at)
    points = [[[float(v) for v in p.split(',')] for p in d.replace('M', '').split('L')] for _, d in at[1]]
    top, bottom = points[2][0][1], points[0][0][1]              # learning rates 0.1 and 0.001
    must(top < bottom and abs(points[1][0][1] - (top + bottom) / 2) < 0.2, '0.01 is halfway on a log axis')
    must(points[0][1][1] == bottom and points[1][1][1] == points[2][1][1] == top, 'choices at both ends')
    must(points[0][2][1] == top and points[2][2][1] == bottom and
         abs(points[1][2][1] - (bottom + (top - bottom) / 4)) < 0.2, 'metrics on their axis:', points)
    curve = [[float(v) for v in p.split(',')] for p in at[0][2][1].replace('M', '').split('L')]
    must(len(curve) == 3 and curve[0][0] < curve[1][0] < curve[2][0] and
         curve[0][1] < curve[1][1] < curve[2][1], 'the best one falls from rung to rung:', curve)
    must(b.value('document.querySelectorAll("main tbody tr").length') == 4, 'each trial in the table')
    must('<img src=x' in b.text(), 'why one failed, as text')
    b.fits(ask['width'], 'a sweep')
    b.shot(ask['shots'], 'sweep_%d' % ask['width'])


def other_views(b, ask):
    b.go('devices')
    b.until('document.querySelectorAll("svg.plot polygon").length >= 6', 'devices over time')
    b.until('document.querySelectorAll("main table tbody tr").length === 2', 'each device')
    b.shot(ask['shots'], 'devices_%d' % ask['width'])
    b.fits(ask['width'], 'devices')
    out = ('[...document.querySelectorAll("main td button")].find((e) => e.closest("tr").innerText'
           '.includes("slow-0"))')
    b.value(out + '.click()')
    b.until(out + '.innerText === "Bring back"', 'a device goes out of service')
    b.value(out + '.click()')
    b.until(out + '.innerText === "Take out of service"', 'and comes back')
    b.go('waiting')
    b.until('document.querySelectorAll("#waiting tbody tr").length > 0', 'jobs that wait')
    must(b.value('document.querySelector("#waiting b").innerText.length > 3'),
         'with reasons:', b.value('document.querySelector("#waiting b").innerText'))
    b.set('add_fast', '3')
    b.click('if_ask')
    b.until('/Of [0-9]+ jobs?, under/.test(document.getElementById("then").innerText)', 'what if')
    b.fits(ask['width'], 'waiting')
    b.shot(ask['shots'], 'waiting_%d' % ask['width'])
    b.go('prices')
    b.until('/an hour/.test(main.innerText) && document.querySelector("#ledger table")', 'prices and ledger')
    b.fits(ask['width'], 'prices')
    b.shot(ask['shots'], 'prices_%d' % ask['width'])


def looks(b, ask):
    for view, has in (('devices', 'main table'), ('waiting', '#waiting table, #waiting p'),
                      ('prices', '#ledger table'), ('submit', '#order')):
        b.go(view)
        b.until('hdPage.view === "%s" && document.querySelector("%s")' % (view, has), view)
        b.fits(ask['width'], view)
        b.shot(ask['shots'], '%s_%d' % (view, ask['width']))


def taken_streams(a):
    """All that there are: connections, each with a stream of events."""
    held = []
    while True:
        c = http.client.HTTPConnection(a.url.split('//')[1])
        c.request('GET', '/v1/events', headers={'Authorization': 'Bearer ' + a.token})
        held.append((c, c.getresponse()))
        if held[-1][1].status != 200:
            must(held[-1][1].status == 503, 'streams:', len(held) - 1)
            return held


def elsewhere(a, path, body):
    c = http.client.HTTPConnection(a.url.split('//')[1])
    c.request('POST', path, json.dumps(body),
              {'Authorization': 'Bearer ' + a.token, 'Content-Type': 'application/json'})
    must(c.getresponse().status == 200, 'another asks for', path)


def submit_elsewhere(a, job, name='elsewhere'):
    elsewhere(a, '/v1/jobs', {'job': job, 'folder': '/tmp', 'name': name, 'held': True})


def tabs(b, a, job):
    """Seven tabs, one more than a browser has connections: one of them reads the stream, all hear."""
    has = '[...hdPage.store.jobs.values()].some((j) => j.name === "%s")'
    all_tabs = [(b.session, None)] + [b.tab(a.url + '/#token=' + a.token) for _ in range(6)]
    for i, (session, _) in enumerate(all_tabs):
        b.session = session
        b.until('window.hdPage && hdPage.whole && !hdPage.shared.held', 'tab %d opens' % i)
    leads = []
    for name in ('heard', 'heard-again'):
        submit_elsewhere(a, job, name)
        leads.append(0)
        for i, (session, _) in enumerate(all_tabs):
            b.session = session
            b.until(has % name, 'tab %d hears of it' % i)
            leads[-1] += b.value('hdPage.shared.leads')
        if name == 'heard':                             # the one that reads is closed: another one does
            at = [i for i, (s, _) in enumerate(all_tabs) if b.in_tab(s, 'hdPage.shared.leads')]
            must(len(at) == 1, 'tabs that read the stream:', len(at))
            b.session = all_tabs.pop(at[0])[0]
            b.call('Page.navigate', url='about:blank')
    must(leads == [1, 1], 'one of the tabs reads the stream:', leads)
    for session, target in all_tabs:
        b.session = None
        if target:
            b.call('Target.closeTarget', targetId=target)
    b.session = b.main


def first_status_fails(b, a):
    b.call('Page.navigate', url='about:blank')
    b.events = [e for e in b.events if e['method'] != 'Fetch.requestPaused']
    b.call('Fetch.enable', patterns=[{'urlPattern': a.url + '/v1/status', 'requestStage': 'Request'}])
    b.call('Page.navigate', url=a.url + '/#token=' + a.token)
    while not [e for e in b.events if e['method'] == 'Fetch.requestPaused']:
        b.value('1')
    paused = [e for e in b.events if e['method'] == 'Fetch.requestPaused'][0]['params']['requestId']
    b.call('Fetch.fulfillRequest', requestId=paused, responseCode=500,
           body=base64.b64encode(b'{"error":"the disk is full"}').decode())
    b.until('/the disk is full/.test(document.getElementById("main").innerText)', 'says what is wrong')
    b.call('Fetch.disable')
    b.until('hdPage.whole', 'asks again, and opens')
    b.events = [e for e in b.events if e['method'] != 'Fetch.requestPaused' and
                (e['method'] != 'Log.entryAdded' or 'status of 500' not in e['params']['entry']['text'])]


def keeps_samples(b):
    """However long it is looked at: there are always some, and never many more than the server has."""
    must(b.value('''(() => {
        const s = { all: [], whole: 0 };
        for (let at = 1; at < 20000; at += 1) {
            const after = hdPage.samplesAfter(s);
            const n = after ? 1 : 6000;
            hdPage.addSamples(s, after, Array.from({ length: n }, (_, i) => ({ at_s: at + i / 6000 })));
            if (!s.all.length || s.all.length > 2 * 6000)
                return false;
        }
        return true;
    })()'''), 'keeps samples of devices')


def use(b, a):
    job = open(a.job, encoding='utf-8').read()
    for width, height, dark in ((1280, 800, False), (390, 780, True)):
        b.screen(width, height, dark)
        ask = {'width': width, 'job': job, 'shots': a.shots, 'a': a}
        b.value('sessionStorage.clear()') if width == 390 else None
        if width == 1280:
            b.call('Page.navigate', url=a.url)
            b.until('window.hdPage && document.getElementById("gate").open', 'asks for the token')
            b.shot(a.shots, 'token')
            b.set('token', a.token)
            b.click('enter')
            b.until('hdPage.whole', 'opens with it')
        else:
            b.call('Page.navigate', url='about:blank')
            held = taken_streams(a)
            b.enter(a.url + '/#token=' + a.token)
            submit_elsewhere(a, job)
            b.until('[...hdPage.store.jobs.values()].some((j) => j.name === "elsewhere")',
                    'a page without a stream sees it')
            for c, _ in held:
                c.close()
        lists(b, a.shots, width)
        opens_job(b, a.shots, width)
        if width > 600 or 'HD_PAGE_ALL' in os.environ:
            changes(b, ask)
            submits(b, ask)
            other_views(b, ask)
        else:
            looks(b, ask)
        sweeps(b, ask)
        b.value('document.activeElement.blur()')
        b.key('1')
        b.until('document.getElementById("list")', '1 leads to the jobs')
        b.key('?')
        must(b.value('document.getElementById("keys").open'), '? lists the keys')
        b.value('document.getElementById("keys").close()')
        if a.shots:
            b.screen(width, height, not dark)
            b.job('first')
            b.until('document.querySelectorAll("svg.plot path.line").length === 3',
                    'the same in the other colours')
            b.shot(a.shots, 'job_%d_other' % width)
    must(not b.value('document.querySelectorAll("img, main script, .injected").length || window.hit'),
         'no markup of a user became any')
    keeps_samples(b)
    first_status_fails(b, a)
    tabs(b, a, job)


KEPT = {'state', 'kind', 'type', 'code', 'lease', 'policy', 'from', 'openapi'}


def spoil(v, key=''):
    if isinstance(v, dict):
        return {k: spoil(item, k) for k, item in v.items()}
    if isinstance(v, list):
        return [spoil(item, key) for item in v]
    return v + MARKUP if isinstance(v, str) and key not in KEPT else v


def pump(b, seconds):
    """Lets the page go on, and spoils what is answered meanwhile."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        b.value('new Promise((done) => setTimeout(() => done(1), 50))') if not spoil_paused(b) else None


def spoil_paused(b):
    paused = [e for e in b.events if e['method'] == 'Fetch.requestPaused' and not e.get('done')]
    for e in paused:
        e['done'] = True
        p = e['params']
        stream = p['request']['url'].split('?')[0].endswith('/v1/events')
        if 'schema' in p['request']['url'] or stream or p.get('responseStatusCode') != 200:
            b.call('Fetch.continueRequest', requestId=p['requestId'])
            continue
        got = b.call('Fetch.getResponseBody', requestId=p['requestId'])
        body = base64.b64decode(got['body']) if got['base64Encoded'] else got['body'].encode()
        body = json.dumps(spoil(json.loads(body))).encode()
        b.call('Fetch.fulfillRequest', requestId=p['requestId'], responseCode=200,
               responseHeaders=[{'name': 'Content-Type', 'value': 'application/json'}],
               body=base64.b64encode(body).decode())
    return bool(paused)


def inject(b, a):
    b.screen(1280, 800, False)
    patterns = [{'urlPattern': a.url + '/v1/*', 'requestStage': 'Response'}]
    b.call('Page.navigate', url='about:blank')
    b.enter(a.url + '/#token=' + a.token)
    b.job('first')
    b.call('Fetch.enable', patterns=patterns)
    end = time.monotonic() + SECONDS
    while '-0<img' not in b.text('.facts'):             # devices, of the answer that came last
        pump(b, 0.1)
        if time.monotonic() > end:
            raise SystemExit('FAILED: facts of a job are those of before: ' + b.text('.facts'))
    print('ok: facts of a job are those of now')
    b.call('Fetch.disable')
    b.call('Page.navigate', url='about:blank')
    b.events = [e for e in b.events if e['method'] != 'Fetch.requestPaused']
    b.call('Fetch.enable', patterns=patterns)
    b.call('Page.navigate', url=a.url + '/#token=' + a.token)
    seen = {}
    for view, has in (('jobs', 'first<img'), ('job/first', 'first<img'), ('devices', 'fast-0<img'),
                      ('waiting', 'third<img'), ('prices', 'first<img'), ('sweeps', 'lr<img'),
                      ('sweeps/lr', 'batch.global=64<img')):
        b.go(view) if view != 'jobs' else None
        end = time.monotonic() + 60
        while has not in (b.value('(document.getElementById("main") || {}).innerText') or ''):
            pump(b, 0.1)
            if time.monotonic() > end:
                raise SystemExit('FAILED: %s shows %s' % (view, b.text()))
        pump(b, 0.2)
        seen[view] = b.value('document.querySelectorAll("img, iframe, body script, .injected").length')
        b.shot(a.shots, 'inject_' + view.replace('/', '_'))
    must(set(seen.values()) == {0} and not b.value('window.hit'), 'markup in every text stays text:', *seen)
    b.call('Fetch.disable')


def many(b, a):
    b.screen(1280, 800, False)
    b.call('Page.navigate', url=a.url + '/#token=' + a.token)
    b.until('window.hdPage && hdPage.whole', 'all jobs are there', 120)
    n = b.value('hdPage.store.jobs.size')
    must(n >= a.jobs, 'jobs:', n)
    times = b.value('JSON.stringify({ paint: performance.getEntriesByName("first-contentful-paint")[0]'
                    '.startTime, rows: hdPage.ready, whole: hdPage.whole })')
    print('times: ' + times)
    must(b.value('document.querySelectorAll(".job").length') < 60, 'rows in view alone are elements')
    took = b.value('''(async () => {
        const box = document.getElementById("list"), times = [];
        for (let i = 0; i < 50; i++) {
            const t = performance.now();
            box.scrollTop = box.scrollHeight * i / 50;
            box.dispatchEvent(new Event("scroll"));
            box.getBoundingClientRect();
            times.push(performance.now() - t);
            await new Promise((done) => requestAnimationFrame(done));
        }
        return Math.max(...times);
    })()''')
    print('times: {"scroll_ms": %.1f}' % took)
    t = time.monotonic()
    b.set('filter', '9999')
    b.frame()
    print('times: {"filter_ms": %.0f}' % (1000 * (time.monotonic() - t)))
    b.shot(a.shots, 'many')


def run(b, a):
    for width, dark in ((1280, False), (390, True)):
        b.screen(width, 800, dark)
        if width == 1280:
            b.call('Page.navigate', url='about:blank')
            b.enter(a.run)
        b.until('document.querySelectorAll("svg.plot path.line").length === 3', 'curves of the run')
        b.until('document.querySelectorAll("main table tbody tr").length >= 2', 'its workers')
        must(b.value('document.getElementById("tabs").hidden'), 'no views of a scheduler')
        b.fits(width, 'a run')
        b.shot(a.shots, 'run_%d' % width)
    b.set('new_scale', '1')
    b.click('set_scale')
    b.until('/at once/.test(document.getElementById("said").innerText)', 'another number of workers')
    b.click('cancel')
    b.until('document.getElementById("sure").open', 'asks before it stops')
    b.click('sure_yes')
    b.until('/stopped|stopping/.test(document.querySelector(".facts").innerText)', 'stops')


def main():
    p = argparse.ArgumentParser()
    p.add_argument('url')
    p.add_argument('token')
    p.add_argument('flow', help='some of use,inject,many,run')
    p.add_argument('--run', help='the address of the page of a run, with its token')
    p.add_argument('--shots')
    p.add_argument('--job')
    p.add_argument('--jobs', type=int, default=10000)
    a = p.parse_args()
    if not find():
        print('skip: no chromium')
        return 77
    b = Page(find())
    try:
        for flow in a.flow.split(','):
            {'use': use, 'inject': inject, 'many': many, 'run': run}[flow](b, a)
        b.clean((a.url + '/', a.run.split('#')[0]) if a.run else a.url + '/')
    finally:
        b.close()
    return 0


sys.exit(main())
