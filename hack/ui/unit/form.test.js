import test from 'node:test';
import assert from 'node:assert/strict';
import { check, errorsOf, FieldError, FieldErrors } from '../../../api/ui/assets/core/form.js';
import { isEngineAway, readiness } from '../../../api/ui/assets/core/ready.js';

const names = {
  image: 'image',
  'limits.memory': 'memory',
  'limits.cpu': 'cpu',
  ports: 'ports',
  port_bound: 'ports',
  start_pattern: 'pattern',
};
const of = (text, code) => errorsOf(Object.assign(new Error(text), { code }), names);

test('errors of the API are beside the fields, without the names of the API', () => {
  assert.deepEqual(of('limits.memory: must be 0 or at least 6291456 bytes (6 MiB); image: is required'), {
    fields: { memory: 'Must be at least 6 MiB; leave it empty for no limit.', image: 'Is required.' },
    rest: '',
  });
  assert.deepEqual(of('ports[1].ip: must be an IP address; ports[2]: is the same binding twice').fields, {
    ports: 'Must be an IP address. Lists the same port twice.',
  });
  assert.equal(of('limits.cpu: must be 0 or between 0.01 and 4096 cores').fields.cpu, 'Must be between 0.01 and 4096; leave it empty for no limit.');
  assert.equal(of('start_pattern: must be an RE2 expression: missing closing ): `(`').fields.pattern, 'Is not a regular expression: missing closing ): `(`.');
}); // prettier-ignore

test('a refusal with a code has a field; others are shown as they are', () => {
  assert.deepEqual(of('Port is already bound by container a', 'port_bound'), { fields: { ports: 'Port is already bound by container a.' }, rest: '' });
  assert.deepEqual(of('berth does not answer'), { fields: {}, rest: 'berth does not answer.' });
  assert.deepEqual(of('hostname: must be short; image: is required'), { fields: { image: 'Is required.' }, rest: 'Hostname: must be short.' });
  assert.deepEqual(errorsOf(new FieldError('ports', '1: taken')).fields, { ports: '1: taken.' });
}); // prettier-ignore

test('all fields are checked at once', () => {
  const fail = (text) => () => {
    throw new Error(text);
  };
  assert.deepEqual(check({ a: () => 1 }), { a: 1 });
  assert.throws(
    () => check({ a: fail('no a'), b: () => 2, c: fail('no c') }),
    (error) => error instanceof FieldErrors && errorsOf(error).fields.a === 'No a.' && errorsOf(error).fields.c === 'No c.',
  );
});

test('readiness', async () => {
  const answers = (error) => ({ get: async () => (error ? Promise.reject(error) : {}) });
  assert.deepEqual(await readiness(answers()), { ready: true, reasons: [] });
  const away = await readiness(
    answers(Object.assign(new Error('Not ready: engine: does not answer; store: full'), { status: 503 })),
  );
  assert.deepEqual(away.reasons, ['engine: does not answer', 'store: full']);
  assert.ok(isEngineAway(away) && !isEngineAway({ reasons: ['store: full'] }));
  await assert.rejects(readiness(answers(new Error('no connection'))));
});
