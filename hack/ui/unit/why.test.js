import test from 'node:test';
import assert from 'node:assert/strict';
import { explain, exitText, isFault } from '../../../api/ui/assets/core/why.js';

const now = Date.parse('2026-01-01T00:01:00Z');
const container = (more) => ({
  state: 'running', power: 'running', state_since: '2026-01-01T00:00:00Z', message: null, exit_code: null, oom_killed: false,
  next_retry_at: null, deadline: null, restart_count: 0, conditions: [], ...more,
}); // prettier-ignore
const fault = (type, reason, message, status = 'False') => ({ type, status, reason, message, since: '2026-01-01T00:00:00Z' });

// The usual faults: what a person reads, and what is done about it.
const cases = [
  ['runs', container(), 'ok', /^Runs for 1 min$/, /^$/, /^$/],
  ['crash', container({ state: 'exit', exit_code: 3, message: 'the container exited with code 3', next_retry_at: '2026-01-01T00:01:12Z', restart_count: 3 }),
    'bad', /^Has crashed, since 1 min$/, /^The container exited with code 3\.\nStarts again in 12 s \(restart 4\)/, /^$/],
  ['crash, never restarted', container({ state: 'exit', exit_code: 1 }), 'bad', /not restarted/, /Exit code 1\.\nIts restart policy does not/, /^$/],
  ['out of memory', container({ state: 'exit', exit_code: 137, oom_killed: true }), 'bad', /crashed/, /out of memory/, /Raise limits.memory/],
  ['command not found', container({ state: 'exit', exit_code: 127 }), 'bad', /crashed/, /the command was not found/, /Correct startup_command/],
  ['port taken', container({ state: 'exit', conditions: [fault('Started', 'PortTaken', 'port is taken: 25565')] }), 'idle', /exited/, /Port is taken: 25565\./, /Another program of this host has the port/],
  ['image missing', container({ state: 'failed', conditions: [fault('ImageAvailable', 'ImageNotFound', 'no such image')] }), 'bad', /installation failed/, /No such image/, /Correct the name of the image/],
  ['registry away', container({ state: 'installing', message: 'pull x: tried again', conditions: [fault('ImageAvailable', 'PullFailed', 'pull x: tried again', 'Unknown')] }), 'busy', /Is being installed/, /^Pull x: tried again\.$/, /reaches the registry/],
  ['install script', container({ state: 'failed', exit_code: 22, conditions: [fault('Installed', 'ExitCode', 'the install script ended with exit code 22')] }), 'bad', /installation failed/, /exit code 22/, /output of the install script/],
  ['pattern', container({ state: 'starting', conditions: [fault('StartPatternNotMatched', 'StartPatternNotMatched', 'last lines: x', 'True')], deadline: '2026-01-01T00:02:00Z' }), 'busy', /Is starting/, /The start is ended in 1 min/, /Compare the pattern/],
  ['disk full', container({ state: 'exit', power: 'stopped', conditions: [fault('DiskPressure', 'OverLimit', 'over', 'True')] }), 'idle', /Has stopped/, /Over\./, /Delete files/],
  ['engine away', container({ conditions: [fault('EngineReachable', 'EngineUnreachable', 'Docker does not answer')] }), 'warn', /^Runs/, /Docker does not answer/, /journalctl/],
  ['stopped', container({ state: 'exit', power: 'stopped', exit_code: 0, conditions: [fault('Started', 'Stopped', 'stopped on request')] }), 'idle', /Has stopped/, /^Exit code 0\.$/, /^$/],
  ['ready', container({ state: 'ready', power: 'stopped', conditions: [fault('Started', 'NotStarted', 'never')] }), 'idle', /Installed, and not started/, /^$/, /^$/],
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

test('the entry of a list is enough', () => {
  assert.equal(explain(container({ conditions: undefined }), now).tone, 'ok');
  assert.equal(explain(container({ state: 'unheard-of' }), now).headline, 'unheard-of, since 1 min');
});

test('exit codes have names', () => {
  assert.equal(exitText({ exit_code: null }), '');
  assert.equal(exitText({ exit_code: 139 }), 'exit code 139: killed by SIGSEGV');
  assert.equal(exitText({ exit_code: 126 }), 'exit code 126: the command cannot be executed');
});

test('two conditions are bad news when they are True', () => {
  assert.equal(isFault({ type: 'DiskPressure', status: 'False' }), false);
  assert.equal(isFault({ type: 'DiskPressure', status: 'True' }), true);
  assert.equal(isFault({ type: 'Installed', status: 'False' }), true);
  assert.equal(isFault({ type: 'Installed', status: 'Unknown' }), false);
});
