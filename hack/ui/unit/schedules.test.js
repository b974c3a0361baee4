import test from 'node:test';
import assert from 'node:assert/strict';
import { brief, byStep, newRow, rowOf, scheduleOf, stepOf, valuesOf } from '../../../api/ui/assets/core/schedules.js';
import { errorsOf } from '../../../api/ui/assets/core/form.js';

const steps = [
  { command: ' say bye ' },
  { wait: '1m0s', continue: true },
  { backup: { keep: 7, target: 's3', ignore: ['*.log'] } },
  { power: 'restart' },
  { wait_for: 'running', timeout: '5m0s' },
];

test('each kind of step survives the form, with what the form does not have', () => {
  assert.deepEqual(steps.map(rowOf).map(stepOf), steps);
  assert.deepEqual(steps.map(brief), [' say bye ', 'wait 1m0s', 'backup, 7 kept', 'restart', 'wait for running']);
  assert.deepEqual(stepOf({ ...newRow('backup'), value: '3' }), { backup: { keep: 3 } });
  assert.deepEqual(stepOf(newRow('wait_for')), { wait_for: 'running', timeout: '5m' });
});

test('a schedule survives the form; a new one leaves open whether it needs a running container', () => {
  const s = { name: 'n', cron: '@exit', timezone: 'UTC', if: 'always', missed: 'once', enabled: false, steps };
  assert.deepEqual(scheduleOf(s, valuesOf(s), []), s);
  const row = { ...newRow('command'), value: 'hi' };
  const made = scheduleOf(undefined, { ...valuesOf(), name: ' new ', steps: [row] }, ['n']);
  assert.deepEqual(JSON.parse(JSON.stringify(made)), {
    name: 'new', cron: '0 4 * * *', timezone: 'UTC', missed: 'skip', steps: [{ command: 'hi' }],
  }); // prettier-ignore
});

test('what berth could not name is refused', () => {
  const fails = (values, names, field, text) =>
    assert.throws(() => scheduleOf(undefined, { ...valuesOf(), ...values }, names), (e) => e.field === field && e.message === text); // prettier-ignore
  fails({}, [], 'name', 'is required');
  fails({ name: 'n' }, ['n'], 'name', 'is the name of another schedule');
  fails({ name: 'n' }, [], 'steps', 'step 1 is empty');
});

test('errors name a step by its number', () => {
  const text =
    'cron: must be five fields; steps[1].wait: must be between 1s and 1h; steps[2]: must have exactly one; steps: must have 1 to 16 steps';
  assert.deepEqual(errorsOf(byStep(new Error(text)), { cron: 'cron', steps: 'steps' }), {
    fields: {
      cron: 'Must be five fields.',
      steps: 'Step 2, wait, must be between 1s and 1h. Step 3 must have exactly one. Must have 1 to 16 steps.',
    },
    rest: '',
  });
});
