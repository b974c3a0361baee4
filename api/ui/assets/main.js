// Starts the page.
import { html, render } from './views/html.js';
import { App } from './views/app.js';
import { first, session } from './boot.js';

render(html`<${App} session=${session} first=${first} />`, document.getElementById('app'));
