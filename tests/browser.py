"""browser.py: headless Chromium, by the DevTools protocol over a pipe; shared by what judges pages from
outside (viewer_browser.py, page_browser.py)."""
import base64
import json
import os
import shutil
import subprocess
import tempfile


def find():
    """Its path; None: there is no browser."""
    return (shutil.which('chromium') or shutil.which('chromium-browser') or shutil.which('google-chrome'))


class Browser:
    def __init__(self, path):
        self.home = tempfile.mkdtemp()
        there, self.write = os.pipe()
        self.read, back = os.pipe()

        def pipes():            # Chromium reads commands from descriptor 3 and answers on 4
            os.dup2(there, 103)
            os.dup2(back, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        self.process = subprocess.Popen(
            [path, '--headless=new', '--no-sandbox', '--disable-gpu', '--remote-debugging-pipe',
             '--user-data-dir=' + self.home, '--disable-dev-shm-usage', '--no-first-run',
             '--disable-background-networking', '--disable-component-update', 'about:blank'],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(there)
        os.close(back)
        self.number, self.rest, self.events, self.session = 0, b'', [], None
        targets = self.call('Target.getTargets')['targetInfos']
        target = [t for t in targets if t['type'] == 'page'][0]['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(domain + '.enable')

    def tab(self, url):
        """Another tab of this browser; its session, to be put into self.session."""
        was, self.session = self.session, None
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self.session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        self.call('Page.navigate', url=url)
        session, self.session = self.session, was
        return session, target

    def message(self):
        while b'\0' not in self.rest:
            got = os.read(self.read, 1 << 20)
            if not got:
                raise SystemExit('FAILED: the browser ended')
            self.rest += got
        one, self.rest = self.rest.split(b'\0', 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        sent = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            sent['sessionId'] = self.session
        os.write(self.write, json.dumps(sent).encode() + b'\0')
        while True:
            m = self.message()
            if m.get('id') == self.number:
                if 'error' in m:
                    raise SystemExit('FAILED: %s: %s' % (method, m['error']))
                return m['result']
            self.events.append(m)

    def value(self, script):
        r = self.call('Runtime.evaluate', expression=script, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in r:
            raise SystemExit('FAILED: %s: %s' % (script, r['exceptionDetails']))
        return r['result'].get('value')

    def settle(self):           # two frames: what was asked for is drawn
        self.value('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))')
        return self.value('JSON.parse(JSON.stringify(hdStats))')

    def key(self, key):
        named = {'Enter': '\r'}
        text = named.get(key, key if len(key) == 1 else '')
        self.call('Input.dispatchKeyEvent', type='keyDown', key=key, text=text,
                  windowsVirtualKeyCode={'Enter': 13, 'Escape': 27, 'ArrowRight': 39, 'ArrowLeft': 37,
                                         'ArrowDown': 40, 'ArrowUp': 38}.get(key, 0))
        self.call('Input.dispatchKeyEvent', type='keyUp', key=key)

    def mouse(self, x, y, click):
        self.call('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)
        for what in ('mousePressed', 'mouseReleased') if click else ():
            self.call('Input.dispatchMouseEvent', type=what, x=x, y=y, button='left', clickCount=1)

    def screen(self, width, height, dark):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])

    def shot(self, folder, name):
        if folder:
            data = self.call('Page.captureScreenshot', format='png')['data']
            with open(os.path.join(folder, name + '.png'), 'wb') as f:
                f.write(base64.b64decode(data))

    def close(self):
        os.close(self.write)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)


def must(good, what, *more):
    if not good:
        raise SystemExit('FAILED: %s %s' % (what, ' '.join(str(m) for m in more)))
    print('ok: ' + what, *more)
