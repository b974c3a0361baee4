// Errors of a form: beside the field that they are about, in the words of the form.

// FieldError is an error of one field of a form.
export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.name = 'FieldError';
    this.field = field;
  }
}

// FieldErrors are the errors of several fields: {field: message}.
export class FieldErrors extends Error {
  constructor(fields) {
    super(Object.values(fields).join(' '));
    this.name = 'FieldErrors';
    this.fields = fields;
  }
}

// check calls each parser of {field: parser}, and returns {field: value}. It throws the
// errors of all of them.
export function check(parsers) {
  const values = {};
  const errors = {};
  for (const [field, parse] of Object.entries(parsers)) {
    try {
      values[field] = parse();
    } catch (error) {
      errors[field] = sentence(error.message);
    }
  }
  if (Object.keys(errors).length) throw new FieldErrors(errors);
  return values;
}

const key = String.raw`[a-z][a-z_]*(?:\[\d+\])?(?:\.[\w-]+)*`;
const parts = new RegExp(`; (?=${key}: )`);
const part = new RegExp(`^(${key}): (.+)$`, 's');

// phrases are what the daemon writes, and what a form writes instead.
const phrases = [
  [/^must be 0 or at least \d+ bytes \((.+)\)$/, 'must be at least $1; leave it empty for no limit'],
  [/^must be 0 or between (\S+) and (\S+) cores$/, 'must be between $1 and $2; leave it empty for no limit'],
  [/^must be an RE2 expression: /, 'is not a regular expression: '],
  [/^is the same binding twice$/, 'lists the same port twice'],
  [/ \(authorization\.max_ttl\)$/, ''],
];

// sentence returns a text with a capital, which berth has not, and a full stop.
const sentence = (text) =>
  (text.startsWith('berth ') ? text : text[0].toUpperCase() + text.slice(1)) + (/[.!?]$/.test(text) ? '' : '.');

const inWords = (text) => sentence(phrases.reduce((old, [from, to]) => old.replace(from, to), text));

// fieldOf returns the field of a form for a key of the API: that of ports for ports[0].ip.
function fieldOf(name, fields) {
  const plain = name.replaceAll(/\[\d+\]/g, '');
  for (let at = plain; at; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) if (fields[at]) return fields[at];
  return undefined;
}

// errorsOf returns {fields: {field: text}, rest: text} of an error. names are the fields
// of the form by the names of the API, and by the codes of refusals.
export function errorsOf(error, names = {}) {
  if (error instanceof FieldErrors) return { fields: error.fields, rest: '' };
  if (error instanceof FieldError) return { fields: { [error.field]: inWords(error.message) }, rest: '' };
  const fields = {};
  const rest = [];
  if (names[error.code]) return { fields: { [names[error.code]]: sentence(error.message) }, rest: '' };
  for (const text of (error.message || String(error)).split(parts)) {
    const [, name, message] = part.exec(text) ?? [];
    const field = name && fieldOf(name, names);
    if (field) fields[field] = [fields[field], inWords(message)].filter(Boolean).join(' ');
    else rest.push(sentence(text));
  }
  return { fields, rest: rest.join(' ') };
}
