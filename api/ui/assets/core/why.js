// Explains the state of a container in sentences: what happens, why, what comes next,
// and what a person can do.
import { duration, fieldWords, until } from './format.js';

const engineHelp =
  "See systemctl status docker and journalctl -u docker on the host. If Docker runs, check docker.host in berth's configuration.";

// remedies are what a person can do, by the reason of a condition.
const remedies = {
  ImageNotFound:
    'Correct the name of the image with berth apply, or give the registry its credentials (docker.registries). Then reinstall.',
  ImageDenied: 'The registry refuses the credentials: correct docker.registries or registry_auth. Then reinstall.',
  ImageForOtherMachine: 'The image has no form for the architecture of this machine. Use another image or tag, then reinstall.',
  ImageInvalid: 'The engine refuses the reference of the image. Correct it, then reinstall.',
  PullFailed: 'Check that this host reaches the registry: its name, DNS and firewall.',
  ExitCode: 'Read the output of the install script: above, or in the console. Correct the script, then reinstall.',
  TimedOut: 'The installation took longer than install_timeout. Raise it, or correct the script, then reinstall.',
  OutOfMemory: 'Raise limits.memory with berth apply, or make the program use less memory.',
  PortTaken: 'Another program or container of this host has the port. Stop it, or bind another port.',
  NoRoom: 'No machine has the memory or the processors that limits ask for. Make room, or lower the limits.',
  HostFault: 'The host cannot start containers: its operator has to repair it. berth doctor on the host names the fault.',
  BadCommand: 'The startup command does not exist in the image or cannot be executed. Correct startup_command.',
  MountRefused: 'The directory of a mount is missing or is not allowed (docker.allowed_mounts).',
  VolumeMissing:
    "The volume's directory was removed from the host, or its disk is not mounted. Stop the container, then put the directory back in storage.volumes_path (volumes in storage.data_path), or restore a backup.",
  InvalidSpec: 'The engine refuses the specification. Correct it with berth apply.',
  StartTimedOut: 'Compare start_pattern with the output. Correct the pattern, or raise start_timeout if the program is slow.',
  StartPatternNotMatched: 'Compare start_pattern with the output. If the program is up, correct the pattern with berth apply.',
  OverLimit: "Delete files of the volume, or raise the limit: limits.disk of the container or the volume's own.",
  RootOverLimit: 'The program writes too much outside /home/container. Make it write less there, or raise docker.root_limit.',
  EngineUnreachable: engineHelp,
  MachineUnreachable:
    'Bring the machine back: the container goes on. If it is off, give its node the taint node.kubernetes.io/out-of-service.',
  Refused: 'This host cannot apply a limit. The container runs without it.',
  InstallSlow:
    'The install script is slow, or waits for something. Read its output: above, or in the console. Cancel installation ends the script; Reinstall runs it again.',
  MachineLost: 'The machine was lost, or had to be left. berth starts the container again if it should run.',
  HostRestarted: 'The host was restarted. berth starts the container again if it should run.',
};

// States as [tone, words]; {} is the time since the state began.
const states = {
  installing: ['busy', 'Installing for {}'],
  ready: ['idle', 'Installed, not started yet'],
  starting: ['busy', 'Starting for {}'],
  running: ['ok', 'Running for {}'],
  stopping: ['busy', 'Stopping for {}'],
  exit: ['idle', 'Stopped on request {} ago'],
  failed: ['bad', 'Installation failed {} ago'],
  deleting: ['busy', 'Deleting for {}'],
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

// isFault reports whether a condition is bad news. Pending never is.
export function isFault(condition) {
  if (condition.status === 'Unknown' || condition.type === 'Pending') return false;
  return condition.status === (inverted.has(condition.type) ? 'True' : 'False');
}

// Reasons of a condition that is Unknown because something does not answer, or hangs.
const unanswered = new Set(['PullFailed', 'EngineUnreachable', 'MachineUnreachable', 'InstallSlow']);

// isAway reports whether a reason means that the state is the last observed one.
const isAway = (reason) => reason === 'EngineUnreachable' || reason === 'MachineUnreachable';

// Reasons of a False condition that are the normal course of things.
const normal = new Set(['Stopped', 'NotStarted', 'Starting', 'Installing', 'Pulling', 'Deleting', 'Stopping', 'Killed']);

// urgency is 0 for a container that failed, 1 for one that something is wrong with, else 2.
// The entry of a list is enough.
export function urgency(c) {
  const [tone] = headline(c);
  if (tone === 'bad') return 0;
  return c.message && c.state !== 'exit' ? 1 : 2;
}

// isOverLimit reports whether a message is about a volume that is over its limit.
export const isOverLimit = (message) => /\bover (its|the) limit\b/.test(message ?? '');

function headline(c) {
  if (c.state === 'installing' && c.message?.startsWith('pull ')) return ['busy', 'Waiting for the image for {}'];
  if (c.state === 'exit' && c.message?.startsWith('did not exit within'))
    return ['warn', 'Killed {} ago: it did not exit in time'];
  if (c.state !== 'exit' || c.power !== 'running') return states[c.state] ?? ['idle', `${c.state} for {}`];
  const message = c.message ?? '';
  if (isOverLimit(message)) return ['bad', 'Stopped by berth {} ago'];
  if (message.startsWith('cannot start: ')) return ['bad', 'Could not start {} ago'];
  if (message.startsWith('did not become running')) return ['bad', 'Was stopped {} ago: it did not become running in time'];
  if (c.oom_killed) return ['bad', 'Ran out of memory {} ago'];
  if (!c.next_retry_at) return c.exit_code ? ['bad', 'Crashed {} ago, and is not restarted'] : ['idle', 'Exited {} ago'];
  if (c.restart_count > 1) return ['bad', `Crashes again and again: ${c.restart_count} restarts, the last crash {} ago`];
  return ['bad', 'Crashed {} ago'];
}

// plain returns a message without what the headline and the next step state already.
const plain = (message) =>
  message
    .replace(/^cannot start: /, '')
    .replace(/^pull (\S+): /, 'cannot pull $1: ')
    .replace(/^did not become running within (\S+): (.*)$/s, '$2 within $1')
    .replace(/^the container ran out of memory$/, '')
    .replace(/ and is killed [^;]+$/, '')
    .replace(/; the run is stopped after [^;]+/, '')
    .replace(/; berth tries again until the registry answers$/, '')
    .replace(/: make space\b.*$/, '')
    .replace(/: ([^:]+): \1$/, ': $1');

// sentence returns a message with a capital and a full stop.
const sentence = (text) => text[0].toUpperCase() + text.slice(1) + (/[.!?:;]$/.test(text) ? '' : '.');

// crashed is what a person can do about a program that exits by itself.
const crashed = 'The program ended by itself. Read its last output, then correct its files, its environment or startup_command.';

// longest returns the sentences that are not a part of another one.
const longest = (list) => {
  const part = (one, other) => other !== one && other.toLowerCase().includes(one.slice(0, -1).toLowerCase());
  return list.filter((one) => !list.some((other) => part(one, other)));
};

// waits returns what an installation or a start waits for, and how long.
function waits(c, now) {
  if (!c.deadline) return c.start_pattern && !c.message ? 'It is running once a line of its console matches start_pattern.' : '';
  if (c.state === 'installing') return `berth ends the installation ${until(c.deadline, now)}.`;
  return `berth stops it ${until(c.deadline, now)} unless a line matches start_pattern.`;
}

// grace is how long (ms) a container may run whose volume is over its limit.
const grace = 120_000;

// pending returns what berth does about a limit, a missing image or a stop; undefined if
// there is none.
function pending(c, now) {
  const full = c.conditions?.find(({ type, status }) => type === 'DiskPressure' && status === 'True');
  if (full) {
    const graced = c.state === 'running' && full.reason === 'OverLimit';
    return graced ? `berth stops it ${until(Date.parse(full.since) + grace, now)} unless there is space.` : '';
  }
  if (c.conditions?.some(({ type, reason }) => type === 'ImageAvailable' && reason === 'PullFailed'))
    return 'berth tries again until the registry answers, at least every 5 min.';
  if (c.state === 'stopping') return 'berth kills it if it has not ended within its stop.timeout. Kill does that now.';
  return undefined;
}

// next returns what berth does next, in one sentence, or nothing.
function next(c, now, observed) {
  if (observed !== undefined)
    return c.next_retry_at || c.deadline ? 'berth goes on when it can observe the container again.' : '';
  const text = pending(c, now);
  if (text !== undefined) return text;
  if (c.next_retry_at && c.power === 'running') {
    const when = until(c.next_retry_at, now);
    const verbs = when === 'now' ? '' : ' Start does that now, Kill cancels it.';
    return `berth starts it again ${when} (restart ${c.restart_count + 1}).${verbs}`;
  }
  if (c.deadline || c.state === 'starting') return waits(c, now);
  if (c.power === 'running' && c.state === 'ready') return 'berth starts it next.';
  if (c.power === 'stopped' && (c.state === 'ready' || c.state === 'exit')) return 'Start starts it.';
  if (c.power === 'running' && c.state === 'exit') {
    return c.exit_code
      ? 'This follows its restart policy. Start starts it again.'
      : 'Its restart policy does not start it again. Start does.';
  }
  return '';
}

// inOrder returns the conditions with what a person has to do first: the engine, which
// everything else waits for, then what the message of the container is about.
function inOrder(c, faults) {
  const rank = ({ type, reason, message }) => {
    if (isAway(reason)) return type.endsWith('Reachable') ? 0 : 1;
    return c.message && message && (c.message.includes(message) || message.includes(c.message)) ? 2 : 3;
  };
  return [...faults].sort((a, b) => rank(a) - rank(b));
}

// detailsOf returns why a container is in its state, in sentences. The first one is what
// the first remedy is about.
function detailsOf(c, faults) {
  const list = faults.map((condition) => condition.message);
  const away = faults.filter(({ reason }) => isAway(reason)).length;
  const messages = [...list.slice(0, away), c.message, ...list.slice(away)].filter(Boolean);
  const details = longest([...new Set(messages.map(plain).filter(Boolean).map(sentence))]);
  const code = c.state === 'exit' || c.state === 'failed' ? exitText({ ...c, oom_killed: false }) : '';
  if (code && !details.some((detail) => detail.includes(`code ${c.exit_code}`))) details.push(sentence(code));
  return details;
}

// remediesOf returns what a person can do.
function remediesOf(c, faults, tone) {
  const help = new Set(faults.map((condition) => remedies[condition.reason]).filter(Boolean));
  if (c.state !== 'exit') return [...help];
  if (c.oom_killed) help.add(remedies.OutOfMemory);
  if (c.exit_code === 126 || c.exit_code === 127) help.add(remedies.BadCommand);
  if (tone === 'bad' && help.size === 0) help.add(crashed);
  return [...help];
}

// deferredOf returns which fields wait for the next start, or nothing.
function deferredOf(c) {
  const pending = c.conditions?.find(({ type, status }) => type === 'Pending' && status === 'True');
  if (!pending) return '';
  const fields = fieldWords(pending.message.replace(/: changed at the next start$/, '').split(', '));
  return `Waits for the next start: ${fields}. The server runs without these changes until then.`;
}

// observedAt returns the time (ms) at which the state of a container was observed last if
// it is unknown now, or undefined. lastObserved is what the page knows of the whole node.
function observedAt(c, lastObserved) {
  const away = c.conditions?.find(({ reason }) => isAway(reason));
  const times = [away && Date.parse(away.since), lastObserved].filter(Boolean);
  // A state that began later was observed later: the conditions are older than it.
  return times.length ? Math.max(Math.min(...times), Date.parse(c.state_since) || 0) : undefined;
}

// ago returns "12 s ago", or "just now".
function ago(time, now) {
  const seconds = (now - time) / 1000;
  return seconds < 1 ? 'just now' : `${duration(seconds)} ago`;
}

// explain returns {tone, headline, details, next, deferred, remedies, unknown} of a container.
// lastObserved is a time (ms) if states are not observed at present. The entry of
// a list is enough; a container with its conditions gives more.
export function explain(c, now, lastObserved = null) {
  const observed = observedAt(c, lastObserved);
  let [tone, text] = headline(c);
  const since = ((observed ?? now) - Date.parse(c.state_since)) / 1000;
  text = text.replace('{}', duration(Number.isFinite(since) ? since : 0));
  const faults = inOrder(
    c,
    (c.conditions ?? []).filter(
      (condition) => unanswered.has(condition.reason) || (isFault(condition) && !normal.has(condition.reason)),
    ),
  );
  if (observed !== undefined)
    text = `State unknown. Last observed ${ago(observed, now)}: ${text[0].toLowerCase()}${text.slice(1)}`;
  const troubled = faults.length > 0 || (c.message && c.state !== 'exit'); // an entry of a list has no conditions
  if (((tone === 'ok' || tone === 'busy') && troubled) || observed !== undefined) tone = 'warn';
  return {
    tone,
    headline: text,
    details: detailsOf(c, faults),
    next: next(c, now, observed),
    deferred: deferredOf(c),
    unknown: observed !== undefined,
    remedies: remediesOf(c, faults, tone),
  };
}

// nodeReasons are what a person can do about a node that is not ready, by the reason.
const nodeReasons = {
  'engine: does not answer': `Docker does not answer. Containers may run on. States are the last observed ones, and requests wait: berth connects again by itself. ${engineHelp}`,
  'volumes: missing':
    'The directory of the volumes is missing. Mount its disk, or put the directory back: storage.volumes_path, by default volumes in storage.data_path. berth doctor names what is missing.',
  'store: the disk is full':
    'The disk is full, so berth refuses requests other than stop and kill. Free space on the disk of storage.data_path.',
};

// explainNode returns a reason of GET /readyz in sentences.
export const explainNode = (reason) => nodeReasons[reason] ?? sentence(reason);
