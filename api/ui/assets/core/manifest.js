// Writes the specification of a container as a manifest for `berth apply`.

// defaults are the values of fields that a manifest leaves out.
const defaults = {
  startup_command: '',
  start_pattern: '',
  start_timeout: '0s',
  install_image: '',
  install_timeout: '1h0m0s',
  cpuset: '',
  user: '',
  workdir: '',
  hostname: '',
  timezone: '',
  install_mount: '/home/container',
  install_entrypoint: '',
  pull_policy: 'missing',
  tty: true,
  registry_auth: '',
};

// fields are the names of the specification, in the order of a manifest.
const fields = [
  'internal_id', 'image', 'volume_id', 'startup_command', 'start_pattern', 'start_timeout', 'install_image',
  'install_timeout', 'install_mount', 'install_entrypoint', 'pull_policy', 'read_only_root', 'ports', 'limits', 'env',
  'cpuset', 'user', 'workdir', 'hostname', 'timezone', 'tty', 'labels', 'mounts', 'config_files', 'stop',
  'restart_policy', 'registry_auth', 'power',
]; // prettier-ignore

// drop returns a value without the members that are 0, empty, or false as by default.
function drop(value) {
  if (Array.isArray(value)) return value.map(drop);
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).filter(
    ([name, v]) => v !== null && v !== 0 && v !== '' && (v !== false || name === 'oom_kill'),
  );
  return Object.fromEntries(kept.map(([name, v]) => [name, drop(v)]));
}

// verbatim are the fields in which an empty value means something.
const verbatim = new Set(['env', 'labels', 'config_files']);

const isEmpty = (value) =>
  value === null || value === undefined || (typeof value === 'object' && Object.keys(value).length === 0);

// quote returns a YAML string in double quotes, in ASCII: nothing in it can hide.
function quote(text) {
  const escaped = (character) => {
    const code = character.codePointAt(0);
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  };
  return JSON.stringify(text).replace(/[^ -~]/gu, escaped);
}

// scalar returns a value that stands on one line.
function scalar(value) {
  if (typeof value !== 'string') return JSON.stringify(value);
  const simple = /^[A-Za-z_/][A-Za-z0-9_./-]*$/.test(value);
  const word = /^(?:true|false|null|yes|no|on|off|y|n)$/i.test(value);
  return simple && !word ? value : quote(value);
}

// flow returns a value in YAML's flow style.
function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(', ')}]`;
  if (value !== null && typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([name, v]) => `${quoteKey(name)}: ${flow(v)}`)
      .join(', ')}}`;
  }
  return typeof value === 'string' && !/^[A-Za-z][A-Za-z0-9]*$/.test(value) ? quote(value) : scalar(value);
}

const quoteKey = (name) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && scalar(name) === name ? name : quote(name));

// omissions returns what the specification of a container leaves out: {what, note}, for a
// message and for a comment.
export function omissions(c) {
  const list = [
    {
      what: 'the install script',
      note: 'install_script is not included: the API never returns it. berth apply leaves the script of an existing container unchanged; add it here for a new one.',
    },
    {
      what: "the volume's files",
      note: 'The files of the volume are not included. On another node, volume_id has to name a volume of that node, and its pool needs the ports.',
    },
  ];
  if (c.registry_auth) {
    list.splice(1, 0, {
      what: "the registry's credentials",
      note: 'The credentials of registry_auth are not included: they are in docker.registries of the configuration of berth.',
    });
  }
  return list;
}

// comment returns a text as lines of a comment.
const comment = (text) => text.match(/.{1,96}(?:\s|$)/g).map((line) => `# ${line.trim()}`);

// manifest returns the specification of a container as YAML. Its comments name what is
// not in it.
export function manifest(c) {
  const lines = omissions(c).flatMap(({ note }) => comment(note));
  for (const name of fields) {
    const value = verbatim.has(name) ? c[name] : drop(c[name]);
    if (isEmpty(value) || value === (defaults[name] ?? false)) continue;
    if (Array.isArray(value)) lines.push(`${name}:`, ...value.map((one) => `  - ${flow(one)}`));
    else if (typeof value === 'object') {
      lines.push(`${name}:`, ...Object.entries(value).map(([key, v]) => `  ${quoteKey(key)}: ${flow(v)}`));
    } else lines.push(`${name}: ${scalar(value)}`);
  }
  return `${lines.join('\n')}\n`;
}

// command returns a shell command that applies the manifest.
export const command = (c) => `berth apply -f - <<'END'\n${manifest(c)}END\n`;
