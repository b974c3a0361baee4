// Schedules of a container as texts of a form, and back.
import { FieldError } from './form.js';

// kinds are the kinds of steps, by the names of the API.
export const kinds = {
  command: { title: 'Command', help: 'A line for the console' },
  wait: { title: 'Wait', help: 'Such as 60s' },
  backup: { title: 'Backup', help: 'How many are kept' },
  power: { title: 'Power', options: ['restart', 'stop', 'start', 'kill'] },
  wait_for: { title: 'Wait for', options: ['running', 'exit', 'ready', 'failed'] },
};

// newRow returns a step of a form whose value is not set.
export const newRow = (kind) => ({
  kind,
  value: kinds[kind].options?.[0] ?? '',
  timeout: kind === 'wait_for' ? '5m' : '',
  goesOn: false,
});

// rowOf returns a step as a form has it.
export function rowOf(step) {
  const kind = Object.keys(kinds).find((name) => step[name]);
  const value = kind === 'backup' ? String(step.backup.keep) : step[kind];
  return { kind, value, timeout: step.timeout ?? '', goesOn: Boolean(step.continue), backup: step.backup };
}

// stepOf returns the step of a form. What the form does not have of a backup stays as it is.
export function stepOf({ kind, value, timeout, goesOn, backup }) {
  const step = { [kind]: kind === 'command' ? value : value.trim() };
  if (kind === 'backup') step.backup = { ...backup, keep: Number(value) };
  if (kind === 'wait_for') step.timeout = timeout.trim();
  if (goesOn) step.continue = true;
  return step;
}

// brief returns a step in a few words.
export function brief(step) {
  const { kind, value } = rowOf(step);
  return { command: value, wait: `wait ${value}`, backup: `backup, ${value} kept`, power: value, wait_for: `wait for ${value}` }[kind];
} // prettier-ignore

// valuesOf returns the form of a schedule; undefined is that of a new one.
export const valuesOf = (schedule) => ({
  name: schedule?.name ?? '',
  cron: schedule?.cron ?? '0 4 * * *',
  timezone: schedule?.timezone ?? 'UTC',
  if: schedule?.if ?? '',
  missed: schedule?.missed ?? 'skip',
  steps: schedule?.steps.map(rowOf) ?? [newRow('command')],
});

// scheduleOf returns a schedule with the values of the form. names are those of the others.
export function scheduleOf(schedule, values, names) {
  const name = values.name.trim();
  if (!name) throw new FieldError('name', 'is required');
  if (names.includes(name)) throw new FieldError('name', 'is the name of another schedule');
  const empty = values.steps.findIndex(({ value }) => !value.trim());
  if (empty >= 0) throw new FieldError('steps', `step ${empty + 1} is empty`);
  return {
    ...schedule,
    name,
    cron: values.cron.trim(),
    timezone: values.timezone.trim(),
    if: values.if || undefined, // what fits the times
    missed: values.missed,
    steps: values.steps.map(stepOf),
  };
}

// byStep returns an error of the API that names steps by their numbers from 1.
export function byStep(error) {
  error.message = error.message.replaceAll(/\bsteps\[(\d+)\](?:\.([\w.[\]]+))?: /g, (_, n, field) => `steps: step ${Number(n) + 1}${field ? `, ${field},` : ''} `);
  return error;
} // prettier-ignore
