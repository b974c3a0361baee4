import assert from 'node:assert/strict';
import { test } from 'node:test';
import { make, volumeOf } from '../../../api/ui/assets/core/create.js';
import { fullest, missing, storages } from '../../../api/ui/assets/core/disks.js';

const disk = (free, total = 100) => ({ free, total });

test('the strip shows the disk of volumes that is the fullest', () => {
  const shown = (volumes, claims) => fullest({ volumes, claims });
  assert.deepEqual(shown(disk(50), {}), { ...disk(50), title: 'The disk of the volumes' });
  assert.equal(shown(disk(50), { fast: disk(60) }).title, 'The disk of the volumes');
  assert.deepEqual(shown(disk(50), { fast: disk(60), acme: disk(40) }), {
    ...disk(40),
    title: 'The fullest disk of volumes: claim acme',
  });
  assert.equal(shown(disk(50), { gone: disk(0, 0) }).title, 'The disk of the volumes');
});

test('directories of volumes that are missing are named', () => {
  assert.deepEqual(missing(undefined), []);
  assert.deepEqual(missing({ data: disk(0, 0), volumes: disk(0, 0), claims: {} }), []);
  assert.deepEqual(missing({ data: disk(1), volumes: disk(1), claims: { fast: disk(1) } }), []);
  const [volumes, claim] = missing({ data: disk(1), volumes: disk(0, 0), claims: { fast: disk(0, 0), acme: disk(1) } });
  assert.equal(volumes, 'volumes: missing');
  assert.match(claim, /claim fast is missing: mount it at claims\/fast/);
});

test('a new volume may be on the default claim or on another one', async () => {
  assert.deepEqual(storages(undefined), ['']);
  assert.deepEqual(storages({ claims: {} }), ['']);
  assert.deepEqual(storages({ claims: { fast: disk(1), acme: disk(1) } }), ['', 'acme', 'fast']);
  assert.deepEqual(volumeOf('', ''), {});
  const sent = [];
  const answer = (route, body) => sent.push([route, body]) && Promise.resolve({ volume_id: 'v' });
  await make({ post: answer, put: answer }, 'mc', volumeOf(7, 'fast'), { ports: [] });
  assert.deepEqual(sent, [
    ['volumes', { name: 'mc', size_limit: 7, storage: 'fast' }],
    ['containers/mc', { ports: [], volume_id: 'v', power: 'running' }],
  ]);
});
