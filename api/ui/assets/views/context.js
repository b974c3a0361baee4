// What every view may use.
import { createContext, useCallback, useContext, useEffect, useState } from './html.js';
import { createPoller } from '../core/poller.js';

// Page is {api, rights, online, observed, say, fail, clear, confirm, refresh, go, list}.
// observed is the time (ms) of the last observation of states while berth or its engine
// does not answer, or null.
export const Page = createContext(null);

export const usePage = () => useContext(Page);

// useNow returns the time, again each second.
export function useNow() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

// useRead calls read, and again every `seconds` while the page is visible. It returns
// {data, error, reload}. read is called anew when a dependency changes.
export function useRead(read, dependencies, seconds = 0) {
  const [state, setState] = useState({});
  const [poller, setPoller] = useState(null);
  useEffect(() => {
    setState({});
    const next = createPoller({
      read,
      interval: () => (seconds && !document.hidden ? seconds * 1000 : 3_600_000),
      onData: (data) => setState({ data }),
      onError: (error) => setState((old) => ({ ...old, error })),
    });
    setPoller(next);
    const seen = () => document.hidden || next.now();
    if (seconds) document.addEventListener('visibilitychange', seen);
    return () => {
      next.stop();
      document.removeEventListener('visibilitychange', seen);
    };
  }, dependencies);
  return { ...state, reload: () => poller?.now() };
}

// useAction returns [run, busy]. run calls a function that changes something, and shows
// its error; it resolves to whether it succeeded.
export function useAction() {
  const { fail, clear, refresh } = usePage();
  const [busy, setBusy] = useState(false);
  const run = useCallback(
    async (action) => {
      setBusy(true);
      clear();
      try {
        await action();
        return true;
      } catch (error) {
        fail(error);
        return false;
      } finally {
        setBusy(false);
        refresh();
      }
    },
    [fail, clear, refresh],
  );
  return [run, busy];
}
