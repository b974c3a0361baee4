import test from 'node:test';
import assert from 'node:assert/strict';
import { counts, createFilter, rowsInView, sort } from '../../../api/ui/assets/core/table.js';

const container = (id, more) => ({
  internal_id: id, image: 'games/survival:1', state: 'running', state_since: '2026-01-01T00:00:00Z', volume_id: 'v-1', message: null,
  ports: [], labels: {}, restart_count: 0, next_retry_at: null, stats: null, ...more,
}); // prettier-ignore
const list = [
  container('lobby', { ports: [{ ip: '127.0.0.1', port: 25565, protocol: 'tcp' }], labels: { customer: '42' }, stats: { cpu_usage: 5, memory_usage: 10 } }),
  container('Survival', { state: 'exit', message: 'Out of memory', next_retry_at: '2026-01-01T00:00:10Z', restart_count: 2 }),
  container('creative', { state: 'failed', image: 'bots/other:2', stats: { cpu_usage: 50, memory_usage: 1 }, state_since: '2026-01-02T00:00:00Z' }),
]; // prettier-ignore
const ids = (found) => found.map((c) => c.internal_id).join(' ');

test('a filter matches every word', () => {
  const keep = createFilter();
  for (const [filter, want] of [
    ['', 'lobby Survival creative'],
    ['survival', 'lobby Survival'],
    ['state:exit', 'Survival'],
    ['id:surv', 'Survival'],
    ['port:25565', 'lobby'],
    ['label:customer=42', 'lobby'],
    ['OUT memory', 'Survival'],
    ['!state:exit !bots', 'lobby'],
    ['127.0.0.1:25565/tcp', 'lobby'],
    ['volume:v-1', 'lobby Survival creative'],
    ['nothing', ''],
    ['unknown:x', ''],
    ['(', ''],
    ['!', ''],
  ]) {
    assert.equal(ids(keep(list, filter)), want, filter);
  }
});

test('each column sorts, and equal containers stay by their ids', () => {
  for (const [column, descending, want] of [
    ['id', false, 'Survival creative lobby'],
    ['id', true, 'lobby creative Survival'],
    ['state', false, 'creative Survival lobby'],
    ['cpu', true, 'creative lobby Survival'],
    ['memory', true, 'lobby creative Survival'],
    ['ports', false, 'lobby Survival creative'],
    ['restarts', true, 'Survival creative lobby'],
    ['retry', false, 'Survival creative lobby'],
    ['age', false, 'creative Survival lobby'],
    ['none', false, 'Survival creative lobby'],
  ]) {
    assert.equal(ids(sort(list, column, descending)), want, `${column} ${descending}`);
  }
  assert.equal(ids(list), 'lobby Survival creative', 'the list itself is not changed');
});

test('what needs a person comes first', () => {
  const all = [
    container('runs'),
    container('ready', { state: 'ready' }),
    container('stopped', { state: 'exit', power: 'stopped' }),
    container('volume', { message: 'the directory of the volume is missing' }),
    container('crashed', { state: 'exit', power: 'running', exit_code: 3 }),
    container('failed', { state: 'failed' }),
    container('pull', { state: 'installing', message: 'pull x: refused' }),
  ];
  assert.equal(ids(sort(all, 'state', false)), 'failed crashed pull volume stopped runs ready');
});

test('only rows in view are drawn', () => {
  assert.deepEqual(rowsInView(1000, { top: 0, height: 400, row: 40 }), { first: 0, last: 18 });
  assert.deepEqual(rowsInView(1000, { top: 4000, height: 400, row: 40 }), { first: 92, last: 118 });
  assert.deepEqual(rowsInView(3, { top: 4000, height: 400, row: 40 }), { first: 3, last: 3 });
  assert.deepEqual(rowsInView(0, { top: 0, height: 400, row: 40 }), { first: 0, last: 0 });
});

test('the states are counted', () => assert.deepEqual(counts(list), { running: 1, exit: 1, failed: 1 }));
