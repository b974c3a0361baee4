import test from 'node:test';
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.PACKAGES}/`);
const espree = require('espree');
const assets = new URL('../../../api/ui/assets/', import.meta.url);

// The daemon serves empty lines in place of lines that begin with two slashes: each has to
// be a comment, and no part of a text.
test('lines that begin with slashes are comments', () => {
  const files = ['.', 'core', 'views'].flatMap((folder) =>
    readdirSync(new URL(folder, assets)).map((name) => `${folder}/${name}`).filter((name) => name.endsWith('.js')),
  ); // prettier-ignore
  assert.ok(files.length > 40);
  for (const name of files) {
    const text = readFileSync(new URL(name, assets), 'utf8');
    const { comments } = espree.parse(text, { ecmaVersion: 'latest', sourceType: 'module', comment: true, loc: true });
    const known = new Set(comments.filter(({ type }) => type === 'Line').map(({ loc }) => loc.start.line));
    text.split('\n').forEach((line, i) => assert.ok(!/^\s*\/\//.test(line) || known.has(i + 1), `${name}:${i + 1}`));
  }
});
