// Numbers and times as people read them.
const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

// bytes returns 1.5 GiB, for example; an absent number is a dash.
export function bytes(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return '–';
  let at = 0;
  while (Math.abs(n) >= 1024 && at < units.length - 1) {
    n /= 1024;
    at += 1;
  }
  const digits = at === 0 || n >= 100 ? 0 : 1;
  return `${n.toFixed(digits)} ${units[at]}`;
}

const words = { env: 'environment', workdir: 'working directory' };

// fieldWords returns fields of the API as people read them.
export const fieldWords = (names) => names.map((name) => words[name] ?? name.replaceAll('_', ' ')).join(', ');

// percent returns 12.5 % of a number of percent.
export function percent(n) {
  if (n === null || n === undefined || !Number.isFinite(n)) return '–';
  return `${n.toFixed(n < 10 ? 1 : 0)} %`;
}

// duration returns the two largest units of some seconds: 2 h 5 min.
export function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const parts = [
    [Math.floor(s / 86_400), 'd'],
    [Math.floor(s / 3600) % 24, 'h'],
    [Math.floor(s / 60) % 60, 'min'],
    [s % 60, 's'],
  ];
  const first = parts.findIndex(([n]) => n > 0);
  if (first < 0) return '0 s';
  return parts
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, unit]) => `${n} ${unit}`)
    .join(' ');
}

// age returns the largest unit of the time since an RFC 3339 time: 5 min.
export function age(time, now) {
  if (!time) return '–';
  return duration((now - Date.parse(time)) / 1000).replace(/ (?:h|min|s|d) .*/, (rest) => rest.split(' ', 2).join(' '));
}

// until returns "in 12 s" for a time to come (RFC 3339, or ms), and "now" for a past one.
export function until(time, now) {
  const seconds = (new Date(time) - now) / 1000;
  return seconds > 0.5 ? `in ${duration(seconds)}` : 'now';
}

// clock returns a time of today as 14:05:09, and an older one with its date.
export function clock(time, now = Date.now()) {
  const t = new Date(time);
  if (Number.isNaN(t.getTime())) return '–';
  const two = (n) => String(n).padStart(2, '0');
  const text = `${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
  if (t.toDateString() === new Date(now).toDateString()) return text;
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${text}`;
}

// port returns 0.0.0.0:25565/tcp of a binding.
export function port(p) {
  const host = p.ip.includes(':') ? `[${p.ip}]` : p.ip;
  return `${host}:${p.port}/${p.protocol}`;
}

// ports returns bindings with those that follow each other as one: 0.0.0.0:1-18/tcp.
export function ports(list) {
  const runs = [];
  for (const p of list) {
    const run = runs.at(-1);
    const follows = run && !p.container_port && !run.first.container_port && p.port === run.last + 1;
    if (follows && p.ip === run.first.ip && p.protocol === run.first.protocol) run.last = p.port;
    else runs.push({ first: p, last: p.port });
  }
  return runs.map(({ first, last }) => {
    const text = port({ ...first, port: last === first.port ? last : `${first.port}-${last}` });
    return first.container_port ? `${text} → ${first.container_port}` : text;
  });
}
