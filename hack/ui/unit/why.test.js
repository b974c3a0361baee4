import test from 'node:test';
import assert from 'node:assert/strict';
import { explain, explainNode, exitText, isFault, urgency } from '../../../api/ui/assets/core/why.js';

const now = Date.parse('2026-01-01T00:01:00Z');
const container = (more) => ({
  state: 'running', power: 'running', state_since: '2026-01-01T00:00:00Z', message: null, exit_code: null, oom_killed: false,
  next_retry_at: null, deadline: null, restart_count: 0, conditions: [], ...more,
}); // prettier-ignore
const fault = (type, reason, message, status = 'False') => ({ type, status, reason, message, since: '2026-01-01T00:00:00Z' });

const lost =
  'machine does not answer: node n1: the container may run on, and is started elsewhere once its machine is declared to be off';

// The usual faults: what a person reads, and what is done about it.
const cases = [
  ['runs', container(), 'ok', /^Running for 1 min$/, /^$/, /^$/],
  ['crash', container({ state: 'exit', exit_code: 3, message: 'the container exited with code 3', next_retry_at: '2026-01-01T00:01:12Z', restart_count: 1 }),
    'bad', /^Crashed 1 min ago$/, /^The container exited with code 3\.\nberth starts it again in 12 s \(restart 2\)\. Start does that now, Kill cancels it\.$/, /^The program ended by itself/],
  ['crash loop', container({ state: 'exit', exit_code: 3, next_retry_at: '2026-01-01T00:01:12Z', restart_count: 3 }), 'bad', /^Crashes again and again: 3 restarts, the last crash 1 min ago$/, /^Exit code 3\./, /Read its last output/],
  ['crash, never restarted', container({ state: 'exit', exit_code: 1 }), 'bad', /^Crashed 1 min ago, and is not restarted$/, /^Exit code 1\.\nThis follows its restart policy\. Start starts it again\.$/, /Read its last output/],
  ['out of memory', container({ state: 'exit', exit_code: 137, oom_killed: true, message: 'the container ran out of memory', next_retry_at: '2026-01-01T00:01:01Z' }), 'bad', /^Ran out of memory 1 min ago$/, /^Exit code 137: killed by SIGKILL\.\nberth starts it again in 1 s/, /Raise limits.memory/],
  ['command not found', container({ state: 'exit', exit_code: 127 }), 'bad', /Crashed/, /the command was not found/, /Correct startup_command/],
  ['port taken', container({ state: 'exit', message: 'cannot start: port is taken: 25565', next_retry_at: '2026-01-01T00:01:12Z', conditions: [fault('Started', 'PortTaken', 'cannot start: port is taken: 25565')] }),
    'bad', /^Could not start 1 min ago$/, /^Port is taken: 25565\.\nberth starts/, /^Another program or container of this host has the port/],
  ['late', container({ state: 'exit', message: 'did not become running within 2s: no line matched', exit_code: 143, next_retry_at: '2026-01-01T00:01:12Z', conditions: [fault('Started', 'StartTimedOut', 'no line matched')] }),
    'bad', /^Was stopped 1 min ago: it did not become running in time$/, /^No line matched within 2s\.\nExit code 143: killed by SIGTERM\.\nberth starts/, /raise start_timeout/],
  ['image missing', container({ state: 'failed', conditions: [fault('ImageAvailable', 'ImageNotFound', 'no such image')] }), 'bad', /^Installation failed 1 min ago$/, /No such image/, /Correct the name of the image/],
  ['registry away', container({ state: 'installing', message: 'pull x: refused; berth tries again until the registry answers', conditions: [fault('ImageAvailable', 'PullFailed', 'pull x: refused; berth tries again until the registry answers', 'Unknown')] }), 'warn', /^Waiting for the image for 1 min$/, /^Cannot pull x: refused\.\nberth tries again until the registry answers, at least every 5 min\.$/, /reaches the registry/],
  ['install script', container({ state: 'failed', exit_code: 22, conditions: [fault('Installed', 'ExitCode', 'the install script ended with exit code 22')] }), 'bad', /Installation failed/, /exit code 22/, /output of the install script/],
  ['pattern', container({ state: 'starting', message: 'no line for 1m', conditions: [fault('StartPatternNotMatched', 'StartPatternNotMatched', 'no line for 1m; the run is stopped after 2m0s', 'True')], deadline: '2026-01-01T00:02:00Z' }),
    'warn', /^Starting for 1 min$/, /^No line for 1m\.\nberth stops it in 1 min unless a line matches start_pattern\.$/, /Compare start_pattern/],
  ['start', container({ state: 'starting', start_pattern: '^Done' }), 'busy', /^Starting for 1 min$/, /^It is running once a line of its console matches start_pattern\.$/, /^$/],
  ['start without a pattern', container({ state: 'starting' }), 'busy', /^Starting/, /^$/, /^$/],
  ['install hangs', container({ state: 'installing', conditions: [fault('Installed', 'InstallSlow', 'the install script has run since 10:00:00 UTC and is killed after 1h0m0s, counted from its start, or from the last start of berth if that is later', 'Unknown')], deadline: '2026-01-01T00:02:00Z' }), 'warn', /^Installing/, /^The install script has run since 10:00:00 UTC\.\nberth ends the installation in 1 min\.$/, /slow, or waits/],
  ['install', container({ state: 'installing', deadline: '2026-01-01T00:02:00Z' }), 'busy', /^Installing/, /^berth ends the installation in 1 min\.$/, /^$/],
  ['disk full', container({ message: 'the volume is over its limit: make space. A container that runs is stopped after 2m0s',
    conditions: [fault('DiskPressure', 'OverLimit', 'the volume is over its limit: make space. A container that runs is stopped after 2m0s', 'True')] }), 'warn', /^Running for 1 min$/, /^The volume is over its limit\.\nberth stops it in 1 min unless there is space\.$/, /^Delete files/],
  ['disk full, stopped', container({ state: 'exit', exit_code: 143, message: 'the volume is over its limit: the container starts again when there is space', next_retry_at: '2026-01-01T00:00:12Z',
    conditions: [fault('DiskPressure', 'OverLimit', 'the volume is over its limit: make space. A container that runs is stopped after 2m0s', 'True')] }), 'bad', /^Stopped by berth 1 min ago$/, /^The volume is over its limit: the container starts again when there is space\.\nExit code 143/, /^Delete files/],
  ['crash, and no newer image', container({ state: 'exit', exit_code: 3, next_retry_at: '2026-01-01T00:01:12Z', restart_count: 1, conditions: [fault('ImageCurrent', 'PullFailed', 'pull x: refused')] }), 'bad', /^Crashed/, /berth starts it again in 12 s/, /./],
  ['ignores the stop', container({ state: 'stopping', power: 'stopped' }), 'busy', /^Stopping for 1 min$/, /^berth kills it if it has not ended within its stop\.timeout\. Kill does that now\.$/, /^$/],
  ['engine away', container({ conditions: [{ ...fault('EngineReachable', 'EngineUnreachable', 'Docker does not answer'), since: '2026-01-01T00:00:48Z' }] }), 'warn', /^State unknown\. Last observed 12 s ago: running for 48 s$/, /Docker does not answer/, /journalctl/],
  ['engine away, a restart is due', container({ state: 'exit', exit_code: 3, next_retry_at: '2026-01-01T00:00:30Z', conditions: [{ ...fault('EngineReachable', 'EngineUnreachable', 'Docker does not answer'), since: '2026-01-01T00:00:20Z' }] }), 'warn', /Crashed|crashed/, /berth goes on when it can observe the container again\.$/, /journalctl/],
  ['machine away', container({ message: lost, conditions: [
    { ...fault('MachineReachable', 'MachineUnreachable', lost, 'Unknown'), since: '2026-01-01T00:00:48Z' },
    fault('Started', 'MachineUnreachable', 'the container ran when its machine last answered', 'Unknown')] }), 'warn', /^State unknown\. Last observed 12 s ago: running for 48 s$/, /^Machine does not answer: node n1: /, /out-of-service/],
  ['stopped', container({ state: 'exit', power: 'stopped', exit_code: 0, conditions: [fault('Started', 'Stopped', 'stopped on request')] }), 'idle', /^Stopped on request 1 min ago$/, /^Exit code 0\.\nStart starts it\.$/, /^$/],
  ['ready', container({ state: 'ready', power: 'stopped', conditions: [fault('Started', 'NotStarted', 'never')] }), 'idle', /^Installed, not started yet$/, /^Start starts it\.$/, /^$/],
]; // prettier-ignore

for (const [name, c, tone, headline, text, remedy] of cases) {
  test(name, () => {
    const why = explain(c, now);
    assert.equal(why.tone, tone);
    assert.match(why.headline, headline);
    assert.match([...why.details, why.next].filter(Boolean).join('\n'), text);
    assert.match(why.remedies.join('\n'), remedy);
  });
}

test('each thing is stated once', () => {
  for (const [name, c] of cases) {
    const why = explain(c, now);
    const all = [why.headline, ...why.details, why.next, ...why.remedies]
      .filter(Boolean)
      .map((text) => text.toLowerCase().replace(/\.$/, ''));
    for (const [at, text] of all.entries()) {
      assert.ok(!all.some((other, index) => index !== at && other.includes(text)), `${name}: ${text}`);
    }
  }
});

test('the entry of a list is enough', () => {
  assert.equal(explain(container({ conditions: undefined }), now).tone, 'ok');
  assert.equal(explain(container({ state: 'unheard-of' }), now).headline, 'unheard-of for 1 min');
  assert.equal(explain(container({ state: 'installing', message: 'pull x: refused', conditions: undefined }), now).tone, 'warn');
});

test('time stands still while states are not observed', () => {
  const at = Date.parse('2026-01-01T00:00:30Z');
  const why = explain(container(), now, at);
  assert.deepEqual([why.tone, why.unknown, why.headline], ['warn', true, 'State unknown. Last observed 30 s ago: running for 30 s']);
  assert.equal(explain(container(), now + 3_600_000, at).headline, 'State unknown. Last observed 1 h ago: running for 30 s');
  assert.equal(explain(container(), now, null).unknown, false);
}); // prettier-ignore

test('exit codes have names', () => {
  assert.equal(exitText({ exit_code: null }), '');
  assert.equal(exitText({ exit_code: 137, oom_killed: true }), 'exit code 137, out of memory');
  assert.equal(exitText({ exit_code: 139 }), 'exit code 139: killed by SIGSEGV');
  assert.equal(exitText({ exit_code: 126 }), 'exit code 126: the command cannot be executed');
});

test('two conditions are bad news when they are True', () => {
  assert.equal(isFault({ type: 'DiskPressure', status: 'False' }), false);
  assert.equal(isFault({ type: 'DiskPressure', status: 'True' }), true);
  assert.equal(isFault({ type: 'Installed', status: 'False' }), true);
  assert.equal(isFault({ type: 'Installed', status: 'Unknown' }), false);
});

test('a change that waits for the next start is no fault, and its fields are named', () => {
  const pending = (status, reason, message) => container({ conditions: [fault('Pending', reason, message, status)] });
  const waits = explain(pending('True', 'NextStart', 'env, limits, startup_command: changed at the next start'), now);
  assert.deepEqual([waits.tone, waits.details], ['ok', []]);
  assert.equal(
    waits.deferred,
    'Waits for the next start: environment, limits, startup command. The server runs without these changes until then.',
  );
  const applied = explain(pending('False', 'Applied', 'no field waits for a start'), now);
  assert.deepEqual([applied.tone, applied.details, applied.deferred], ['ok', [], '']);
  assert.equal(explain(container({ conditions: undefined }), now).deferred, '');
  for (const status of ['True', 'False']) assert.equal(isFault({ type: 'Pending', status }), false);
});

test('a node that is not ready', () => {
  assert.match(explainNode('engine: does not answer'), /^Docker does not answer\. .*journalctl/);
  assert.match(explainNode('store: the disk is full'), /Free space/);
  assert.equal(explainNode('firewall: slow'), 'Firewall: slow.');
});

test('the first remedy is about the first reason', () => {
  const volume = 'the directory of the volume is missing on the host';
  const conditions = [
    fault('StartPatternNotMatched', 'StartPatternNotMatched', 'no line has matched', 'True'),
    fault('VolumeReady', 'VolumeMissing', volume),
    fault('Started', 'EngineUnreachable', 'the container ran when the engine last answered', 'Unknown'),
    fault('EngineReachable', 'EngineUnreachable', 'the engine does not answer'),
  ];
  const away = explain(container({ state: 'starting', message: volume, conditions }), now);
  assert.match(away.details[0], /^The engine does not answer/);
  assert.match(away.remedies[0], /journalctl -u docker/);
  const back = explain(container({ state: 'starting', message: volume, conditions: conditions.slice(0, 2) }), now);
  assert.match(back.details[0], /^The directory of the volume/);
  assert.match(back.remedies[0], /volumes_path/);
  assert.match(back.remedies[1], /^Compare start_pattern/);
});

test('a state that began later was observed later', () => {
  const conditions = [fault('EngineReachable', 'EngineUnreachable', 'the engine does not answer')];
  const c = container({ state: 'exit', power: 'stopped', state_since: '2026-01-01T00:00:50Z', conditions });
  assert.equal(explain(c, now).headline, 'State unknown. Last observed 10 s ago: stopped on request 0 s ago');
});

test('what failed is urgent, then what something is wrong with', () => {
  const entry = (more) => urgency(container({ conditions: undefined, ...more }));
  assert.equal(entry({ state: 'failed' }), 0);
  assert.equal(entry({ state: 'exit', exit_code: 3 }), 0);
  assert.equal(entry({ message: 'the directory of the volume is missing' }), 1);
  assert.equal(entry({}), 2);
  assert.equal(entry({ state: 'exit', power: 'stopped', exit_code: 143, message: 'exit code 143' }), 2);
});

test('the directory of the volumes is missing', () => assert.match(explainNode('volumes: missing'), /storage\.volumes_path/));
