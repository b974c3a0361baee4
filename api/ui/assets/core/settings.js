// The settings of a container as texts of a form, and back.
import { check } from './form.js';
import { fieldWords } from './format.js';
import { parseCores, parseSize } from './input.js';

const sizes = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

// sizeText returns a number of bytes as parseSize reads it, without rounding.
export function sizeText(bytes) {
  let unit = 0;
  let n = bytes ?? 0;
  while (n && n % 1024 === 0 && unit < sizes.length - 1) {
    n /= 1024;
    unit += 1;
  }
  return n ? `${n} ${sizes[unit]}` : '';
}

// envText returns variables one per line. A value of several lines is in quotes.
export const envText = (env) =>
  Object.keys(env ?? {})
    .toSorted()
    .map((name) => `${name}=${/^"|[\r\n]/.test(env[name]) ? JSON.stringify(env[name]) : env[name]}`)
    .join('\n');

// parseEnv reads the text of envText.
export function parseEnv(text) {
  const env = {};
  for (const line of text.split('\n').filter((one) => one.trim())) {
    const at = line.indexOf('=');
    if (at < 1) throw new Error(`"${line}" is not NAME=value`);
    const value = line.slice(at + 1);
    try {
      env[line.slice(0, at).trim()] = value.startsWith('"') ? JSON.parse(value) : value;
    } catch {
      throw new Error(`the value of ${line.slice(0, at)} begins with a quote and is not JSON: write "two\\nlines"`);
    }
  }
  return env;
}

// valuesOf returns the form of a specification.
export function valuesOf(spec) {
  const { limits = {}, stop = {} } = spec;
  return {
    image: spec.image,
    command: spec.startup_command ?? '',
    env: envText(spec.env),
    memory: sizeText(limits.memory),
    cpu: limits.cpu ? String(limits.cpu) : '',
    disk: sizeText(limits.disk),
    stopCommand: stop.command ?? '',
    stopSignal: stop.signal ?? '',
    stopTimeout: stop.timeout ?? '',
  };
}

// specOf returns a specification with the values of the form.
export function specOf(spec, values) {
  const { env, memory, cpu, disk } = check({
    env: () => parseEnv(values.env),
    memory: () => parseSize(values.memory),
    cpu: () => parseCores(values.cpu),
    disk: () => parseSize(values.disk),
  });
  const stop = { command: values.stopCommand, signal: values.stopSignal.trim(), timeout: values.stopTimeout.trim() };
  return {
    ...spec,
    image: values.image.trim(),
    startup_command: values.command,
    env,
    limits: { ...spec.limits, memory, cpu, disk },
    stop: Object.fromEntries(Object.entries(stop).filter(([, value]) => value)),
  };
}

const effects = {
  update: 'At once, or at the next start if it is about the start',
  recreate: 'Needs a new container: a running one is stopped and started again',
  start: 'The container is started',
  stop: 'The container is stopped',
};

// effect returns what an action of a dry run means.
export const effect = ({ action, reason }) => `${effects[action] ?? action}: ${reason}.`;

const recreates = ({ actions }) => actions.some(({ action }) => action === 'recreate');

// deferral returns what a change at the next start means, of the dry runs of both; it is
// empty if that leaves no run alone which a change now restarts.
export function deferral(now, later) {
  if (!recreates(now) || !later.changed || recreates(later)) return '';
  const fields = later.actions.map(({ reason }) => / changed; (.+) at the next start$/.exec(reason)?.[1]).find(Boolean);
  const next = fields ? `its next start changes ${fieldWords(fields.split(', '))}` : 'what waits goes on waiting';
  return `Applied at the next start, a running one goes on: ${next}, and the rest applies at once.`;
}
