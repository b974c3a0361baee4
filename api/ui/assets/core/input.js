// Reads what people type into forms. Errors name what is wrong.

const factors = { b: 1, k: 1024, m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

// parseSize returns the bytes of 1.5 GiB, 512M or 512 b; 0 for an empty text. A number
// needs a unit: who writes 64 means 64 MiB.
export function parseSize(text) {
  if (!text.trim() || Number(text) === 0) return 0;
  const match = /^\s*(\d+(?:\.\d+)?)\s*(b|[kmgt](?:i?b)?)\s*$/i.exec(text);
  if (!match) throw new Error(`"${text}" is not a size with a unit: write 512 MiB or 2 GiB`);
  return Math.round(Number(match[1]) * factors[match[2][0].toLowerCase()]);
}

// parseCores returns a number of CPU cores; 0 for an empty text.
export function parseCores(text) {
  if (!/^\s*(?:\d+(?:\.\d+)?)?\s*$/.test(text)) throw new Error(`"${text}" is not a number of cores: write 2 or 1.5`);
  return Number(text);
}

// parsePorts returns the bindings of a text such as 127.0.0.1:25565/tcp, [::1]:53/udp.
// The protocol is optional, and so is the address if there is one for ports without.
export function parsePorts(text, address = '') {
  return text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((one) => {
      const match = /^(?:(?:\[([0-9a-f:.]+)\]|([0-9.]+)):)?(\d{1,5})(?:\/(tcp|udp))?$/i.exec(one);
      if (!match) throw new Error(`"${one}" is not a port: write 25565, 127.0.0.1:25565/tcp or [::1]:53/udp`);
      if (Number(match[3]) < 1 || Number(match[3]) > 65_535) throw new Error(`"${one}" is not a port: ports are 1 to 65535`);
      const ip = match[1] ?? match[2] ?? address;
      if (!ip) throw new Error(`"${one}" has no address: write 0.0.0.0:${one} for all addresses of this host`);
      return { ip, port: Number(match[3]), protocol: (match[4] ?? 'tcp').toLowerCase() };
    });
}

// reach returns from where an address of this host can be reached, in words.
export function reach(ip) {
  if (/^127\.|^::1$/.test(ip)) return 'programs of this host only';
  if (ip === '0.0.0.0') return 'every network that reaches this host, by IPv4';
  if (ip === '::') return 'every network that reaches this host';
  return 'networks that reach this address';
}

// addresses returns the addresses that a form offers: all, this host, and those that
// ports of the pool have.
export function addresses(pool) {
  return [...new Set(['0.0.0.0', '127.0.0.1', ...pool.map(({ ip }) => ip)])];
}

// parseList returns the words of a text separated by commas or spaces.
export const parseList = (text) => text.split(/[\s,]+/).filter(Boolean);

// bothProtocols adds the protocols to the ports of a text that name none: games use both.
export const bothProtocols = (text) =>
  parseList(text)
    .flatMap((one) => (one.includes('/') ? [one] : [`${one}/tcp`, `${one}/udp`]))
    .join(' ');
