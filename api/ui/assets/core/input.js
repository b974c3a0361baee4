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

// parsePorts returns the bindings of a text such as 127.0.0.1:25565/tcp, [::1]:53/udp.
// The address is optional, and so is the protocol.
export function parsePorts(text) {
  return text
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((one) => {
      const match = /^(?:(?:\[([0-9a-f:.]+)\]|([0-9.]+)):)?(\d{1,5})(?:\/(tcp|udp))?$/i.exec(one);
      if (!match) throw new Error(`"${one}" is not a port: write 25565, 127.0.0.1:25565/tcp or [::1]:53/udp`);
      return { ip: match[1] ?? match[2] ?? '0.0.0.0', port: Number(match[3]), protocol: (match[4] ?? 'tcp').toLowerCase() };
    });
}

// parseList returns the words of a text separated by commas or spaces.
export const parseList = (text) => text.split(/[\s,]+/).filter(Boolean);
