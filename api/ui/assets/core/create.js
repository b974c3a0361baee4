// Creates a container with its volume and its ports.
import { path } from './api.js';
import { errorsOf, FieldError } from './form.js';
import { port } from './format.js';

// names are the fields of the forms by the names of the API, and by its codes.
export const names = {
  internal_id: 'id', name: 'id', image: 'image', startup_command: 'command', start_pattern: 'pattern', install_script: 'install',
  ports: 'ports', ip: 'ports', port: 'ports', port_bound: 'ports', port_not_in_pool: 'ports', container_exists: 'id', container_deleting: 'id',
  'limits.memory': 'memory', 'limits.cpu': 'cpu', 'limits.disk': 'disk', size_limit: 'disk', storage: 'storage',
}; // prettier-ignore

// volumeOf returns the request for a volume. Neither field is needed.
export const volumeOf = (disk, storage) => ({ ...(disk && { size_limit: disk }), ...(storage && { storage }) });

// make adds the ports that the pool lacks, makes a volume and a container on it, and
// starts it. If the daemon refuses one of them, those before it are removed again.
export async function make(api, id, volume, spec) {
  const made = [];
  try {
    for (const one of spec.ports) {
      if (await added(api, one)) made.push(`network/ports/${path(one.ip)}/${one.port}?protocol=${one.protocol}`);
    }
    const { volume_id } = await api.post('volumes', { name: id, ...volume });
    made.push(`volumes/${path(volume_id)}`);
    await api.put(`containers/${path(id)}`, { ...spec, volume_id, power: 'running' });
  } catch (error) {
    const refused = error instanceof FieldError || (error.status >= 400 && error.status < 500);
    for (const one of refused ? made.reverse() : []) await api.remove(one).catch(() => {});
    throw error;
  }
}

// added adds a port to the pool. It returns whether the pool lacked it.
async function added(api, one) {
  try {
    await api.post('network/ports', one);
    return true;
  } catch (error) {
    if (error.code === 'port_exists') return false;
    const { fields, rest } = errorsOf(error, names);
    if (fields.ports) throw new FieldError('ports', `${port(one)}: ${fields.ports} ${rest}`.trim());
    throw error;
  }
}
