// Copies what the page needs of its npm packages to api/ui/assets/vendor, and writes
// vendor.json there: versions, licences, and the checksums of packages and files.
// `node vendor.mjs --check` changes nothing, and fails if a file would change.
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const packages = process.env.PACKAGES;
const target = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../api/ui/assets/vendor');

// The files of each package, and their names in the page. Imports by the name of a
// package become imports of the file beside: browsers resolve nothing else without an
// import map, which would be an inline script.
const wanted = {
  preact: { 'dist/preact.mjs': 'preact.js', 'hooks/dist/hooks.mjs': 'hooks.js' },
  htm: { 'dist/htm.module.js': 'htm.js' },
  uplot: { 'dist/uPlot.iife.min.js': 'uplot.js', 'dist/uPlot.min.css': 'uplot.css' },
};

const adapt = {
  'hooks.js': (text) => text.replace('from"preact"', 'from"./preact.js"'),
  // uPlot has a minified build only as a classic script, which sets a global variable.
  'uplot.js': (text) => `${text.trimEnd()}\nexport default uPlot;\n`,
};

const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const checked = process.argv.includes('--check');

async function put(name, text) {
  const path = join(target, name);
  if (!checked) return writeFile(path, text);
  if ((await readFile(path, 'utf8')) !== text) throw new Error(`${name} differs from its package: run make ui`);
}

const lock = JSON.parse(await readFile('package-lock.json', 'utf8')).packages;
const list = [];
await mkdir(target, { recursive: true });
for (const [name, files] of Object.entries(wanted)) {
  const folder = join(packages, name);
  const { version, license } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
  const entry = { name, version, license, integrity: lock[`node_modules/${name}`].integrity, files: {} };
  for (const [from, to] of Object.entries(files)) {
    const original = (await readFile(join(folder, from), 'utf8')).replace(/\n?\/\/# sourceMappingURL=.*\n?$/, '\n');
    const text = (adapt[to] ?? ((t) => t))(original);
    await put(to, text);
    entry.files[to] = sha256(text);
  }
  await put(`${name}.LICENSE`, await readFile(join(folder, 'LICENSE'), 'utf8'));
  list.push(entry);
}
await put('vendor.json', `${JSON.stringify(list, null, 2)}\n`);
