// The disks of GET /node.

// fullest returns the disk of volumes that has the least part free, storage.volumes_path or a claim, with a title.
export function fullest({ volumes, claims }) {
  const disks = [{ ...volumes, title: 'The disk of the volumes' }];
  for (const [name, disk] of Object.entries(claims)) disks.push({ ...disk, title: `The fullest disk of volumes: claim ${name}` });
  const part = (disk) => (disk.total > 0 ? disk.free / disk.total : 1);
  return disks.reduce((one, other) => (part(other) < part(one) ? other : one));
}

// missing returns a reason for each directory of volumes that cannot be read: berth measures
// no disk there. Before its first look at the disks none is known.
export function missing(disks) {
  if (!(disks?.data.total > 0)) return [];
  const claims = Object.entries(disks.claims).filter(([, disk]) => disk.total === 0);
  return [
    ...(disks.volumes.total === 0 ? ['volumes: missing'] : []),
    ...claims.map(([name]) => `the directory of the claim ${name} is missing: mount it at claims/${name} of storage.data_path`),
  ];
}

// storages returns the names of the claims that a new volume may be on; the empty one is that of storage.volumes_path.
export const storages = (disks) => ['', ...Object.keys(disks?.claims ?? {}).sort()];
