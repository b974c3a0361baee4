// The parts of the page that its first picture does not need.
export { Audit } from './audit.js';
export { Create } from './create.js';
export { Drawer } from './drawer.js';
export { Ports } from './ports.js';
export { Tokens } from './tokens.js';
export { Volumes } from './volumes.js';
