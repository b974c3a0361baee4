// Reads something again and again, and heals after a lost connection.
import { delay } from './backoff.js';

// createPoller calls read until stop. onData receives each result, onError each error
// with the number of failures in a row. interval returns the milliseconds to the next
// read after a success. now() reads at once.
export function createPoller({ read, interval, onData, onError, timers = globalThis }) {
  let timer;
  let running = false;
  let wanted = false;
  let stopped = false;
  let failures = 0;

  async function run() {
    if (running) {
      wanted = true;
      return;
    }
    running = true;
    timers.clearTimeout(timer);
    try {
      const data = await read();
      failures = 0;
      if (!stopped) onData(data);
    } catch (error) {
      failures += 1;
      if (!stopped) onError(error, failures);
    }
    running = false;
    if (stopped) return;
    timer = timers.setTimeout(run, wanted ? 0 : failures ? delay(failures) : interval());
    wanted = false;
  }

  run();
  return {
    now: run,
    stop() {
      stopped = true;
      timers.clearTimeout(timer);
    },
  };
}
