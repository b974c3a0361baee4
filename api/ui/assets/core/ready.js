// Readiness of the daemon.

// readiness returns {ready, reasons} of GET /readyz.
export async function readiness(api) {
  try {
    await api.get('readyz');
    return { ready: true, reasons: [] };
  } catch (error) {
    if (error.status !== 503) throw error;
    return { ready: false, reasons: error.message.replace(/^Not ready: /, '').split('; ') };
  }
}

// isEngineAway reports whether the engine does not answer, so that no state is observed.
export const isEngineAway = ({ reasons }) => reasons.some((reason) => reason.startsWith('engine: '));
