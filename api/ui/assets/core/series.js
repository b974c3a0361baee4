// The last samples of a container, for plots.

// createSeries keeps at most `size` samples. Counters become rates per second; a counter
// that falls began anew, and a gap of more than `gap` seconds is shown as one.
export function createSeries(size = 600, gap = 5) {
  const names = ['cpu', 'memory', 'rx', 'tx', 'read', 'write'];
  const data = { time: [] };
  for (const name of names) data[name] = [];
  let last;

  const push = (time, values) => {
    data.time.push(time);
    for (const name of names) data[name].push(values[name] ?? null);
    if (data.time.length > size) for (const list of Object.values(data)) list.shift();
  };

  return {
    data,
    names,
    add(stats) {
      const time = Date.parse(stats.time) / 1000;
      if (last && time <= last.time) return;
      const elapsed = last ? time - last.time : 0;
      if (last && elapsed > gap) push(time - elapsed / 2, {});
      const rate = (name) => {
        if (!last || elapsed > gap || stats[name] < last.stats[name]) return null;
        return (stats[name] - last.stats[name]) / elapsed;
      };
      push(time, {
        cpu: stats.cpu_usage,
        memory: stats.memory_usage,
        rx: rate('network_rx'),
        tx: rate('network_tx'),
        read: rate('block_read'),
        write: rate('block_write'),
      });
      last = { time, stats };
    },
  };
}
