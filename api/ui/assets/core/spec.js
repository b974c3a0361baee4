// Copies the specification of a container as a command that applies it.

// omissions returns what the specification of a container leaves out: {what, note}, for a
// message and for a comment.
export function omissions(spec) {
  const list = [
    {
      what: 'the install script',
      note: 'install_script is not included: the API never returns it. berth apply leaves the script\n# of an existing container unchanged; add it here for a new one.',
    },
    {
      what: "the volume's files",
      note: 'The files of the volume are not included. On another node, volume_id has to name a volume of\n# that node, and its pool needs the ports.',
    },
  ];
  if (spec.registry_auth) {
    list.splice(1, 0, {
      what: "the registry's credentials",
      note: 'The credentials of registry_auth are not included: they are in docker.registries of the\n# configuration of berth.',
    });
  }
  return list;
}

// command returns a shell command that applies a specification. Its JSON is YAML in ASCII:
// nothing in it can hide.
export function command(spec) {
  const escaped = (character) => {
    const code = character.codePointAt(0);
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  };
  const text = JSON.stringify(spec, null, 2).replace(/[^ -~\n]/gu, escaped);
  const notes = omissions(spec).map(({ note }) => `# ${note}\n`);
  return `berth apply -f - <<'END'\n${notes.join('')}${text}\nEND\n`;
}
