// Explains the state of a container in sentences: what happens, why, what comes next,
// and what a person can do.
import { duration, until } from './format.js';

// remedies are what a person can do, by the reason of a condition.
const remedies = {
  ImageNotFound: 'Correct the name of the image, or give the registry its credentials (docker.registries). Then reinstall.',
  ImageDenied: 'The registry refuses the credentials: correct docker.registries or registry_auth. Then reinstall.',
  ImageInvalid: 'The image is damaged or for another architecture. Use another tag, then reinstall.',
  PullFailed: 'berth tries again. Check that this host reaches the registry.',
  ExitCode: 'Read the output of the install script in the console. Correct the script, then reinstall.',
  TimedOut: 'The installation took longer than install_timeout. Raise it, or correct the script, then reinstall.',
  OutOfMemory: 'Raise limits.memory, or make the program use less.',
  PortTaken: 'Another program of this host has the port. Stop that program, or bind another port.',
  BadCommand: 'The startup command does not exist in the image or cannot be executed. Correct startup_command.',
  MountRefused: 'The directory of a mount is missing or is not allowed (docker.allowed_mounts).',
  VolumeMissing: "The volume's directory is missing on the host. Restore it, or use another volume.",
  InvalidSpec: 'The engine refuses the specification. Correct it with berth apply.',
  StartTimedOut: 'No line of the console matched start_pattern within start_timeout. Correct the pattern, or raise the time.',
  StartPatternNotMatched: 'No line of the console has matched start_pattern yet. Compare the pattern with the console.',
  OverLimit: 'Delete files of the volume, or raise limits.disk. Then start the container.',
  RootOverLimit: 'The program writes too much outside /home/container. Delete it there, or raise docker.root_limit.',
  DiskPressure: 'Delete files of the volume, or raise limits.disk.',
  EngineUnreachable: 'Docker does not answer. See docker info and journalctl -u docker on the host.',
  Refused: 'This host cannot apply a limit. The container runs without it.',
  InstallSlow: 'The install script is slow or waits for something. Its output is in the console.',
  HostRestarted: 'The host was restarted. berth starts the container again if it should run.',
};

const states = {
  installing: ['busy', 'Is being installed'],
  ready: ['idle', 'Installed, and not started yet'],
  starting: ['busy', 'Is starting'],
  running: ['ok', 'Runs'],
  stopping: ['busy', 'Is stopping'],
  exit: ['idle', 'Has stopped'],
  failed: ['bad', 'The installation failed'],
  deleting: ['busy', 'Is being deleted'],
};

// signals name the exit codes above 128 that operators meet.
const signals = { 129: 'SIGHUP', 130: 'SIGINT', 134: 'SIGABRT', 137: 'SIGKILL', 139: 'SIGSEGV', 143: 'SIGTERM' };

// exitText explains an exit code.
export function exitText(c) {
  if (c.exit_code === null || c.exit_code === undefined) return '';
  if (c.oom_killed) return `exit code ${c.exit_code}, out of memory`;
  if (c.exit_code === 126) return 'exit code 126: the command cannot be executed';
  if (c.exit_code === 127) return 'exit code 127: the command was not found';
  const signal = signals[c.exit_code];
  return signal ? `exit code ${c.exit_code}: killed by ${signal}` : `exit code ${c.exit_code}`;
}

// Conditions that are good news when they are False.
const inverted = new Set(['DiskPressure', 'StartPatternNotMatched']);

// isFault reports whether a condition is bad news.
export function isFault(condition) {
  if (condition.status === 'Unknown') return false;
  return condition.status === (inverted.has(condition.type) ? 'True' : 'False');
}

// Reasons of a condition that is Unknown because something does not answer.
const unanswered = new Set(['PullFailed', 'EngineUnreachable']);

// Reasons of a False condition that are the normal course of things.
const normal = new Set(['Stopped', 'NotStarted', 'Starting', 'Installing', 'Pulling', 'Deleting', 'Stopping', 'Killed']);

function headline(c) {
  if (c.state === 'exit') {
    if (c.power === 'running' && c.next_retry_at) return ['bad', 'Has crashed'];
    if (c.power === 'running' && c.exit_code) return ['bad', 'Has crashed, and is not restarted'];
    if (c.power === 'running') return ['idle', 'Has exited'];
  }
  return states[c.state] ?? ['idle', c.state];
}

// sentence returns a message with a capital and a full stop.
const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?:;]$/.test(text) ? '' : '.');

// next returns what berth does next, in one sentence, or nothing.
function next(c, now) {
  if (c.next_retry_at && c.power === 'running') {
    return `Starts again ${until(c.next_retry_at, now)} (restart ${c.restart_count + 1}). Start does it at once, kill cancels it.`;
  }
  if (c.deadline) return `${c.state === 'installing' ? 'The installation' : 'The start'} is ended ${until(c.deadline, now)}.`;
  if (c.power === 'running' && c.state === 'ready') return 'It is started next.';
  if (c.power === 'running' && c.state === 'exit') return 'Its restart policy does not start it again. Start does.';
  return '';
}

// explain returns {tone, headline, details, next, remedies} of a container. The entry of
// a list is enough; a container with its conditions gives more.
export function explain(c, now) {
  let [tone, text] = headline(c);
  const details = [];
  const since = (now - Date.parse(c.state_since)) / 1000;
  if (Number.isFinite(since)) text += c.state === 'running' ? ` for ${duration(since)}` : `, since ${duration(since)}`;
  const faults = (c.conditions ?? []).filter(
    (condition) => unanswered.has(condition.reason) || (isFault(condition) && !normal.has(condition.reason)),
  );
  const known = new Set();
  for (const text of [c.message, ...faults.map((condition) => condition.message)]) {
    if (text && !known.has(text)) details.push(sentence(text));
    known.add(text);
  }
  const code = c.state === 'exit' || c.state === 'failed' ? exitText(c) : '';
  if (code && !details.some((text) => text.includes(`code ${c.exit_code}`))) details.push(sentence(code));
  if (tone === 'ok' && faults.length > 0) tone = 'warn';
  const help = new Set(faults.map((condition) => remedies[condition.reason]).filter(Boolean));
  if (c.oom_killed && c.state === 'exit') help.add(remedies.OutOfMemory);
  if (c.state === 'exit' && (c.exit_code === 126 || c.exit_code === 127)) help.add(remedies.BadCommand);
  return { tone, headline: text, details, next: next(c, now), remedies: [...help] };
}
