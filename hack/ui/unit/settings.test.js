import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deferral, effect, envText, parseEnv, sizeText, specOf, valuesOf } from '../../../api/ui/assets/core/settings.js';
import { bothProtocols, parseSize } from '../../../api/ui/assets/core/input.js';
import { linkOf, shared } from '../../../api/ui/assets/core/session.js';

test('variables are one per line, and read back as they were', () => {
  const env = { B: 'x=1 ', A: '', C: 'two\nlines', D: '"quoted"', E: '  a', F: 'cr\rx' };
  assert.equal(envText({ B: 'x=1', A: 'two\nlines' }), 'A="two\\nlines"\nB=x=1');
  assert.deepEqual(parseEnv(envText(env)), env);
  assert.deepEqual(parseEnv('\n  \n'), {});
  assert.throws(() => parseEnv('A'), /"A" is not NAME=value/);
  assert.throws(() => parseEnv('A="x'), /the value of A begins with a quote/);
});

test('sizes are not rounded', () => {
  for (const size of [0, 1, 1023, 1024, 4_724_464_026, 64 * 1024 ** 2, 3 * 1024 ** 4]) {
    assert.equal(parseSize(sizeText(size)), size);
  }
});

test('a form that nobody changed gives the same specification', () => {
  const spec = {
    image: 'a:1', startup_command: 'run', env: { A: '1' }, limits: { memory: 1024, cpu: 0.5, disk: 0, pids: 10 },
    stop: { command: 'stop', timeout: '10m0s' }, ports: [], labels: { a: 'b' },
  }; // prettier-ignore
  assert.deepEqual(specOf(spec, valuesOf(spec)), spec);
  const changed = specOf(spec, { ...valuesOf(spec), memory: '', stopCommand: '', stopSignal: 'SIGINT', env: 'A=2' });
  assert.deepEqual(changed.limits, { memory: 0, cpu: 0.5, disk: 0, pids: 10 });
  assert.deepEqual(changed.stop, { signal: 'SIGINT', timeout: '10m0s' });
  assert.deepEqual(changed.env, { A: '2' });
  assert.throws(
    () => specOf(spec, { ...valuesOf(spec), memory: '64', cpu: 'x' }),
    (error) => Object.keys(error.fields).join() === 'memory,cpu',
  );
  assert.match(effect({ action: 'recreate', reason: 'env changed' }), /new container: .*: env changed\.$/);
});

test('a change at the next start is offered if it leaves a run alone', () => {
  const changes = (action, reason) => ({ changed: true, actions: [{ action, reason }] });
  const none = { changed: false, actions: [] };
  const recreate = changes('recreate', 'env, stop changed');
  assert.match(
    deferral(recreate, changes('update', 'env, stop, workdir changed; env, workdir at the next start')),
    /a running one goes on: its next start changes environment, working directory, and the rest applies at once\.$/,
  );
  assert.match(deferral(recreate, changes('update', 'stop changed')), /goes on: what waits goes on waiting, and the rest/);
  assert.equal(deferral(recreate, recreate), '', 'nothing runs');
  assert.equal(deferral(recreate, none), '', 'it waits already');
  assert.equal(deferral(changes('update', 'stop changed'), changes('update', 'stop changed')), '', 'it applies at once');
});

test('a link has its token in the fragment', () => {
  const token = `berth_${'0'.repeat(32)}`;
  const link = linkOf('http://127.0.0.1:8070/ui/', token, 'mc');
  assert.equal(link, `http://127.0.0.1:8070/ui/#/link/${token}/mc`);
  assert.deepEqual(shared(new URL(link).hash), { token, id: 'mc' });
  for (const hash of ['', '#/containers/mc', '#/link/berth_x/mc', `#/link/${token}`, `#/link/${token}/a/b`])
    assert.equal(shared(hash), null);
});

test('games use tcp and udp', () => {
  assert.equal(bothProtocols('25565, 53/udp'), '25565/tcp 25565/udp 53/udp');
});
